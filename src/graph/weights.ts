/**
 * Weights in a part: an initializer or a Constant node -> an initializer of the new model.
 *
 * Small ones are copied. Large ones can be referenced where they lie, in the model file or in
 * its external data, so that a part of a model of many gigabytes costs some kilobytes.
 */
import { type ByteSource, checkRange } from '../bytes/byte-source.ts'
import { WireReader } from '../bytes/wire-reader.ts'
import type { MessageWriter, Slice } from '../bytes/wire-writer.ts'
import { ModelTestError } from '../errors.ts'
import { constantContent } from '../onnx/constant.ts'
import { GRAPH } from '../onnx/fields.ts'
import type { Range } from '../onnx/model-index.ts'
import { renameSparse, rewriteTensor, type TensorChange } from '../onnx/tensor-rewrite.ts'
import {
  type ReadExternal,
  tensorFromProto,
  type ExternalData,
  readTensorInfo,
  type TensorInfo,
  tensorProtoBytes,
} from '../tensor/tensor-proto.ts'
import type { Tensor } from '../tensor/tensor.ts'
import type { Value } from './resolve.ts'

export type WeightPolicy =
  /** Everything into the part; external data is read from what `external` opens. */
  | { readonly kind: 'inline'; readonly external: OpenExternal }
  /**
   * Data of `minBytes` or more stays where it is. `location` is what the model file itself is
   * called in the folder that the runtime is told to look in.
   */
  | { readonly kind: 'reference'; readonly location: string; readonly minBytes: number }
  /** Data of `minBytes` or more goes to a file called `location`; `place` says at which offset. */
  | {
      readonly kind: 'beside'
      readonly location: string
      readonly minBytes: number
      readonly place: (data: Slice) => number
      readonly external: OpenExternal
    }

/** The file that an initializer's external data lies in, checked to be inside the model's folder. */
export type OpenExternal = (location: string, tensorName: string) => ByteSource

/** Appends the initializer for a weight to a graph message. */
export function addWeight(
  graph: MessageWriter,
  value: Value,
  policy: WeightPolicy,
  name: string = value.name,
): void {
  const { source } = value.graph.model
  const { origin } = value
  if (origin.kind === 'initializer') {
    const { entry } = origin
    if (entry.sparse) graph.messageField(GRAPH.sparseInitializer, renameSparse(source, entry, name))
    else addTensor(graph, source, entry, entry.info, name, policy)
    return
  }
  if (origin.kind !== 'node') throw new TypeError(`"${value.name}" is no weight`)
  const content = constantContent(source, origin.node.entry)
  if (content.kind === 'tensor') addTensor(graph, source, content.range, content.info, name, policy)
  else if (content.kind === 'sparse')
    graph.messageField(GRAPH.sparseInitializer, renameSparse(source, content.range, name))
  else addConstant(graph, name, content.tensor)
}

export function addConstant(graph: MessageWriter, name: string, tensor: Tensor): void {
  graph.bytesField(GRAPH.initializer, tensorProtoBytes(name, tensor))
}

/** The tensor that a weight is, read whole. */
export function readWeight(value: Value, external: OpenExternal): Tensor {
  const { source } = value.graph.model
  const readExternal: ReadExternal = (location, offset, length) => {
    const file = external(location, value.name)
    return file.read(offset, length ?? file.size - offset)
  }
  const { origin } = value
  if (origin.kind === 'initializer' && !origin.entry.sparse) {
    return tensorFromProto(source, origin.entry.start, origin.entry.stop, readExternal).tensor
  }
  const content = origin.kind === 'node' ? constantContent(source, origin.node.entry) : undefined
  if (content?.kind === 'list') return content.tensor
  if (content?.kind === 'tensor')
    return tensorFromProto(source, content.range.start, content.range.stop, readExternal).tensor
  throw new ModelTestError('UNSUPPORTED_DTYPE', `"${value.name}" is a sparse tensor, which is not read`, {
    file: source.name,
    hint: 'Export the model with dense weights.',
  })
}

/** Bytes that a weight's data takes, wherever they lie. */
export function weightBytes(value: Value): number {
  const info = weightInfo(value)
  return info?.dataBytes ?? 0
}

export function weightInfo(value: Value): TensorInfo | undefined {
  const { origin } = value
  if (origin.kind === 'initializer') return origin.entry.info
  if (origin.kind !== 'node') return undefined
  const content = constantContent(value.graph.model.source, origin.node.entry)
  if (content.kind !== 'tensor') return undefined
  return readTensorInfo(new WireReader(value.graph.model.source), content.range.start, content.range.stop)
}

function addTensor(
  graph: MessageWriter,
  source: ByteSource,
  range: Range,
  info: TensorInfo,
  name: string,
  policy: WeightPolicy,
): void {
  const moved = movedData(source, info, policy)
  if (moved === undefined && info.name === name)
    graph.sliceField(GRAPH.initializer, { source, ...bounds(range) })
  else graph.messageField(GRAPH.initializer, rewriteTensor(source, range, { name, ...moved }))
}

/** How the data must move for the policy; undefined when it can stay as it is. */
function movedData(source: ByteSource, info: TensorInfo, policy: WeightPolicy): TensorChange | undefined {
  if (policy.kind === 'reference') {
    if (info.raw === undefined || info.raw.stop - info.raw.start < policy.minBytes) return undefined
    const { start, stop } = info.raw
    return { external: { location: policy.location, offset: start, length: stop - start } }
  }
  const outside =
    info.external === undefined ? undefined : externalSlice(info, info.external, policy.external)
  const data = outside ?? (info.raw === undefined ? undefined : { source, ...info.raw })
  if (policy.kind === 'inline' || data === undefined || data.stop - data.start < policy.minBytes) {
    return outside === undefined ? undefined : { raw: outside }
  }
  const length = data.stop - data.start
  return { external: { location: policy.location, offset: policy.place(data), length } }
}

function externalSlice(
  info: TensorInfo,
  { location, offset, length }: ExternalData,
  open: OpenExternal,
): Slice {
  const source = open(location, info.name)
  const stop = length === undefined ? source.size : offset + length
  checkRange(source, offset, stop - offset)
  return { source, start: offset, stop }
}

function bounds({ start, stop }: Range): Range {
  return { start, stop }
}
