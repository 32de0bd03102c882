/** The lists and texts of an attribute: a range of the source -> values, read when they are asked for. */
import type { ByteSource } from '../bytes/byte-source.ts'
import { MAX_TEXT_BYTES, WireReader } from '../bytes/wire-reader.ts'
import { ModelTestError } from '../errors.ts'
import { ATTRIBUTE } from './fields.ts'
import type { Range } from './model-index.ts'

export function readInts(source: ByteSource, range: Range): bigint[] {
  const values: bigint[] = []
  for (const reader of fieldsOf(source, range, ATTRIBUTE.ints)) {
    for (const value of reader.integers('a list of integers')) append(reader, values, value)
  }
  return values
}

export function readFloats(source: ByteSource, range: Range): number[] {
  const values: number[] = []
  for (const reader of fieldsOf(source, range, ATTRIBUTE.floats)) {
    const { bytes } = reader
    if (bytes.length % 4 !== 0) throw reader.malformed('a list of floats ends inside a number')
    for (let at = 0; at < bytes.length; at += 4) append(reader, values, floatAt(bytes, at))
  }
  return values
}

export function readStrings(source: ByteSource, range: Range): string[] {
  const values: string[] = []
  for (const reader of fieldsOf(source, range, ATTRIBUTE.strings)) {
    append(reader, values, textOf(source, { start: reader.start, stop: reader.stop }))
  }
  return values
}

function append<T>(reader: WireReader, values: T[], value: T): void {
  if (values.push(value) <= MAX_LIST) return
  throw new ModelTestError('MODEL_TOO_LARGE', `an attribute lists more than ${MAX_LIST} values`, {
    file: reader.source.name,
    offset: reader.fieldStart,
    hint: 'Store them as a tensor; check where the file comes from.',
  })
}

/** Longer lists belong into tensors; as JavaScript values they take up to a hundred times their size. */
const MAX_LIST = 4 * 1024 * 1024

function* fieldsOf(source: ByteSource, { start, stop }: Range, field: number): Generator<WireReader> {
  const reader = new WireReader(source).seek(start)
  while (reader.next(stop)) {
    const resume = reader.stop
    if (reader.field === field) yield reader
    reader.seek(resume)
  }
}

export function floatAt(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getFloat32(at, true)
}

/** Strings of attributes are bytes by definition: what is no UTF-8 is no fault of the file. */
export function textOf(source: ByteSource, { start, stop }: Range): string {
  if (stop - start > MAX_TEXT_BYTES) {
    throw new WireReader(source).malformed(`a text of ${stop - start} bytes is too long`, start)
  }
  const bytes = source.read(start, stop - start)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}
