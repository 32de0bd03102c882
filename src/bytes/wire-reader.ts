/**
 * A cursor over the protobuf wire format: one field at a time, payloads by position.
 *
 * Payloads are never read unless asked for, so a walk over a file costs its field headers,
 * not its weights. All offsets are absolute in the source. Whatever is wrong becomes a
 * MALFORMED_MODEL error with the offset: this is the only place that trusts no byte.
 */
import { ModelTestError } from '../errors.ts'
import type { ByteSource } from './byte-source.ts'

export const VARINT = 0
export const FIXED64 = 1
export const BYTES = 2
export const FIXED32 = 5
const START_GROUP = 3
const END_GROUP = 4

/** Enough for some hundred fields a read, small enough that skipping past weights stays cheap. */
const WINDOW_BYTES = 32 * 1024
/** protobuf's own parsers stop at 100 levels; a deeper file cannot be loaded by any runtime. */
export const MAX_DEPTH = 100
/** Half of what V8 takes for one string. No name or metadata comes near it. */
export const MAX_TEXT_BYTES: number = 256 * 1024 * 1024

const NO_BYTES = new Uint8Array(0)

export class WireReader {
  readonly source: ByteSource
  /** Field number of the current field. */
  field = 0
  wireType = 0
  /** Where the current field's tag begins. */
  fieldStart = 0
  /** The current field's payload: [start, stop). For a varint, the varint's own bytes. */
  start = 0
  stop = 0
  #pos = 0
  #window: Uint8Array = NO_BYTES
  #base = 0
  #low = 0
  #high = 0

  constructor(source: ByteSource) {
    this.source = source
  }

  /** Moves to the start of a message. */
  seek(offset: number): this {
    this.#pos = offset
    return this
  }

  /** Steps to the next field of the message that stops at `end`; false when there is none. */
  next(end: number): boolean {
    if (this.#pos >= end) return false
    this.#readTag(end)
    this.start = this.#pos
    this.#stepOver(end)
    this.#pos = this.stop
    return true
  }

  /** The payload of a varint field as a double; int64 values beyond 2^53 lose bits, see `bigint`. */
  get number(): number {
    return (this.#high | 0) * 0x1_0000_0000 + this.#low
  }

  /** The payload of a varint field as a signed 64-bit integer. */
  get bigint(): bigint {
    return (BigInt(this.#high | 0) << 32n) | BigInt(this.#low)
  }

  get bytes(): Uint8Array {
    return this.#view(this.start, this.stop)
  }

  get string(): string {
    if (this.stop - this.start > MAX_TEXT_BYTES) {
      throw this.malformed(`a text of ${this.stop - this.start} bytes is too long`)
    }
    const bytes = this.bytes
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
    if (text.includes('\uFFFD') && !isUtf8(bytes)) throw this.malformed('a name is not valid UTF-8')
    return text
  }

  /** Throws unless the current field has the wire type that the schema gives it. */
  expect(wireType: number, what: string): void {
    if (this.wireType === wireType) return
    throw this.malformed(`${what} has wire type ${this.wireType} where ${wireType} belongs`)
  }

  /** The values of a repeated integer field, packed or not. */
  *integers(what: string): Generator<bigint> {
    if (this.wireType !== BYTES) {
      this.expect(VARINT, what)
      yield this.bigint
      return
    }
    const stop = this.stop
    this.#pos = this.start
    while (this.#pos < stop) {
      this.#readVarint(stop)
      yield this.bigint
    }
    this.#pos = stop
  }

  malformed(message: string, offset: number = this.fieldStart): ModelTestError {
    return new ModelTestError('MALFORMED_MODEL', message, {
      file: this.source.name,
      offset,
      hint: 'The file is cut short or damaged; download or export it again and compare its size and checksum.',
    })
  }

  #readTag(end: number): void {
    this.fieldStart = this.#pos
    this.#readVarint(end)
    if (this.#high !== 0) throw this.malformed('a field tag is too large')
    this.wireType = this.#low & 7
    this.field = this.#low >>> 3
    if (this.field === 0) throw this.malformed('a field has the number 0')
  }

  #stepOver(end: number): void {
    switch (this.wireType) {
      case VARINT:
        this.#readVarint(end)
        this.stop = this.#pos
        return
      case FIXED64:
        this.stop = this.#within(this.#pos + 8, end)
        return
      case BYTES: {
        this.#readVarint(end)
        this.start = this.#pos
        this.stop = this.#within(this.#pos + this.#high * 0x1_0000_0000 + this.#low, end)
        return
      }
      case FIXED32:
        this.stop = this.#within(this.#pos + 4, end)
        return
      case START_GROUP:
        this.stop = this.#skipGroup(end)
        return
      default:
        throw this.malformed(`wire type ${this.wireType} does not exist here`)
    }
  }

  /** Groups are in no ONNX schema, but an unknown field may be one. */
  #skipGroup(end: number): number {
    const [group, groupStart, start] = [this.field, this.fieldStart, this.start]
    const open = [group]
    while (open.length > 0) {
      if (this.#pos >= end) throw this.malformed(`group ${group} does not end`, groupStart)
      this.#readTag(end)
      if (this.wireType === START_GROUP) open.push(this.field)
      else if (this.wireType === END_GROUP) {
        const wanted = open.pop()
        if (this.field !== wanted) throw this.malformed(`group ${wanted} ends as group ${this.field}`)
      } else {
        this.#stepOver(end)
        this.#pos = this.stop
      }
      if (open.length > MAX_DEPTH) throw this.malformed(`groups are nested more than ${MAX_DEPTH} deep`)
    }
    ;[this.field, this.fieldStart, this.start, this.wireType] = [group, groupStart, start, START_GROUP]
    return this.#pos
  }

  #within(stop: number, end: number): number {
    if (stop <= end) return stop
    throw this.malformed(
      `field ${this.field} should go on to byte ${stop}, but what holds it ends at byte ${end}`,
    )
  }

  #readVarint(end: number): void {
    const begin = this.#pos
    const limit = Math.min(end, begin + 10)
    this.#load(begin, limit)
    let at = begin - this.#base
    let [low, high, shift] = [0, 0, 0]
    for (;;) {
      if (at + this.#base >= limit) throw this.#badVarint(begin, end)
      const byte = this.#window[at++]!
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (shift - 32)
      if (byte < 0x80) break
      shift += 7
    }
    this.#low = low >>> 0
    this.#high = high >>> 0
    this.#pos = at + this.#base
  }

  #badVarint(begin: number, end: number): ModelTestError {
    const why = begin + 10 <= end ? 'a number is longer than 10 bytes' : `a number is cut off at byte ${end}`
    return this.malformed(why, begin)
  }

  #view(start: number, stop: number): Uint8Array {
    if (stop - start > WINDOW_BYTES) return this.source.read(start, stop - start)
    this.#load(start, stop)
    return this.#window.subarray(start - this.#base, stop - this.#base)
  }

  /** Makes [start, stop) available in the window. */
  #load(start: number, stop: number): void {
    if (start >= this.#base && stop <= this.#base + this.#window.length) return
    this.#base = start
    this.#window = this.source.read(start, Math.min(WINDOW_BYTES, this.source.size - start))
  }
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
