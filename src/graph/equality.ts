/**
 * Content equality of parts: a part -> a digest that is the same for parts that compute the same.
 *
 * Operators, attributes, wiring, types of inputs and the content of weights count; names,
 * documentation and the way a tensor is stored do not.
 */
import { createHash, type Hash } from 'node:crypto'
import { type ByteSource, readInPieces } from '../bytes/byte-source.ts'
import { constantContent } from '../onnx/constant.ts'
import { valueInfo, type ValueType } from '../onnx/value-type.ts'
import { onnxFromDtype } from '../tensor/dtype.ts'
import { type TensorInfo, tensorFromProto, tensorProtoBytes } from '../tensor/tensor-proto.ts'
import { bytesOfTensor, type Tensor } from '../tensor/tensor.ts'
import type { Range } from '../onnx/model-index.ts'
import type { Part } from './part.ts'
import type { Value } from './resolve.ts'
import { rewriteNode } from './rewrite.ts'
import type { OpenExternal } from './weights.ts'

export function partDigest(
  part: Part,
  typeOf: (value: Value) => ValueType | undefined,
  external: OpenExternal,
): string {
  const hash = createHash('sha256')
  const names = new Map<Value, string>()
  const nameOf = (value: Value): string => {
    const known = names.get(value)
    if (known !== undefined) return known
    const name = `v${names.size}`
    names.set(value, name)
    return name
  }
  for (const node of part.nodes) {
    for (const chunk of rewriteNode(node, { nameOf, strip: true }).chunks()) hash.update(chunk)
  }
  for (const value of part.inputs) hash.update(valueInfo(nameOf(value), typeOf(value)).toBytes())
  for (const value of part.outputs) hash.update(`output ${nameOf(value)}\n`)
  for (const value of part.weights) hash.update(`${nameOf(value)} ${weightDigest(value, external)}\n`)
  for (const [value, tensor] of part.folded) hash.update(`${nameOf(value)} ${tensorDigest(tensor)}\n`)
  return hash.digest('hex')
}

/** Parts with the same content, the first of each kept: the dropped ones as its twins. */
export function dropTwins(
  parts: readonly Part[],
  digestOf: (part: Part) => string,
): { readonly part: Part; readonly twins: readonly Part[] }[] {
  const kept = new Map<string, { part: Part; twins: Part[] }>()
  for (const part of parts) {
    const digest = digestOf(part)
    const first = kept.get(digest)
    if (first === undefined) kept.set(digest, { part, twins: [] })
    else first.twins.push(part)
  }
  return [...kept.values()]
}

const digests = new WeakMap<Value, string>()

function weightDigest(value: Value, external: OpenExternal): string {
  const known = digests.get(value)
  if (known !== undefined) return known
  const digest = computeWeightDigest(value, external)
  digests.set(value, digest)
  return digest
}

function computeWeightDigest(value: Value, external: OpenExternal): string {
  const { source } = value.graph.model
  const { origin } = value
  if (origin.kind === 'initializer') {
    const { entry } = origin
    return entry.sparse ? rangeDigest(value, entry) : storedDigest(value, entry, entry.info, external)
  }
  if (origin.kind !== 'node') throw new TypeError(`"${value.name}" is no weight`)
  const content = constantContent(source, origin.node.entry)
  if (content.kind === 'tensor') return storedDigest(value, content.range, content.info, external)
  return content.kind === 'sparse' ? rangeDigest(value, content.range) : tensorDigest(content.tensor)
}

/** Data in one piece is hashed where it lies; typed lists are brought to the same form first. */
function storedDigest(value: Value, range: Range, info: TensorInfo, external: OpenExternal): string {
  const { source } = value.graph.model
  if (info.external !== undefined) {
    const file = external(info.external.location, info.name)
    const { offset, length = file.size - offset } = info.external
    return describedDigest(info.dataType, info.dims, (hash) => hashRange(hash, file, offset, offset + length))
  }
  if (info.raw !== undefined) {
    const { start, stop } = info.raw
    return describedDigest(info.dataType, info.dims, (hash) => hashRange(hash, source, start, stop))
  }
  return tensorDigest(tensorFromProto(source, range.start, range.stop).tensor)
}

function tensorDigest(tensor: Tensor): string {
  const bytes = tensor.dtype === 'string' ? tensorProtoBytes('', tensor) : bytesOfTensor(tensor)
  return describedDigest(onnxFromDtype(tensor.dtype), tensor.shape, (hash) => hash.update(bytes))
}

function rangeDigest(value: Value, { start, stop }: Range): string {
  return describedDigest(0, [], (hash) => hashRange(hash, value.graph.model.source, start, stop))
}

function describedDigest(dataType: number, dims: readonly number[], update: (hash: Hash) => void): string {
  const hash = createHash('sha256').update(`${dataType} ${dims.join(' ')}\n`)
  update(hash)
  return hash.digest('hex')
}

function hashRange(hash: Hash, source: ByteSource, start: number, stop: number): void {
  for (const piece of readInPieces(source, start, stop)) hash.update(piece)
}
