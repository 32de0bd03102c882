/**
 * Writing protobuf messages by stitching: new fields and slices of existing files side by side.
 *
 * A message under construction is a list of pieces and their total size. Slices of a source
 * are copied only when the whole is written, so building costs what is new, not what is old.
 */
import { allocate, type ByteSource, readInPieces } from './byte-source.ts'
import { BYTES, VARINT } from './wire-reader.ts'

/** Bytes [start, stop) of a source. */
export interface Slice {
  readonly source: ByteSource
  readonly start: number
  readonly stop: number
}

type Piece = Uint8Array | Slice

export class MessageWriter {
  size = 0
  readonly #pieces: Piece[] = []

  /** Appends what is already encoded: whole fields, tags included. */
  raw(bytes: Uint8Array): this {
    if (bytes.length > 0) this.#pieces.push(bytes)
    this.size += bytes.length
    return this
  }

  /** Appends encoded fields that lie in a source. */
  slice(slice: Slice): this {
    if (slice.stop > slice.start) this.#pieces.push(slice)
    this.size += slice.stop - slice.start
    return this
  }

  /** A field whose payload lies in a source. */
  sliceField(field: number, slice: Slice): this {
    return this.#header(field, slice.stop - slice.start).slice(slice)
  }

  bytesField(field: number, bytes: Uint8Array): this {
    return this.#header(field, bytes.length).raw(bytes)
  }

  stringField(field: number, text: string): this {
    const length = Buffer.byteLength(text)
    const head = varintLength((field << 3) | BYTES) + varintLength(length)
    const bytes = Buffer.allocUnsafe(head + length)
    putVarint(bytes, putVarint(bytes, 0, (field << 3) | BYTES), length)
    bytes.write(text, head)
    return this.raw(bytes)
  }

  /** An integer field; negative numbers take ten bytes, as int32 and int64 do on the wire. */
  varintField(field: number, value: number | bigint): this {
    const bits = BigInt.asUintN(64, BigInt(value))
    const bytes = new Uint8Array(varintLength((field << 3) | VARINT) + varintLength(bits))
    putVarint(bytes, putVarint(bytes, 0, (field << 3) | VARINT), bits)
    return this.raw(bytes)
  }

  messageField(field: number, message: MessageWriter): this {
    this.#header(field, message.size)
    for (const piece of message.#pieces) this.#pieces.push(piece)
    this.size += message.size
    return this
  }

  toBytes(): Uint8Array {
    const out = allocate(this.size, '<new model>')
    let at = 0
    for (const piece of this.#pieces) {
      const bytes =
        piece instanceof Uint8Array ? piece : piece.source.read(piece.start, piece.stop - piece.start)
      out.set(bytes, at)
      at += bytes.length
    }
    return out
  }

  /** The message in order, in chunks of bounded size: for files too large for one array. */
  *chunks(): Generator<Uint8Array> {
    for (const piece of this.#pieces) {
      if (piece instanceof Uint8Array) yield piece
      else yield* readInPieces(piece.source, piece.start, piece.stop)
    }
  }

  #header(field: number, length: number): this {
    const tag = (field << 3) | BYTES
    const bytes = new Uint8Array(varintLength(tag) + varintLength(length))
    putVarint(bytes, putVarint(bytes, 0, tag), length)
    return this.raw(bytes)
  }
}

function varintLength(value: number | bigint): number {
  let length = 1
  if (typeof value === 'number') for (let rest = value; rest >= 0x80; rest /= 128) length++
  else for (let rest = value; rest >= 0x80n; rest >>= 7n) length++
  return length
}

function putVarint(out: Uint8Array, at: number, value: number | bigint): number {
  if (typeof value === 'number' && value <= 0x7fff_ffff) {
    for (; value >= 0x80; value >>>= 7) out[at++] = (value & 0x7f) | 0x80
    out[at++] = value
    return at
  }
  let rest = BigInt(value)
  for (; rest >= 0x80n; rest >>= 7n) out[at++] = Number(rest & 0x7fn) | 0x80
  out[at++] = Number(rest)
  return at
}
