/** A model whose weights lie in other files -> the same with everything inside, for runtimes that read no files. */
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { bytesSource } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'
import { type FileSource, openFile } from '../files/file-source.ts'
import { inferTypes } from '../graph/infer-types.ts'
import { resolveModel } from '../graph/resolve.ts'
import { graphAsModel } from '../graph/whole.ts'
import { indexModel } from '../onnx/model-index.ts'
import type { TargetModel } from './target.ts'

export function inlineWeights({ bytes, folder, name }: TargetModel): Uint8Array {
  const graph = resolveModel(indexModel(bytesSource(bytes, name)))
  const types = inferTypes(graph)
  const files = new Map<string, FileSource>()
  const external = (location: string): FileSource => {
    const known = files.get(location) ?? openFile(insideFolder(folder, location, name))
    files.set(location, known)
    return known
  }
  try {
    return graphAsModel(graph, graph.outputs, types.get.bind(types), { kind: 'inline', external }).toBytes()
  } finally {
    for (const file of files.values()) file.close()
  }
}

/** Links are not followed up here: the model under test was checked when it was opened. */
function insideFolder(folder: string, location: string, name: string): string {
  const path = resolve(folder, location)
  const way = relative(folder, path)
  if (!isAbsolute(location) && way !== '..' && !way.startsWith(`..${sep}`)) return path
  throw new ModelTestError('EXTERNAL_DATA_OUTSIDE', `"${name}" points to "${location}", outside ${folder}`, {
    hint: 'Move the data file next to the model, or export again with the data in one file.',
  })
}
