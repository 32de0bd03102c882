/**
 * onnxruntime-web's WebAssembly build, in this process: what runs in a browser without a GPU.
 *
 * It reads no files, so that weights travel inside the model.
 */
import type { InferenceSession } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import { inlineWeights } from './inline-weights.ts'
import type { Ort } from './ort-runtime.ts'
import { fromOrtTensor, toOrtTensor } from './ort-tensor.ts'
import type { Chip, Target, Tensors } from './target.ts'

interface WasmArtefact {
  readonly bytes: Uint8Array
  readonly outputs: readonly string[]
}

export const wasmTarget: Target = {
  name: 'wasm',
  chips: [{ name: 'default' }],
  // Its package.json is not among what the package exports.
  version: async () => (await loadWeb()).env.versions.web ?? 'unknown',
  async unavailable() {
    try {
      await loadWeb()
      return undefined
    } catch (error) {
      return `${(error as ModelTestError).message}; ${(error as ModelTestError).hint}`
    }
  },
  compile(model, chip): WasmArtefact {
    refuseSettings(chip)
    return { bytes: inlineWeights(model), outputs: model.outputs }
  },
  async load(artefact) {
    const { bytes, outputs } = artefact as WasmArtefact
    const ort = await loadWeb()
    const session = await trying('load', () => ort.InferenceSession.create(bytes, SESSION))
    return {
      run: (inputs: Tensors): Promise<Tensors> =>
        trying('run', async () => {
          const feeds = [...inputs].map(([name, value]) => [name, toOrtTensor(ort, value)] as const)
          const results = await session.run(Object.fromEntries(feeds), [...outputs])
          return new Map(outputs.map((name) => [name, fromOrtTensor(results[name] as never)]))
        }),
      dispose: () => session.release(),
    }
  },
}

const SESSION: InferenceSession.SessionOptions = { executionProviders: ['wasm'], logSeverityLevel: 4 }

let loaded: Promise<Ort> | undefined

function loadWeb(): Promise<Ort> {
  loaded ??= importWeb()
  return loaded
}

async function importWeb(): Promise<Ort> {
  try {
    const web = (await import('onnxruntime-web' as string)) as Ort
    // More threads need cross-origin isolation in browsers, and change results from run to run.
    web.env.wasm.numThreads = 1
    return web
  } catch (cause) {
    throw new ModelTestError(
      'RUNTIME_MISSING',
      `onnxruntime-web cannot be loaded (${(cause as Error).message})`,
      { hint: 'npm install --save-dev onnxruntime-web brings it', cause },
    )
  }
}

/** A setting that is not heeded would make the name of the test a lie. */
function refuseSettings({ name, ...settings }: Chip): void {
  const [field] = Object.keys(settings)
  if (field === undefined) return
  throw new ModelTestError('INVALID_OPTION', `chip "${name}" sets ${field}, and wasm has no settings`, {
    hint: 'Test wasm with the chip "default".',
  })
}

/** C++ exceptions that leave WebAssembly are numbers. */
async function trying<T>(step: 'load' | 'run', work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof ModelTestError) throw cause
    const said = cause instanceof Error ? cause.message : `it threw ${String(cause)}`
    throw new ModelTestError('RUNTIME_FAILED', `onnxruntime-web cannot ${step} the model: ${said}`, {
      hint:
        step === 'load'
          ? 'It lacks an operator or a type that the model uses, or the model is too large for 4 GB of memory.'
          : 'The inputs do not fit the model, or a kernel failed on them.',
      cause,
    })
  }
}
