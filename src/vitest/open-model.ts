/** The models of this worker: opened when a test of theirs comes up, a few at a time, with their cases and cache. */
import { existsSync, rmSync } from 'node:fs'
import { type Cache, openCache } from '../cache/store.ts'
import { ModelTestError } from '../errors.ts'
import { checkInputNames } from '../fixtures/model-inputs.ts'
import { type ModelSource, modelSource } from '../fixtures/model-source.ts'
import { type Case, type CasesOfModel, openCases } from '../suite/cases.ts'
import { type DiscoveredModel, discoverModels } from '../suite/discover.ts'
import { failureFolder, failuresOf } from '../suite/failures.ts'
import type { ResolvedConfig } from '../suite/options.ts'
import { allowOrtProcesses, sharedOrtPool } from '../targets/ort-pool.ts'
import { currentConfig, processesPerWorker } from './config-channel.ts'
import { checkThresholds } from './thresholds.ts'

export interface OpenModel {
  /** With what its sidecar sets. */
  readonly config: ResolvedConfig
  readonly discovered: DiscoveredModel
  readonly found: CasesOfModel
  readonly byName: ReadonlyMap<string, Case>
  readonly source: () => ModelSource
  /** What none of its tests would come upon while all results are equal. */
  readonly problemOfSettings: () => ModelTestError | undefined
  /** Drops what is kept of the last failure of a test that has none now. */
  forgetFailure(one: Case): void
  close(): void
}

/** In the order of use, the latest last. */
const models = new Map<string, OpenModel>()

/** Of a thousand models in one worker, few need to be open: files follow one another. */
const MAX_OPEN = 4

/** Opened once per worker; a change of the model starts new workers or gives a new stamp. */
export function modelOf(id: string): OpenModel {
  const model = models.get(id) ?? openModel(id)
  models.delete(id)
  models.set(id, model)
  const [oldest] = models.keys()
  if (models.size > MAX_OPEN && oldest !== undefined) {
    models.get(oldest)?.close()
    models.delete(oldest)
  }
  return model
}

function openModel(id: string): OpenModel {
  const config = currentConfig()
  allowOrtProcesses(processesPerWorker())
  const discovered = discoverAll(config.testdata).get(id)
  if (discovered === undefined) {
    throw new ModelTestError('FILE_UNREADABLE', `${id} is no longer in ${config.testdata}`, {
      hint: 'Start Vitest again, or run `vitest-onnx generate`.',
    })
  }
  // With nothing in the cache there is work for sure, and the process can start meanwhile.
  if (!existsSync(config.cacheDir)) sharedOrtPool().start()
  const { open, ...found } = openCases(discovered, config)
  let source: ModelSource | undefined
  const sourceOf = (): ModelSource => {
    if (open === undefined) throw found.problem
    return (source ??= modelSource(discovered, open))
  }
  let hasFailures: boolean | undefined
  let settings: { readonly problem: ModelTestError | undefined } | undefined
  return {
    config: open?.config ?? config,
    discovered,
    found,
    byName: new Map(found.cases.map((one) => [one.name, one])),
    source: sourceOf,
    problemOfSettings: () => (settings ??= { problem: problemOfSettings(sourceOf()) }).problem,
    forgetFailure(one) {
      hasFailures ??= existsSync(failuresOf(config.root, id))
      if (hasFailures) rmSync(failureFolder(config.root, id, one.name), { recursive: true, force: true })
    },
    close: () => open?.file.close(),
  }
}

function problemOfSettings(source: ModelSource): ModelTestError | undefined {
  try {
    checkInputNames(source)
    checkThresholds(source)
    return undefined
  } catch (error) {
    if (error instanceof ModelTestError) return error
    throw error
  }
}

const discovered = new Map<string, ReadonlyMap<string, DiscoveredModel>>()

function discoverAll(testdata: string): ReadonlyMap<string, DiscoveredModel> {
  const known = discovered.get(testdata)
  if (known !== undefined) return known
  const all = new Map(discoverModels(testdata).map((model) => [model.id, model]))
  discovered.set(testdata, all)
  return all
}

export function caseOf({ byName, found: { problem }, discovered: { id } }: OpenModel, name: string): Case {
  const one = byName.get(name)
  if (one !== undefined) return one
  if (problem !== undefined) throw problem
  throw new ModelTestError('INVALID_OPTION', `${id} has no test "${name}" any more`, {
    hint: 'The test file is older than the model or the settings: run `vitest-onnx generate`.',
  })
}

const caches = new Map<string, Cache>()

export function cacheOf({ cacheDir, recompute }: ResolvedConfig): Cache {
  const known = caches.get(cacheDir)
  if (known !== undefined) return known
  const cache = openCache({ folder: cacheDir, recompute })
  caches.set(cacheDir, cache)
  return cache
}
