/**
 * The type of a value: TypeProto <-> ValueType.
 *
 * Tensors are taken apart, since everything asks for their dtype and shape. The other kinds
 * (sequence, map, optional, …) are carried as the bytes they came in.
 */
import { BYTES, MAX_DEPTH, VARINT, type WireReader } from '../bytes/wire-reader.ts'
import { MessageWriter } from '../bytes/wire-writer.ts'
import { DIM, ELEMENT, SHAPE, TENSOR_TYPE, TYPE, VALUE_INFO } from './fields.ts'
import type { ValueExtras } from './value-extras.ts'

/** A fixed size, a symbol, or nothing known. */
export type Dim = number | string | undefined

export interface TensorType {
  readonly kind: 'tensor'
  /** TensorProto.DataType. */
  readonly dataType: number
  /** Undefined: not even the rank is known. */
  readonly shape: readonly Dim[] | undefined
}

export interface OpaqueType {
  readonly kind: 'sparse' | 'sequence' | 'optional' | 'map' | 'opaque'
  /** The TypeProto; empty when only the kind is known. */
  readonly encoded: Uint8Array
}

export type ValueType = TensorType | OpaqueType

export function tensorType(dataType: number, shape?: readonly Dim[]): TensorType {
  return { kind: 'tensor', dataType, shape }
}

/** Reads the type in a ValueInfoProto; undefined when it declares none. */
export function readValueInfoType(reader: WireReader, start: number, stop: number): ValueType | undefined {
  reader.seek(start)
  let type: ValueType | undefined
  while (reader.next(stop)) {
    if (reader.field !== VALUE_INFO.type) continue
    reader.expect(BYTES, 'the type of a value')
    const resume = reader.stop
    type = readType(reader, reader.start, reader.stop) ?? type
    reader.seek(resume)
  }
  return type
}

/** Reads a TypeProto; undefined when it names none. */
export function readType(reader: WireReader, start: number, stop: number, depth = 0): ValueType | undefined {
  reader.seek(start)
  let type: ValueType | undefined
  while (reader.next(stop)) {
    const kind = KINDS.get(reader.field)
    if (kind === undefined) continue
    reader.expect(BYTES, 'a type')
    if (kind !== 'tensor') {
      checkElementType(reader, kind, depth)
      return { kind, encoded: depth > 0 ? NOT_READ : reader.source.read(start, stop - start).slice() }
    }
    const resume = reader.stop
    type = readTensorType(reader, reader.start, reader.stop)
    reader.seek(resume)
  }
  return type
}

/** Of element types only the depth is of interest; reading each level would read the innermost over and over. */
const NOT_READ = new Uint8Array(0)

/** A ValueInfoProto; `extras` is what else it is to say. */
export function valueInfo(name: string, type: ValueType | undefined, extras?: ValueExtras): MessageWriter {
  const info = new MessageWriter().stringField(VALUE_INFO.name, name)
  const isKnown = type !== undefined && (type.kind === 'tensor' || type.encoded.length > 0)
  if (isKnown) info.messageField(VALUE_INFO.type, typeMessage(type, extras))
  return extras === undefined ? info : info.raw(extras.info)
}

export function describeType(type: ValueType | undefined, dtypeName: (code: number) => string): string {
  if (type === undefined) return 'unknown'
  if (type.kind !== 'tensor') return type.kind
  const dims = type.shape?.map((dim) => (dim === undefined || dim === '' ? '?' : String(dim)))
  return dims === undefined
    ? `${dtypeName(type.dataType)}[…]`
    : `${dtypeName(type.dataType)}[${dims.join(', ')}]`
}

const KINDS = new Map<number, ValueType['kind']>([
  [TYPE.tensor, 'tensor'],
  [TYPE.sequence, 'sequence'],
  [TYPE.map, 'map'],
  [TYPE.opaque, 'opaque'],
  [TYPE.sparse, 'sparse'],
  [TYPE.optional, 'optional'],
])

function readTensorType(reader: WireReader, start: number, stop: number): TensorType | undefined {
  reader.seek(start)
  let dataType = 0
  let shape: Dim[] | undefined
  while (reader.next(stop)) {
    if (reader.field === TENSOR_TYPE.elemType) {
      reader.expect(VARINT, 'an element type')
      dataType = reader.number
    } else if (reader.field === TENSOR_TYPE.shape) {
      reader.expect(BYTES, 'a shape')
      const resume = reader.stop
      shape = readShape(reader, reader.start, reader.stop)
      reader.seek(resume)
    }
  }
  return dataType === 0 ? undefined : { kind: 'tensor', dataType, shape }
}

/** As many as a tensor may have; runtimes stop far below. */
const MAX_RANK = 4096

function readShape(reader: WireReader, start: number, stop: number): Dim[] {
  reader.seek(start)
  const shape: Dim[] = []
  while (reader.next(stop)) {
    if (reader.field !== SHAPE.dim) continue
    reader.expect(BYTES, 'a dimension')
    const resume = reader.stop
    shape.push(readDim(reader, reader.start, reader.stop))
    if (shape.length > MAX_RANK) throw reader.malformed(`a shape has more than ${MAX_RANK} dimensions`)
    reader.seek(resume)
  }
  return shape.slice()
}

/** A negative size is how some exporters write "unknown"; one beyond 2^53 is no size of anything. */
function readDim(reader: WireReader, start: number, stop: number): Dim {
  reader.seek(start)
  let dim: Dim
  while (reader.next(stop)) {
    if (reader.field === DIM.value) {
      reader.expect(VARINT, 'a dimension')
      dim = reader.number >= 0 && Number.isSafeInteger(reader.number) ? reader.number : undefined
    } else if (reader.field === DIM.param) {
      reader.expect(BYTES, 'a symbolic dimension')
      dim = reader.string === '' ? undefined : reader.string
    }
  }
  return dim
}

/** Runtimes recurse into element types, so depth is limited here, before any of them sees the file. */
function checkElementType(reader: WireReader, kind: OpaqueType['kind'], depth: number): void {
  if (kind !== 'sequence' && kind !== 'optional' && kind !== 'map') return
  const elementField = ELEMENT[kind]
  if (depth >= MAX_DEPTH) throw reader.malformed(`types are nested more than ${MAX_DEPTH} deep`)
  const { start, stop } = reader
  reader.seek(start)
  while (reader.next(stop)) {
    if (reader.field !== elementField) continue
    reader.expect(BYTES, 'an element type')
    const resume = reader.stop
    readType(reader, reader.start, reader.stop, depth + 1)
    reader.seek(resume)
  }
}

export function typeMessage(type: ValueType, extras?: ValueExtras): MessageWriter {
  if (type.kind !== 'tensor') return new MessageWriter().raw(type.encoded)
  const tensor = new MessageWriter().varintField(TENSOR_TYPE.elemType, type.dataType)
  if (type.shape !== undefined) tensor.messageField(TENSOR_TYPE.shape, shapeMessage(type.shape, extras))
  if (extras !== undefined) tensor.raw(extras.tensor)
  const message = new MessageWriter().messageField(TYPE.tensor, tensor)
  return extras === undefined ? message : message.raw(extras.type)
}

/** What is said of single dimensions holds as long as there are as many. */
function shapeMessage(shape: readonly Dim[], extras: ValueExtras | undefined): MessageWriter {
  const message = new MessageWriter()
  const dims = extras?.rank === shape.length ? extras.dims : undefined
  for (const [axis, dim] of shape.entries()) message.messageField(SHAPE.dim, dimMessage(dim, dims?.get(axis)))
  return extras === undefined ? message : message.raw(extras.shape)
}

function dimMessage(dim: Dim, extra: Uint8Array | undefined): MessageWriter {
  const message = new MessageWriter()
  if (typeof dim === 'number') message.varintField(DIM.value, dim)
  else if (dim !== undefined) message.stringField(DIM.param, dim)
  return extra === undefined ? message : message.raw(extra)
}
