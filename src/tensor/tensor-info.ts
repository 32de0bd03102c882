/**
 * A TensorProto without its data: a range of the file -> name, dtype, dims, and where the data lies.
 *
 * Costs the field headers, not the weights. What holds of the result: dims are non-negative safe
 * integers; `external` is there exactly when the data lives outside the message. The dtype is the
 * bare code, so that a file with a dtype newer than this library can still be indexed.
 */
import type { ModelTestError } from '../errors.ts'
import { BYTES, VARINT, type WireReader } from '../bytes/wire-reader.ts'

/** Bytes [start, stop) of the source. */
export interface ByteRange {
  readonly start: number
  readonly stop: number
}

export interface ExternalData {
  /** A path relative to the folder of the model. */
  readonly location: string
  readonly offset: number
  /** Absent: up to the end of the file. */
  readonly length?: number
}

export interface TensorInfo {
  readonly name: string
  /** TensorProto.DataType. */
  readonly dataType: number
  readonly dims: number[]
  /** The name with its tag, so that it can be cut out. */
  readonly nameField?: ByteRange
  /** The payload of raw_data. */
  readonly raw?: ByteRange
  readonly external?: ExternalData
  /** Bytes of payload over all data fields; with external data, its length where known. */
  readonly dataBytes: number
}

/** TensorProto's field numbers. */
export const FIELD = {
  dims: 1,
  dataType: 2,
  segment: 3,
  floatData: 4,
  int32Data: 5,
  stringData: 6,
  int64Data: 7,
  name: 8,
  rawData: 9,
  doubleData: 10,
  uint64Data: 11,
  externalData: 13,
  dataLocation: 14,
} as const

const EXTERNAL = 1

/** Far beyond any runtime; a hostile file may claim millions. */
const MAX_RANK = 4096

/** Reads the TensorProto at [start, stop); the reader is left at `stop`. */
export function readTensorInfo(reader: WireReader, start: number, stop: number): TensorInfo {
  const draft: Draft = { name: '', dataType: 0, dims: [], dataBytes: 0, location: 0, entries: new Map() }
  reader.seek(start)
  while (reader.next(stop)) readField(reader, draft)
  const { location, entries, ...info } = draft
  if (location !== EXTERNAL) return info
  const external = externalFromEntries(entries, (message) => reader.malformed(message, start))
  return { ...info, external, dataBytes: info.dataBytes + (external.length ?? 0) }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

interface Draft extends Mutable<Omit<TensorInfo, 'external'>> {
  location: number
  readonly entries: Map<string, string>
}

function readField(reader: WireReader, draft: Draft): void {
  switch (reader.field) {
    case FIELD.dims:
      for (const dim of reader.integers('TensorProto.dims')) {
        draft.dims.push(dimension(reader, dim))
        if (draft.dims.length > MAX_RANK)
          throw reader.malformed(`a tensor has more than ${MAX_RANK} dimensions`)
      }
      return
    case FIELD.dataType:
      reader.expect(VARINT, 'TensorProto.data_type')
      draft.dataType = reader.number
      return
    case FIELD.segment:
      throw reader.malformed(
        'a tensor is stored in segments; or this is a sequence or an optional, not a tensor',
      )
    case FIELD.name:
      reader.expect(BYTES, 'TensorProto.name')
      draft.name = reader.string
      draft.nameField = { start: reader.fieldStart, stop: reader.stop }
      return
    case FIELD.rawData:
      reader.expect(BYTES, 'TensorProto.raw_data')
      draft.raw = { start: reader.start, stop: reader.stop }
      draft.dataBytes += reader.stop - reader.start
      return
    case FIELD.externalData:
      reader.expect(BYTES, 'TensorProto.external_data')
      readEntry(reader, draft.entries)
      return
    case FIELD.dataLocation:
      reader.expect(VARINT, 'TensorProto.data_location')
      draft.location = reader.number
      return
    default:
      if (isTypedData(reader.field)) draft.dataBytes += reader.stop - reader.start
  }
}

function isTypedData(field: number): boolean {
  return (
    (field >= FIELD.floatData && field <= FIELD.int64Data) ||
    field === FIELD.doubleData ||
    field === FIELD.uint64Data
  )
}

function dimension(reader: WireReader, dim: bigint): number {
  if (dim >= 0n && dim <= Number.MAX_SAFE_INTEGER) return Number(dim)
  throw reader.malformed(`a tensor has a dimension of size ${dim}`)
}

/** A StringStringEntryProto. */
function readEntry(reader: WireReader, entries: Map<string, string>): void {
  let [key, value] = ['', '']
  const stop = reader.stop
  reader.seek(reader.start)
  while (reader.next(stop)) {
    if (reader.field > 2) continue
    reader.expect(BYTES, 'an entry of TensorProto.external_data')
    if (reader.field === 1) key = reader.string
    else value = reader.string
  }
  entries.set(key, value)
}

function externalFromEntries(
  entries: ReadonlyMap<string, string>,
  malformed: (message: string) => ModelTestError,
): ExternalData {
  const location = entries.get('location')
  if (!location) throw malformed('a tensor with external data does not say in which file')
  const length = byteCount(entries, 'length', malformed)
  const offset = byteCount(entries, 'offset', malformed) ?? 0
  return length === undefined ? { location, offset } : { location, offset, length }
}

function byteCount(
  entries: ReadonlyMap<string, string>,
  key: string,
  malformed: (message: string) => ModelTestError,
): number | undefined {
  const text = entries.get(key)
  if (text === undefined) return undefined
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw malformed(`the ${key} of external data is ${JSON.stringify(text)}, not a number of bytes`)
}
