/**
 * A model file -> its layers, ready to be extracted.
 *
 * Types come from onnxruntime where it can load the model, else from the file and the dtype rules.
 */
import type { MessageWriter } from '../bytes/wire-writer.ts'
import { ModelTestError } from '../errors.ts'
import type { ModelFile } from '../files/model-file.ts'
import { dropTwins, partDigest } from '../graph/equality.ts'
import { foldShapes } from '../graph/fold-shapes.ts'
import { inferTypes, type TypeTable } from '../graph/infer-types.ts'
import { extractPart, type Part } from '../graph/part.ts'
import { resolveModel, type ScopedGraph } from '../graph/resolve.ts'
import { splitGraph } from '../graph/split.ts'
import type { WeightPolicy } from '../graph/weights.ts'
import { openOrtPool } from '../targets/ort-pool.ts'
import { isCarriedByOrt } from '../targets/ort-tensor.ts'
import { reportTypes } from '../targets/ort-types.ts'
import { dtypeFromOnnx } from '../tensor/dtype.ts'

export interface TypedModel {
  readonly graph: ScopedGraph
  readonly types: TypeTable
  /** Why onnxruntime had no part in it: missing, or unable to load the model. */
  readonly failure: ModelTestError | undefined
}

export interface LayerOptions {
  /** Sequences of op types that stay together; see `SplitOptions`. */
  readonly groups?: readonly (readonly string[])[]
  /** Test parts of equal content once. @default false */
  readonly dedup?: boolean
}

export interface Layer {
  readonly part: Part
  /** Parts of the same content that this one stands for. */
  readonly twins: readonly Part[]
}

/** The types of all values, asked of a process of its own. */
export async function typeModel(file: ModelFile): Promise<TypedModel> {
  const graph = resolveModel(file.model)
  const process = openOrtPool()
  try {
    return { graph, ...(await reportTypes(file, graph, process)) }
  } catch (error) {
    if (!(error instanceof ModelTestError) || error.code !== 'RUNTIME_MISSING') throw error
    return { graph, types: inferTypes(graph), failure: error }
  } finally {
    process.close()
  }
}

export function layersOf(file: ModelFile, { graph, types }: TypedModel, options: LayerOptions = {}): Layer[] {
  const typeOf = types.get.bind(types)
  const parts = splitGraph(graph, {
    stem: file.stem,
    typeOf,
    folded: foldShapes(graph, types),
    ...(options.groups === undefined ? {} : { groups: options.groups }),
    canCross: (code) => isCarriedByOrt(dtypeFromOnnx(code)),
  })
  if (!options.dedup) return parts.map((part) => ({ part, twins: [] }))
  return dropTwins(parts, (part) => partDigest(part, typeOf, file.external.bind(file)))
}

export function layerModel({ types }: TypedModel, part: Part, policy: WeightPolicy): MessageWriter {
  return extractPart(part, types.get.bind(types), policy)
}
