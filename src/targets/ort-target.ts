/**
 * Targets that are onnxruntime-node with other settings: the optimised CPU, and any provider.
 *
 * They run in the process of `ort-process.ts`, and can leave their results in a file there, so
 * that large tensors are not sent back and forth.
 */
import { createRequire } from 'node:module'
import type { StoredTensor } from '../files/tensor-file.ts'
import type { OrtModel, OrtSettings } from './ort-jobs.ts'
import { sharedOrtProcess } from './ort-process.ts'
import { loadOrt } from './ort-runtime.ts'
import type { Chip, Runner, Target, TargetContext, TargetModel, Tensors } from './target.ts'

/** A runner that can write its results itself. */
export interface FileRunner extends Runner {
  runToFile(inputs: ReadonlyMap<string, StoredTensor>, path: string): Promise<void>
}

export function isFileRunner(runner: Runner): runner is FileRunner {
  return 'runToFile' in runner
}

export interface OrtArtefact {
  readonly model: OrtModel
  readonly settings: OrtSettings
  /** Names of the outputs, in order. */
  readonly outputs: readonly string[]
}

/** The CPU provider with all optimisations: finds bugs of fusions. */
export const cpuTarget: Target = ortTarget('cpu', { providers: ['cpu'], optimisation: 'all' })

/** Any execution provider that onnxruntime-node has: `webgpu`, `cuda`, `coreml`, `dml`, … */
export function providerTarget(provider: string): Target {
  return ortTarget(provider, { providers: [provider], optimisation: 'all' }, () => missingProvider(provider))
}

export function ortTarget(
  name: string,
  settings: OrtSettings,
  unavailable: () => Promise<string | undefined> = async () => undefined,
): Target {
  return {
    name,
    version: ortVersion,
    chips: [{ name: 'default' }],
    unavailable,
    compile: (model, chip) => ({
      model: ortModel(model),
      settings: { ...settings, ...chipSettings(chip) },
      outputs: model.outputs,
    }),
    load: (artefact, context) => loadOrtArtefact(artefact as OrtArtefact, context),
  }
}

export function ortModel({ bytes, folder }: TargetModel): OrtModel {
  return { bytes, folder }
}

export function loadOrtArtefact(
  { model, settings, outputs }: OrtArtefact,
  { timeoutMs }: TargetContext,
): FileRunner {
  const store = async (inputs: ReadonlyMap<string, StoredTensor>, path: string): Promise<void> => {
    const feeds = Object.fromEntries(inputs)
    await sharedOrtProcess().ask({ kind: 'store', model, settings, feeds, fetches: outputs, path }, timeoutMs)
  }
  return {
    runToFile: store,
    async run(inputs: Tensors): Promise<Tensors> {
      const job = {
        kind: 'run',
        model,
        settings,
        feeds: Object.fromEntries(inputs),
        fetches: outputs,
      } as const
      const answer = await sharedOrtProcess().ask(job, timeoutMs)
      return new Map(answer.kind === 'ran' ? Object.entries(answer.outputs) : [])
    },
  }
}

export function ortVersion(): string {
  const require = createRequire(import.meta.url)
  return (require('onnxruntime-node/package.json') as { version: string }).version
}

/** A chip file may set the session: `{ "optimisation": "basic", "threads": 2, "session": { … } }`. */
function chipSettings({ optimisation, threads, session }: Chip): Partial<OrtSettings> {
  return {
    ...(typeof optimisation === 'string'
      ? { optimisation: optimisation as OrtSettings['optimisation'] }
      : {}),
    ...(typeof threads === 'number' ? { threads } : {}),
    ...(typeof session === 'object' && session !== null
      ? { session: session as Record<string, unknown> }
      : {}),
  }
}

/** Providers are compiled in or not; that one is listed does not say that its device is there. */
async function missingProvider(provider: string): Promise<string | undefined> {
  const { listSupportedBackends } = await loadOrt()
  const names = listSupportedBackends().map(({ name }) => name)
  if (names.includes(provider)) return undefined
  return `onnxruntime-node has no provider "${provider}" on this machine; it has ${names.join(', ')}`
}
