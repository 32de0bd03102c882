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

/** New bytes: [start, stop) of a block that many messages share. */
interface Span {
  readonly block: Buffer
  readonly start: number
  readonly stop: number
}

type Piece = Uint8Array | Slice | Span

export class MessageWriter {
  size = 0
  readonly #pieces: Piece[] = []
  /** All pieces are spans. */
  #isNew = true

  /** Appends what is already encoded: whole fields, tags included. */
  raw(bytes: Uint8Array): this {
    if (bytes.length > 0) this.#pieces.push(bytes)
    this.#isNew = false
    this.size += bytes.length
    return this
  }

  /** Appends encoded fields that lie in a source. */
  slice(slice: Slice): this {
    if (slice.stop > slice.start) this.#pieces.push(slice)
    this.#isNew = false
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
    if (length > MAX_SPAN_BYTES) return this.bytesField(field, Buffer.from(text))
    const tag = (field << 3) | BYTES
    const { block, start } = this.#span(varintLength(tag) + varintLength(length) + length)
    block.write(text, putVarint(block, putVarint(block, start, tag), length))
    return this
  }

  /** An integer field; negative numbers take ten bytes, as int32 and int64 do on the wire. */
  varintField(field: number, value: number | bigint): this {
    const tag = (field << 3) | VARINT
    const isShort = typeof value === 'number' && value >= 0 && (value | 0) === value
    const bits = isShort ? value : BigInt.asUintN(64, BigInt(value))
    const { block, start } = this.#span(varintLength(tag) + varintLength(bits))
    putVarint(block, putVarint(block, start, tag), bits)
    return this
  }

  messageField(field: number, message: MessageWriter): this {
    if (message.#isNew && message.size <= MAX_SPAN_BYTES) return this.#shortMessageField(field, message)
    this.#isNew = false
    this.#header(field, message.size)
    for (const piece of message.#pieces) this.#pieces.push(piece)
    this.size += message.size
    return this
  }

  toBytes(): Uint8Array {
    const out = allocate(this.size, '<new model>')
    let at = 0
    for (const piece of this.#pieces) {
      if ('block' in piece) {
        at = copySpan(piece, out, at)
        continue
      }
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
      else if ('block' in piece) yield piece.block.subarray(piece.start, piece.stop)
      else yield* readInPieces(piece.source, piece.start, piece.stop)
    }
  }

  /** Copied at once: a thousand inputs of a node are a thousand pieces then, not ten thousand. */
  #shortMessageField(field: number, message: MessageWriter): this {
    const tag = (field << 3) | BYTES
    const { block, start } = this.#span(varintLength(tag) + varintLength(message.size) + message.size)
    let at = putVarint(block, putVarint(block, start, tag), message.size)
    for (const piece of message.#pieces as Span[]) at = copySpan(piece, block, at)
    return this
  }

  #header(field: number, length: number): this {
    const tag = (field << 3) | BYTES
    const { block, start } = this.#span(varintLength(tag) + varintLength(length))
    putVarint(block, putVarint(block, start, tag), length)
    return this
  }

  /** Room for new bytes at the end of the message. */
  #span(length: number): Span {
    if (used + length > openBlock.length) [openBlock, used] = [Buffer.allocUnsafeSlow(BLOCK_BYTES), 0]
    const span = { block: openBlock, start: used, stop: used + length }
    this.#pieces.push(span)
    used += length
    this.size += length
    return span
  }
}

/** One allocation serves some thousand fields; each on its own costs more than what it holds. */
const BLOCK_BYTES = 64 * 1024
/** Longer texts get memory of their own. */
const MAX_SPAN_BYTES = 4 * 1024

let [openBlock, used] = [Buffer.allocUnsafeSlow(BLOCK_BYTES), 0]

/** Spans are a few bytes long, for which a loop is faster than a view and a copy. */
function copySpan({ block, start, stop }: Span, to: Uint8Array, at: number): number {
  for (let index = start; index < stop; index++) to[at++] = block[index]!
  return at
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
