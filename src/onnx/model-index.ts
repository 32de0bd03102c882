/**
 * The index of a model: where every node, initializer, value and function lies in the file.
 *
 * Offsets are absolute in the source, also inside subgraphs, so any piece can be sliced out without
 * its parents.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'
import type { TensorInfo } from '../tensor/tensor-proto.ts'
import { Indexer } from './indexer.ts'
import { checkLooksLikeOnnx } from './sniff.ts'

export function indexModel(source: ByteSource): ModelIndex {
  checkLooksLikeOnnx(source)
  const model = new Indexer(source).model()
  checkComplete(model)
  return model
}

function checkComplete({
  source,
  irVersion,
  opsets,
  graph,
}: ModelIndex & { graph: GraphIndex | undefined }): void {
  const missing =
    irVersion === 0
      ? 'no IR version'
      : graph === undefined
        ? 'no graph'
        : irVersion >= 3 && opsets.length === 0
          ? 'no opset import'
          : undefined
  if (missing === undefined) return
  throw new ModelTestError('MALFORMED_MODEL', `the model has ${missing}`, {
    file: source.name,
    offset: source.size,
    hint: 'The file ends too early or is not an ONNX model; download or export it again.',
  })
}

export interface Range {
  readonly start: number
  readonly stop: number
}

export interface ModelIndex {
  readonly source: ByteSource
  readonly irVersion: number
  readonly producer: string
  readonly opsets: readonly OpsetImport[]
  readonly metadata: readonly (readonly [key: string, value: string])[]
  readonly graph: GraphIndex
  readonly functions: readonly FunctionEntry[]
  /** All other fields of the model, tags included, in file order. */
  readonly rest: readonly FieldRange[]
}

export interface OpsetImport {
  readonly domain: string
  readonly version: number
}

/** A whole field: its number, and its bytes from tag to end. */
export interface FieldRange extends Range {
  readonly field: number
}

export interface GraphIndex {
  readonly name: string
  readonly nodes: readonly NodeEntry[]
  readonly initializers: readonly InitializerEntry[]
  readonly inputs: readonly ValueEntry[]
  readonly outputs: readonly ValueEntry[]
  readonly valueInfos: readonly ValueEntry[]
  /** All other fields, tags included. */
  readonly rest: readonly FieldRange[]
}

export interface NodeEntry extends Range {
  readonly name: string
  readonly opType: string
  readonly domain: string
  readonly overload: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly subgraphs: readonly SubgraphEntry[]
}

export interface SubgraphEntry {
  /** Name of the attribute that holds it. */
  readonly attribute: string
  readonly graph: GraphIndex
}

export interface InitializerEntry extends Range {
  readonly name: string
  readonly info: TensorInfo
  readonly sparse: boolean
}

/** A ValueInfoProto; its type is read on demand. */
export interface ValueEntry extends Range {
  readonly name: string
}

export interface FunctionEntry extends Range {
  readonly domain: string
  readonly name: string
  readonly overload: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly nodes: readonly NodeEntry[]
}
