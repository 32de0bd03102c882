/** onnxruntime-web's WebAssembly build, in this process: what runs in a browser without a GPU. */
import { createRequire } from 'node:module'
import type { InferenceSession } from 'onnxruntime-common'
import { inlineWeights } from './inline-weights.ts'
import type { Ort } from './ort-runtime.ts'
import { fromOrtTensor, toOrtTensor } from './ort-tensor.ts'
import type { Target, Tensors } from './target.ts'

interface WasmArtefact {
  readonly bytes: Uint8Array
  readonly outputs: readonly string[]
}

export const wasmTarget: Target = {
  name: 'wasm',
  chips: [{ name: 'default' }],
  version: webVersion,
  unavailable() {
    try {
      webVersion()
      return undefined
    } catch {
      return 'onnxruntime-web is not installed; npm install --save-dev onnxruntime-web brings it'
    }
  },
  compile: (model): WasmArtefact => ({ bytes: inlineWeights(model), outputs: model.outputs }),
  async load(artefact) {
    const { bytes, outputs } = artefact as WasmArtefact
    const ort = await loadWeb()
    const session = await ort.InferenceSession.create(bytes, SESSION)
    return {
      async run(inputs: Tensors): Promise<Tensors> {
        const feeds = Object.fromEntries([...inputs].map(([name, value]) => [name, toOrtTensor(ort, value)]))
        const results = await session.run(feeds, [...outputs])
        return new Map(outputs.map((name) => [name, fromOrtTensor(results[name] as never)]))
      },
      dispose: () => session.release(),
    }
  },
}

const SESSION: InferenceSession.SessionOptions = { executionProviders: ['wasm'], logSeverityLevel: 3 }

let loaded: Promise<Ort> | undefined

function loadWeb(): Promise<Ort> {
  loaded ??= import('onnxruntime-web' as string).then((web: Ort) => {
    // More threads need cross-origin isolation in browsers, and change results from run to run.
    web.env.wasm.numThreads = 1
    return web
  })
  return loaded
}

function webVersion(): string {
  const require = createRequire(import.meta.url)
  return (require('onnxruntime-web/package.json') as { version: string }).version
}
