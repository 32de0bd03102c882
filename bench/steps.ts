/** The steps from a model's bytes to the bytes of its parts, as the commands take them. */
import { foldShapes } from '../src/graph/fold-shapes.ts'
import { inferTypes, type TypeTable } from '../src/graph/infer-types.ts'
import { extractPart, type Part } from '../src/graph/part.ts'
import { resolveModel } from '../src/graph/resolve.ts'
import { splitGraph } from '../src/graph/split.ts'
import type { WeightPolicy } from '../src/graph/weights.ts'
import type { ModelIndex } from '../src/onnx/model-index.ts'

export interface TakenApart {
  readonly parts: readonly Part[]
  readonly types: TypeTable
}

/** Names, types, folded shapes, parts. */
export function takeApart(model: ModelIndex): TakenApart {
  const graph = resolveModel(model)
  const types = inferTypes(graph)
  const typeOf = types.get.bind(types)
  return { parts: splitGraph(graph, { stem: 'model', typeOf, folded: foldShapes(graph, types) }), types }
}

export function extract({ types }: TakenApart, part: Part, policy: WeightPolicy): Uint8Array {
  return extractPart(part, types.get.bind(types), policy).toBytes()
}

export function extractAll(taken: TakenApart): Uint8Array[] {
  return taken.parts.map((part) => extract(taken, part, INLINE))
}

/** Extracts all parts and keeps none, as commands do that write them to files. */
export function sizeOfAll(taken: TakenApart): number {
  return taken.parts.reduce((sum, part) => sum + extract(taken, part, INLINE).length, 0)
}

const INLINE: WeightPolicy = {
  kind: 'inline',
  external(location) {
    throw new Error(`no generated graph has external data, but "${location}" is asked for`)
  },
}
