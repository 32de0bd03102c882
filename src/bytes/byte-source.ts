/**
 * Where bytes come from: a name for messages, a size, and positional reads.
 *
 * Pure: the implementation over a file lives in files/. A read returns exactly the bytes
 * asked for or throws; what it returns may be a view of the source, so nobody writes to it.
 */
import { ModelTestError } from '../errors.ts'

export interface ByteSource {
  /** What messages call it: a path, or a description such as `<bytes>`. */
  readonly name: string
  readonly size: number
  read(offset: number, length: number): Uint8Array
}

export function bytesSource(bytes: Uint8Array, name = '<bytes>'): ByteSource {
  return {
    name,
    size: bytes.length,
    read(offset, length) {
      checkRange({ name, size: bytes.length }, offset, length)
      return bytes.subarray(offset, offset + length)
    },
  }
}

/** Reading in pieces of this size keeps memory flat, however long the range. */
const PIECE_BYTES = 4 * 1024 * 1024

/** The bytes [start, stop) in order. */
export function* readInPieces(
  source: ByteSource,
  start = 0,
  stop: number = source.size,
): Generator<Uint8Array> {
  for (let at = start; at < stop; at += PIECE_BYTES) yield source.read(at, Math.min(PIECE_BYTES, stop - at))
}

/** Up to this many bytes, asking for memory that is not cleared takes longer than clearing it. */
const CHEAP_TO_CLEAR = 4096

/** Memory for so many bytes, not cleared; an error where the machine or the runtime has less. */
export function allocate(length: number, name: string): Uint8Array {
  if (length <= CHEAP_TO_CLEAR) return new Uint8Array(length)
  try {
    return new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
  } catch (cause) {
    throw new ModelTestError('MODEL_TOO_LARGE', `${length} bytes do not fit into memory at once`, {
      file: name,
      hint: 'Keep large weights in external data files, or give the process more memory.',
      cause,
    })
  }
}

/** Throws the one error for a read past the end, so that every source words it alike. */
export function checkRange(source: Pick<ByteSource, 'name' | 'size'>, offset: number, length: number): void {
  if (offset >= 0 && length >= 0 && offset + length <= source.size) return
  throw new ModelTestError(
    'FILE_UNREADABLE',
    `${length} bytes are wanted, but the file ends at byte ${source.size}`,
    { file: source.name, offset, hint: 'The file is cut short; download or export it again.' },
  )
}
