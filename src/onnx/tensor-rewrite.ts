/**
 * A TensorProto with another name, or with its data elsewhere; all other bytes stay as they are.
 *
 * The data can be taken in (from an external file into raw_data) or put out (raw_data becomes
 * a reference to a range of a file), without ever being decoded.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { WireReader } from '../bytes/wire-reader.ts'
import { MessageWriter, type Slice } from '../bytes/wire-writer.ts'
import type { ExternalData } from '../tensor/tensor-proto.ts'
import { ENTRY, SPARSE, TENSOR } from './fields.ts'
import type { Range } from './model-index.ts'

export interface TensorChange {
  readonly name?: string
  /** Data to hold in raw_data in place of what there is. */
  readonly raw?: Slice
  /** Where the data lies, in place of what there is. */
  readonly external?: ExternalData
}

export function rewriteTensor(source: ByteSource, range: Range, change: TensorChange): MessageWriter {
  const dropped = droppedFields(change)
  const message = new MessageWriter()
  const reader = new WireReader(source).seek(range.start)
  while (reader.next(range.stop)) {
    if (!dropped.has(reader.field)) message.slice({ source, start: reader.fieldStart, stop: reader.stop })
  }
  if (change.name !== undefined) message.stringField(TENSOR.name, change.name)
  if (change.raw !== undefined) message.sliceField(TENSOR.rawData, change.raw)
  if (change.external !== undefined) externalFields(message, change.external)
  return message
}

/** The name of a sparse tensor is that of its values. */
export function renameSparse(source: ByteSource, range: Range, name: string): MessageWriter {
  const reader = new WireReader(source).seek(range.start)
  const message = new MessageWriter()
  while (reader.next(range.stop)) {
    const { start, stop, fieldStart } = reader
    if (reader.field === SPARSE.values) {
      message.messageField(SPARSE.values, rewriteTensor(source, { start, stop }, { name }))
    } else message.slice({ source, start: fieldStart, stop })
  }
  return message
}

function droppedFields({ name, raw, external }: TensorChange): Set<number> {
  const dropped = new Set<number>()
  if (name !== undefined) dropped.add(TENSOR.name)
  if (raw !== undefined || external !== undefined) {
    for (const field of [TENSOR.rawData, TENSOR.externalData, TENSOR.dataLocation]) dropped.add(field)
  }
  return dropped
}

const EXTERNAL = 1

function externalFields(message: MessageWriter, { location, offset, length }: ExternalData): void {
  const entries = { location, offset, length }
  for (const [key, value] of Object.entries(entries)) {
    if (value === undefined) continue
    const entry = new MessageWriter().stringField(ENTRY.key, key).stringField(ENTRY.value, String(value))
    message.messageField(TENSOR.externalData, entry)
  }
  message.varintField(TENSOR.dataLocation, EXTERNAL)
}
