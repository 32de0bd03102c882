/**
 * The stamp of a model: changes when its cases may change, and is the same on every machine.
 *
 * Files of a few megabytes are read whole; of larger ones the beginning, where the graph is, the
 * end, and samples between. Times do not count: a fresh checkout would change them.
 */
import { createHash, type Hash } from 'node:crypto'
import { openFile } from '../files/file-source.ts'
import { externalPath, openModel } from '../files/model-file.ts'
import { summarizeModel } from '../onnx/summary.ts'
import { variantsOf } from './chip-targets.ts'
import { type DiscoveredModel, dataSetNumber } from './discover.ts'
import type { ResolvedConfig } from './options.ts'
import { readText } from './read-text.ts'
import { modelConfig, readSidecar } from './sidecar.ts'
import { readXfails } from './xfails.ts'

/** `revision`: raised when the same model gets other cases. */
export function stampOf(model: DiscoveredModel, config: ResolvedConfig, revision: string): string {
  const hash = createHash('sha256').update(`${revision}\n`)
  addOrProblem(hash, () => `${JSON.stringify(settingsOf(model, config))}\n`)
  addOrProblem(hash, () => (model.sidecar === undefined ? '' : readText(model.sidecar)))
  addFile(hash, () => model.path)
  for (const location of weightsThatCount(model, config))
    addFile(hash, () => externalPath(model.path, location, location))
  return hash.digest('hex').slice(0, 12)
}

function settingsOf(model: DiscoveredModel, config: ResolvedConfig): unknown {
  const own = modelConfig(model, readSidecar(model), config)
  // Only whether they can be read: what is in them does not change the file.
  readXfails(model, own)
  const { shapes, groups, dedup, layers, fullModel, maxTestsPerFile, fromEnvironment } = config
  return {
    id: model.id,
    name: model.name,
    dataSets: model.dataSets.map(dataSetNumber),
    variants: variantsOf(model, own),
    shapes,
    groups,
    dedup,
    layers,
    fullModel,
    maxTestsPerFile,
    fromEnvironment: fromEnvironment.toSorted(),
  }
}

/** What cannot be read gives a case that says so, and the stamp of that. */
function addOrProblem(hash: Hash, read: () => string): void {
  try {
    hash.update(read())
  } catch (error) {
    hash.update(String(error))
  }
}

/** Where layers of equal content are tested once, the data files decide which those are. */
function weightsThatCount(model: DiscoveredModel, config: ResolvedConfig): string[] {
  try {
    if (!modelConfig(model, readSidecar(model), config).dedup) return []
    const file = openModel(model.path)
    try {
      return summarizeModel(file.model).externalFiles.map(({ location }) => location)
    } finally {
      file.close()
    }
  } catch {
    return [] // the stamp of a problem is made already
  }
}

const [WHOLE, HEAD, TAIL, SAMPLES, SAMPLE] = [4 << 20, 1 << 20, 64 << 10, 62, 4 << 10]

function addFile(hash: Hash, path: () => string): void {
  try {
    const file = openFile(path())
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
    hash.update(String(error))
  }
}
