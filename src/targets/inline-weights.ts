/** A model whose weights lie in other files -> the same with everything inside, for runtimes that read no files. */
import { join } from 'node:path'
import { bytesSource } from '../bytes/byte-source.ts'
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
    const known = files.get(location) ?? openFile(join(folder, location))
    files.set(location, known)
    return known
  }
  try {
    return graphAsModel(graph, graph.outputs, types.get.bind(types), { kind: 'inline', external }).toBytes()
  } finally {
    for (const file of files.values()) file.close()
  }
}
