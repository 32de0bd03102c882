/**
 * What the bytes of every entry add up to, so that `cache verify` can tell damage.
 *
 * One text file for the whole cache; putting an entry appends one line. A file beside every entry
 * would double the number of files, and a digest in the entry's name would make finding it a
 * search. The sum is a CRC-32 with the size: it guards against disks and crashes, not against
 * people, and takes a fifth of the time of a sha256, which would take longer than writing the
 * entry did.
 *
 * The line of a small entry comes before it, that of a large one after, and any line of a version will
 * do: so neither a kill between the two nor two makers at once can make a good entry look bad.
 */
import {
  appendFileSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  type Stats,
} from 'node:fs'
import { crc32 } from 'node:zlib'
import { writeFileAtomic } from '../files/write-file.ts'
import { type CacheKey, checksumsPath, entryName } from './layout.ts'

export interface Checksum {
  readonly size: number
  readonly sum: number
}

export type Checksums = ReadonlyMap<string, readonly Checksum[]>

interface ReadFile extends Checksum {
  readonly stat: Stats
}

/** Reads the file whole. */
export function fileChecksum(path: string): ReadFile {
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
  try {
    return checksumOf(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** A checksum that cannot be recorded is no reason to lose the entry: `verify` calls it unchecked. */
export function recordChecksum(folder: string, key: CacheKey, { size, sum }: Checksum): void {
  try {
    appendFileSync(checksumsPath(folder), `${entryName(key)} ${size} ${sum}\n`)
  } catch {}
}

export function readChecksums(folder: string): Checksums {
  const all = new Map<string, Checksum[]>()
  for (const [, name, size, sum] of textOf(folder).matchAll(LINE)) {
    const known = all.get(name!)
    const checksum = { size: Number(size), sum: Number(sum) }
    if (known) known.push(checksum)
    else all.set(name!, [checksum])
  }
  return all
}

/** Forgets the sums of entries that are gone. A line that is written meanwhile may be lost with them. */
export function keepChecksums(folder: string, names: ReadonlySet<string>): void {
  const text = textOf(folder)
  const kept = [...text.matchAll(LINE)].filter(([, name]) => names.has(name!)).map(([line]) => line)
  const unique = [...new Set(kept)].join('')
  if (unique.length < text.length) writeFileAtomic(checksumsPath(folder), unique)
}

/** What a kill cut short matches nothing. */
const LINE = /([a-z-]+\.[0-9a-f]{64}) (\d+) (\d+)\n/g

function textOf(folder: string): string {
  try {
    return readFileSync(checksumsPath(folder), 'latin1')
  } catch {
    return ''
  }
}

const PIECE_BYTES = 1024 * 1024

function checksumOf(descriptor: number): ReadFile {
  const stat = fstatSync(descriptor)
  if (!stat.isFile()) throw new Error('it is not a plain file')
  const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, Math.max(stat.size, 1)))
  let [size, sum] = [0, 0]
  while (size < stat.size) {
    const count = readSync(descriptor, piece, 0, piece.length, size)
    if (count === 0) break
    sum = crc32(piece.subarray(0, count), sum)
    size += count
  }
  return { size, sum, stat }
}
