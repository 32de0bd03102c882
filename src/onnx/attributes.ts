/**
 * The attributes of a node, decoded on demand.
 *
 * Scalars, strings and lists become values; tensors and subgraphs stay ranges of the source,
 * since a Constant may hold gigabytes.
 */
import onnxProto from 'onnx-proto'
import type { ByteSource } from '../bytes/byte-source.ts'
import { BYTES, WireReader } from '../bytes/wire-reader.ts'
import { ATTRIBUTE, NODE } from './fields.ts'
import type { NodeEntry, Range } from './model-index.ts'

const { AttributeProto } = onnxProto.onnx

export type AttributeValue =
  | { readonly kind: 'int'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'ints'; readonly value: readonly bigint[] }
  | { readonly kind: 'floats'; readonly value: readonly number[] }
  | { readonly kind: 'strings'; readonly value: readonly string[] }
  | { readonly kind: 'tensor'; readonly range: Range }
  | { readonly kind: 'sparse'; readonly range: Range }
  | { readonly kind: 'graph' }
  | { readonly kind: 'reference'; readonly name: string }
  | { readonly kind: 'other' }

export function readAttributes(source: ByteSource, node: Range): Map<string, AttributeValue> {
  const reader = new WireReader(source).seek(node.start)
  const attributes = new Map<string, AttributeValue>()
  while (reader.next(node.stop)) {
    if (reader.field !== NODE.attribute) continue
    reader.expect(BYTES, 'an attribute')
    const { start, stop } = reader
    const { name, value } = readAttribute(reader, start, stop)
    attributes.set(name, value)
    reader.seek(stop)
  }
  return attributes
}

/** The integer attribute `name`, or what the operator's definition says when it is absent. */
export function intAttribute(source: ByteSource, node: NodeEntry, name: string): number | undefined {
  const value = readAttributes(source, node).get(name)
  return value?.kind === 'int' ? Number(value.value) : undefined
}

function readAttribute(
  reader: WireReader,
  start: number,
  stop: number,
): { name: string; value: AttributeValue } {
  reader.seek(start)
  let [name, large] = ['', undefined as AttributeValue | undefined]
  while (reader.next(stop)) {
    if (reader.field === ATTRIBUTE.name) {
      reader.expect(BYTES, 'an attribute name')
      name = reader.string
    } else large ??= largeValue(reader)
  }
  return { name, value: large ?? smallValue(reader, start, stop) }
}

function largeValue(reader: WireReader): AttributeValue | undefined {
  const range = { start: reader.start, stop: reader.stop }
  switch (reader.field) {
    case ATTRIBUTE.t:
      reader.expect(BYTES, 'a tensor attribute')
      return { kind: 'tensor', range }
    case ATTRIBUTE.sparseTensor:
      reader.expect(BYTES, 'a sparse tensor attribute')
      return { kind: 'sparse', range }
    case ATTRIBUTE.g:
    case ATTRIBUTE.graphs:
      return { kind: 'graph' }
    default:
      return undefined
  }
}

function smallValue(reader: WireReader, start: number, stop: number): AttributeValue {
  const proto = decode(reader, start, stop)
  const has = (key: keyof typeof proto): boolean => Object.hasOwn(proto, key)
  const isList = (key: 'ints' | 'floats' | 'strings', type: number): boolean =>
    proto[key].length > 0 || (has('type') && Number(proto.type) === type)
  if (has('refAttrName') && proto.refAttrName !== '') return { kind: 'reference', name: proto.refAttrName }
  if (isList('ints', 7)) return { kind: 'ints', value: proto.ints.map(toBigInt) }
  if (isList('floats', 6)) return { kind: 'floats', value: proto.floats }
  if (isList('strings', 8)) return { kind: 'strings', value: proto.strings.map(toText) }
  // Writers may leave out zeros, so the declared type decides where there is one.
  const type = has('type') ? Number(proto.type) : has('i') ? 2 : has('f') ? 1 : has('s') ? 3 : 0
  if (type === 2) return { kind: 'int', value: toBigInt(proto.i) }
  if (type === 1) return { kind: 'float', value: proto.f }
  if (type === 3) return { kind: 'string', value: toText(proto.s) }
  return { kind: 'other' }
}

function decode(reader: WireReader, start: number, stop: number): InstanceType<typeof AttributeProto> {
  try {
    return AttributeProto.decode(reader.source.read(start, stop - start))
  } catch (cause) {
    throw reader.malformed(`an attribute cannot be decoded (${(cause as Error).message})`, start)
  }
}

function toBigInt(value: number | { readonly low: number; readonly high: number }): bigint {
  if (typeof value === 'number') return BigInt(value)
  return (BigInt(value.high) << 32n) | BigInt(value.low >>> 0)
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}
