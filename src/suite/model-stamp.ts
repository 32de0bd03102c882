/**
 * The stamp of a model: changes when its cases may change, and is the same on every machine.
 *
 * Files of a few megabytes are read whole; of larger ones the beginning, where the graph is, the
 * end, and samples between. Times do not count: a fresh checkout would change them.
 */
import { createHash, type Hash } from 'node:crypto'
import { openFile } from '../files/file-source.ts'
import { readFileSync } from 'node:fs'
import { ModelTestError } from '../errors.ts'
import { chipNames } from './chip-files.ts'
import { type DiscoveredModel, dataSetNumber } from './discover.ts'
import type { ResolvedConfig } from './options.ts'
import { modelConfig, readSidecar } from './sidecar.ts'

/** `revision`: raised when the same model gets other cases. */
export function stampOf(model: DiscoveredModel, config: ResolvedConfig, revision: string): string {
  const hash = createHash('sha256').update(`${revision}\n${JSON.stringify(settingsOf(model, config))}\n`)
  if (model.sidecar !== undefined) hash.update(readFileSync(model.sidecar))
  addModel(hash, model.path)
  return hash.digest('hex').slice(0, 12)
}

function settingsOf(model: DiscoveredModel, config: ResolvedConfig): unknown {
  const { shapes, groups, dedup, layers, fullModel, maxTestsPerFile, fromEnvironment } = config
  return {
    id: model.id,
    name: model.name,
    dataSets: model.dataSets.map(dataSetNumber),
    ...targetsAndChips(model, config),
    shapes,
    groups,
    dedup,
    layers,
    fullModel,
    maxTestsPerFile,
    fromEnvironment: fromEnvironment.toSorted(),
  }
}

/** A sidecar that cannot be read gives a case that says so, and the stamp of that. */
function targetsAndChips(model: DiscoveredModel, config: ResolvedConfig): object {
  try {
    const own = modelConfig(model, readSidecar(model), config)
    return { targets: own.targets.map(({ name }) => name), chips: chipNames(model, own) }
  } catch (error) {
    if (error instanceof ModelTestError) return { problem: error.message }
    throw error
  }
}

const [WHOLE, HEAD, TAIL, SAMPLES, SAMPLE] = [4 << 20, 1 << 20, 64 << 10, 62, 4 << 10]

function addModel(hash: Hash, path: string): void {
  try {
    const file = openFile(path)
    try {
      hash.update(`${file.size}\n`)
      if (file.size <= WHOLE) return void hash.update(file.read(0, file.size))
      hash.update(file.read(0, HEAD))
      const step = Math.floor((file.size - HEAD - TAIL) / SAMPLES)
      for (let at = 0; at < SAMPLES; at++) hash.update(file.read(HEAD + at * step, Math.min(SAMPLE, step)))
      hash.update(file.read(file.size - TAIL, TAIL))
    } finally {
      file.close()
    }
  } catch (error) {
    if (!(error instanceof ModelTestError)) throw error
    hash.update(error.message)
  }
}
