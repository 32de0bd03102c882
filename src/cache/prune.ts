/**
 * Housekeeping: what killed processes left behind goes, and entries go down to the cap.
 *
 * Safe while others use the cache: what a living process is working on stays.
 */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { keepChecksums } from './checksums.ts'
import { isMemoCurrent } from './content-hash.ts'
import { type CacheEntry, evict, itemsIn, listEntries, removeFile, totalBytes } from './entries.ts'
import { entryName, hashesFolder, isCache, locksFolder, temporaryFolder, VERSION_PATTERN } from './layout.ts'
import { isLeftover } from './lock.ts'
import { trimNotes } from './notes.ts'
import { processState } from './process-owner.ts'
import { DEFAULT_MAX_BYTES } from './size-cap.ts'
import { storageError } from './storage-error.ts'

export interface PruneResult {
  readonly leftovers: FileSum
  readonly evicted: FileSum
  readonly kept: FileSum
}

export interface FileSum {
  readonly files: number
  readonly bytes: number
}

/** `maxBytes` defaults to the cap of a run, 10 GiB. */
export function pruneCache(folder: string, maxBytes: number = DEFAULT_MAX_BYTES): PruneResult {
  if (!isCache(folder)) return { leftovers: NONE, evicted: NONE, kept: NONE }
  try {
    const leftovers = sweepLeftovers(folder)
    const entries = listEntries(folder)
    const gone = new Set(evict(entries, maxBytes))
    const kept = entries.filter((entry) => !gone.has(entry))
    keepChecksums(folder, new Set(kept.map(entryName)))
    trimNotes(folder)
    return { leftovers, evicted: sumOf([...gone]), kept: sumOf(kept) }
  } catch (cause) {
    throw storageError(folder, cause)
  }
}

const NONE: FileSum = { files: 0, bytes: 0 }

export function sumOf(entries: readonly CacheEntry[]): FileSum {
  return { files: entries.length, bytes: totalBytes(entries) }
}

/** Temporary files and locks of processes that are gone, and digests of files that are gone. */
export function sweepLeftovers(folder: string): FileSum {
  const leftovers = [
    ...filesIn(temporaryFolder(folder)).filter(isLeftTemporary),
    ...filesIn(locksFolder(folder)).filter(isLeftover),
    ...filesIn(hashesFolder(folder)).filter(isLeftMemo),
    ...filesIn(folder).filter(isHalfWritten),
  ]
  let bytes = 0
  for (const path of leftovers) {
    bytes += lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
    removeFile(path)
  }
  return { files: leftovers.length, bytes }
}

/** Longer than anything takes to make, for a file whose owner cannot be asked. */
const ABANDONED_MS = 24 * 60 * 60_000

function isLeftTemporary(path: string): boolean {
  const [, pid, started, host] = TEMPORARY_NAME.exec(path) ?? []
  const state =
    pid === undefined ? 'unknown' : processState({ pid: Number(pid), started: started!, host: host! })
  return state === 'dead' || (state === 'unknown' && ageMs(path) > ABANDONED_MS)
}

const TEMPORARY_NAME = /(\d+)-(\d+)-([0-9a-f]{8})-[0-9a-f]{16}$/

function isLeftMemo(path: string): boolean {
  if (VERSION_PATTERN.test(path.slice(-64))) return !isMemoCurrent(path)
  return isHalfWritten(path) || (!HALF_WRITTEN.test(path) && isLeftover(path))
}

function isHalfWritten(path: string): boolean {
  return HALF_WRITTEN.test(path) && ageMs(path) > ABANDONED_MS
}

/** The names that `writeFileAtomic` gives. */
const HALF_WRITTEN = /\.[0-9a-f-]{36}\.tmp$/

function ageMs(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 0 : Date.now() - stat.mtimeMs
}

function filesIn(folder: string): string[] {
  return itemsIn(folder)
    .filter((item) => item.isFile())
    .map(({ name }) => join(folder, name))
}
