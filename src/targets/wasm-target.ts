/**
 * onnxruntime-web's WebAssembly build: what runs in a browser without a GPU.
 *
 * It reads no files, so that weights travel inside the model.
 */
import { ModelTestError } from '../errors.ts'
import { inlineWeights } from './inline-weights.ts'
import type { OrtSettings } from './ort-jobs.ts'
import { loadOrtWeb, type Ort } from './ort-runtime.ts'
import { loadOrtArtefact, type OrtArtefact } from './ort-target.ts'
import type { Chip, Target } from './target.ts'

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
  compile(model, chip): OrtArtefact {
    refuseSettings(chip)
    return {
      runtime: 'web',
      model: { bytes: inlineWeights(model) },
      settings: SETTINGS,
      outputs: model.outputs,
    }
  },
  load: (artefact, context) => loadOrtArtefact(artefact as OrtArtefact, context),
}

const SETTINGS: OrtSettings = {
  providers: ['wasm'],
  optimisation: 'all',
  session: { logSeverityLevel: 4 },
}

let loaded: Promise<Ort> | undefined

/** Here only to learn its version: it works in a process of its own. */
function loadWeb(): Promise<Ort> {
  loaded ??= loadOrtWeb()
  return loaded
}

/** A setting that is not heeded would make the name of the test a lie. */
function refuseSettings({ name, ...settings }: Chip): void {
  const [field] = Object.keys(settings)
  if (field === undefined) return
  throw new ModelTestError('INVALID_OPTION', `chip "${name}" sets ${field}, and wasm has no settings`, {
    hint: 'Test wasm with the chip "default".',
  })
}
