/**
 * What a ValueInfoProto says beyond a name, a dtype and a shape: documentation, denotations, fields
 * of later versions. As encoded fields, by the message that they stand in.
 *
 * So a value that gets another name or a better shape keeps all that is not about these.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { BYTES, WireReader } from '../bytes/wire-reader.ts'
import { MessageWriter } from '../bytes/wire-writer.ts'
import { DIM, SHAPE, TENSOR_TYPE, TYPE, VALUE_INFO } from './fields.ts'
import type { Range } from './model-index.ts'

export interface ValueExtras {
  readonly info: Uint8Array
  /** Of the TypeProto, its tensor type and its shape; empty where the value is no tensor. */
  readonly type: Uint8Array
  readonly tensor: Uint8Array
  readonly shape: Uint8Array
  /** By axis; those without are absent. */
  readonly dims: ReadonlyMap<number, Uint8Array>
  readonly rank: number
}

/** Undefined where there is nothing, as nearly everywhere. */
export function readValueExtras(source: ByteSource, entry: Range): ValueExtras | undefined {
  const [info, type, tensor, shape] = Array.from({ length: 4 }, () => new MessageWriter()) as Four
  const dims = new Map<number, Uint8Array>()
  let rank = 0
  const reader = new WireReader(source)
  const readDim = (range: Range): void => {
    const dim = new MessageWriter()
    walk(reader, range, { [DIM.value]: skip, [DIM.param]: skip }, dim)
    if (dim.size > 0) dims.set(rank, dim.toBytes())
    rank++
  }
  const readShape = (range: Range): void => walk(reader, range, { [SHAPE.dim]: readDim }, shape)
  const readTensor = (range: Range): void =>
    walk(reader, range, { [TENSOR_TYPE.elemType]: skip, [TENSOR_TYPE.shape]: readShape }, tensor)
  const readType = (range: Range): void =>
    walk(reader, range, { ...OTHER_KINDS, [TYPE.tensor]: readTensor }, type)
  walk(reader, entry, { [VALUE_INFO.name]: skip, [VALUE_INFO.type]: readType }, info)
  if (info.size + type.size + tensor.size + shape.size + dims.size === 0) return undefined
  return {
    info: info.toBytes(),
    type: type.toBytes(),
    tensor: tensor.toBytes(),
    shape: shape.toBytes(),
    dims,
    rank,
  }
}

type Four = [MessageWriter, MessageWriter, MessageWriter, MessageWriter]

type Visit = (range: Range) => void

const skip: Visit = () => undefined

/** These are carried whole; see `OpaqueType`. */
const OTHER_KINDS: Readonly<Record<number, Visit>> = Object.fromEntries(
  [TYPE.sequence, TYPE.map, TYPE.opaque, TYPE.sparse, TYPE.optional].map((field) => [field, skip]),
)

/** Visits the fields that are known and copies the others. */
function walk(
  reader: WireReader,
  { start, stop }: Range,
  known: Readonly<Record<number, Visit>>,
  others: MessageWriter,
): void {
  reader.seek(start)
  while (reader.next(stop)) {
    const resume = reader.stop
    const visit = known[reader.field]
    if (visit === undefined) others.slice({ source: reader.source, start: reader.fieldStart, stop: resume })
    else if (visit !== skip) {
      reader.expect(BYTES, 'a part of a type')
      visit({ start: reader.start, stop: resume })
    }
    reader.seek(resume)
  }
}
