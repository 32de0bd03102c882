/** The entries of a cache as they lie on disk. Names that are no entry are passed over; links are not followed. */
import { type Dirent, lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type CacheKey, KIND_PATTERN, SHARD_PATTERN, VERSION_PATTERN } from './layout.ts'

export interface CacheEntry extends CacheKey {
  readonly path: string
  readonly bytes: number
  /** When it was last used, give or take `TOUCH_MS`. */
  readonly usedMs: number
}

/** Using an entry again within this time is not written down. */
export const TOUCH_MS = 60_000

/** An entry used so recently is not evicted: its user may be about to open it. */
export const IN_USE_MS: number = 60_000 + TOUCH_MS

export function listEntries(folder: string): CacheEntry[] {
  const entries: CacheEntry[] = []
  for (const kind of foldersIn(folder, KIND_PATTERN)) {
    for (const shard of foldersIn(join(folder, kind), SHARD_PATTERN)) {
      const shardFolder = join(folder, kind, shard)
      for (const file of itemsIn(shardFolder)) {
        if (!file.isFile() || !VERSION_PATTERN.test(file.name)) continue
        const path = join(shardFolder, file.name)
        const stat = lstatSync(path, { throwIfNoEntry: false })
        if (stat) {
          entries.push({ kind, version: file.name, path, bytes: stat.size, usedMs: stat.mtimeMs })
        }
      }
    }
  }
  return entries
}

/** Another process may have removed the file first. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Removes least recently used entries until the rest takes no more than `target` bytes. */
export function evict(entries: readonly CacheEntry[], target: number): CacheEntry[] {
  const gone: CacheEntry[] = []
  let total = totalBytes(entries)
  for (const entry of entries.toSorted((a, b) => a.usedMs - b.usedMs)) {
    if (total <= target || Date.now() - entry.usedMs < IN_USE_MS) break
    // Used since it was listed: another process wants it.
    const now = lstatSync(entry.path, { throwIfNoEntry: false })
    if (now !== undefined && now.mtimeMs !== entry.usedMs) continue
    removeFile(entry.path)
    total -= entry.bytes
    gone.push(entry)
  }
  return gone
}

export function totalBytes(entries: readonly CacheEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** What is directly in a folder; nothing where there is no such folder. */
export function itemsIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  }
}

function foldersIn(folder: string, pattern: RegExp): string[] {
  return itemsIn(folder)
    .filter((item) => item.isDirectory() && pattern.test(item.name))
    .map(({ name }) => name)
}
