/**
 * A model -> the files that it and its sidecar refer to by path: weights, inputs, modules of targets.
 *
 * Nothing is thrown: of a model or sidecar that cannot be read, no files are known. A file that is
 * missing is listed all the same.
 */
import { dirname, resolve } from 'node:path'
import { openModel } from '../files/model-file.ts'
import { summarizeModel } from '../onnx/summary.ts'
import type { DiscoveredModel } from './discover.ts'
import { targetsOf } from './options.ts'
import { readSidecar } from './sidecar.ts'

/** Absolute. */
export function sidecarFiles(model: DiscoveredModel): string[] {
  const folder = dirname(model.path)
  return readable(() => {
    const { inputs = {}, targets = [] } = readSidecar(model)
    const modules = targetsOf(targets, folder, false).map(({ module }) => module)
    const values = Object.values(inputs).map(({ file }) => file && resolve(folder, file))
    return [...values, ...modules].filter((path) => path !== undefined)
  })
}

/** Absolute. */
export function weightFiles({ path }: DiscoveredModel): string[] {
  return readable(() => {
    const file = openModel(path)
    try {
      return summarizeModel(file.model).externalFiles.map(({ location }) => resolve(dirname(path), location))
    } finally {
      file.close()
    }
  })
}

function readable(files: () => string[]): string[] {
  try {
    return files()
  } catch {
    return []
  }
}
