/**
 * Reads every entry whole and removes what is damaged: its bytes do not add up to what was
 * written, or it begins as a safetensors file and is none. A removed entry is made again when
 * it is next wanted.
 */
import { openFile } from '../files/file-source.ts'
import { openSafetensors } from '../tensor/safetensors.ts'
import { type Checksums, fileChecksum, readChecksums } from './checksums.ts'
import { type CacheEntry, listEntries, removeFile, totalBytes } from './entries.ts'
import { entryName, isCache } from './layout.ts'
import { storageError } from './storage-error.ts'

export interface VerifyResult {
  readonly entries: number
  readonly bytes: number
  /** Entries without a recorded checksum that show no damage otherwise; they stay. */
  readonly unchecked: number
  readonly bad: readonly BadEntry[]
}

export interface BadEntry {
  readonly kind: string
  readonly version: string
  readonly problem: string
}

export function verifyCache(
  folder: string,
  onEntry: (done: number, of: number) => void = () => {},
): VerifyResult {
  const entries = isCache(folder) ? listEntries(folder) : []
  const checksums = readChecksums(folder)
  const bad: BadEntry[] = []
  let unchecked = 0
  for (const [at, entry] of entries.entries()) {
    onEntry(at, entries.length)
    const suspicion = problemOf(entry, checksums)
    // A run may have replaced it since the checksums were read.
    const problem = suspicion && problemOf(entry, readChecksums(folder))
    if (problem !== undefined) {
      remove(folder, entry)
      bad.push({ kind: entry.kind, version: entry.version, problem })
    } else if (!checksums.has(entryName(entry))) unchecked++
  }
  return { entries: entries.length, bytes: totalBytes(entries), unchecked, bad }
}

function problemOf(entry: CacheEntry, checksums: Checksums): string | undefined {
  try {
    return sumProblem(entry, checksums) ?? safetensorsProblem(entry)
  } catch (error) {
    // Evicted since it was listed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    return (error as Error).message
  }
}

function sumProblem(entry: CacheEntry, checksums: Checksums): string | undefined {
  const actual = fileChecksum(entry.path)
  const recorded = checksums.get(entryName(entry))
  if (recorded === undefined || recorded.some((one) => one.size === actual.size && one.sum === actual.sum)) {
    return undefined
  }
  const sizes = [...new Set(recorded.map(({ size }) => size))]
  return sizes.includes(actual.size)
    ? 'its bytes are not those that were written'
    : `it has ${actual.size} bytes, not ${sizes.join(' or ')}`
}

function safetensorsProblem({ path }: CacheEntry): string | undefined {
  const source = openFile(path)
  try {
    if (source.size > HEADER_START && source.read(HEADER_START, 1)[0] === '{'.charCodeAt(0)) {
      openSafetensors(source)
    }
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    source.close()
  }
}

/** The JSON header of safetensors follows its length, of 8 bytes. */
const HEADER_START = 8

function remove(folder: string, { path }: CacheEntry): void {
  try {
    removeFile(path)
  } catch (cause) {
    throw storageError(folder, cause)
  }
}
