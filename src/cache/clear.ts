/** Removes all entries of a cache, and nothing that the cache did not write. */
import { rmdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { keepChecksums } from './checksums.ts'
import { listEntries, removeFile } from './entries.ts'
import { isCache } from './layout.ts'
import { clearNotes } from './notes.ts'
import { type FileSum, sumOf, sweepLeftovers } from './prune.ts'
import { storageError } from './storage-error.ts'

export interface ClearResult {
  readonly entries: FileSum
  readonly leftovers: FileSum
}

export function clearCache(folder: string): ClearResult {
  if (!isCache(folder)) return { entries: { files: 0, bytes: 0 }, leftovers: { files: 0, bytes: 0 } }
  try {
    const entries = listEntries(folder)
    for (const { path } of entries) removeFile(path)
    const shards = new Set(entries.map(({ path }) => dirname(path)))
    for (const shard of shards) removeEmpty(shard)
    for (const kind of new Set([...shards].map((shard) => dirname(shard)))) removeEmpty(kind)
    keepChecksums(folder, new Set())
    clearNotes(folder)
    return { entries: sumOf(entries), leftovers: sweepLeftovers(folder) }
  } catch (cause) {
    throw storageError(folder, cause)
  }
}

/** A folder that somebody else put something into stays. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {}
}
