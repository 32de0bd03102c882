/** The same bytes as every kind of source: in memory, in a small file, and in one read by position. */
import { ftruncateSync, mkdtempSync, openSync, closeSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ByteSource, bytesSource } from '../../src/bytes/byte-source.ts'
import { openFile } from '../../src/files/file-source.ts'

/** Beyond this, files are read in windows. */
const LARGE = 8 * 1024 * 1024 + 1

const folder = mkdtempSync(join(tmpdir(), 'vitest-onnx-bytes-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

let count = 0

export interface PlacedBytes {
  readonly source: ByteSource
  /** Where the bytes are in the source. */
  readonly start: number
  readonly stop: number
}

export const SOURCES: Readonly<Record<string, (bytes: Uint8Array) => PlacedBytes>> = {
  'bytes in memory': (bytes) => ({ source: bytesSource(bytes), start: 0, stop: bytes.length }),
  'bytes in the middle of others': (bytes) => {
    const all = Buffer.concat([Buffer.alloc(13, 0xff), bytes, Buffer.alloc(7, 0xff)])
    return { source: bytesSource(all), start: 13, stop: 13 + bytes.length }
  },
  'a large file': (bytes) => placeInLargeFile(bytes, 3 * 1024 * 1024 + 5),
  'the end of a large file': (bytes) => placeInLargeFile(bytes, LARGE),
}

/** A sparse file: zeros, then the bytes; it goes when the process does. */
function placeInLargeFile(bytes: Uint8Array, start: number): PlacedBytes {
  const path = join(folder, `large-${count++}`)
  const file = openSync(path, 'w')
  writeSync(file, bytes, 0, bytes.length, start)
  if (start + bytes.length < LARGE) ftruncateSync(file, LARGE)
  closeSync(file)
  const source = openFile(path)
  rmSync(path)
  return { source, start, stop: start + bytes.length }
}
