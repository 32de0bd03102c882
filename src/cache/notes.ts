/**
 * Facts that need no file of their own: keys, one a line, in one text file of the cache.
 *
 * That a key is noted is all it says. Making a file costs as much as running a small layer, and a
 * line next to nothing. Lines are appended whole, a little later; one that a kill cut short
 * matches nothing. A note that is lost or made twice costs work done twice, never a wrong result.
 */
import { appendFileSync, lstatSync, readFileSync } from 'node:fs'
import { writeFileAtomic } from '../files/write-file.ts'
import { removeFile } from './entries.ts'
import { type CacheKey, entryName, notesPath } from './layout.ts'

export interface Notes {
  has(key: CacheKey): boolean
  add(key: CacheKey): void
}

/** With `recompute`, only what this process has noted counts. */
export function openNotes(folder: string, recompute: boolean): Notes {
  let known: Set<string> | undefined
  const all = (): Set<string> => (known ??= recompute ? new Set() : readNotes(folder))
  return {
    has: (key) => all().has(entryName(key)),
    add(key) {
      all().add(entryName(key))
      writeSoon(folder, `${entryName(key)}\n`)
    },
  }
}

/** Writes what is noted by now; without it that happens a moment later, unless the process is killed. */
export function flushNotes(): void {
  for (const [folder, lines] of pending) {
    pending.delete(folder)
    try {
      appendFileSync(notesPath(folder), lines)
    } catch {
      // The next run does it again.
    }
  }
}

/** How many there are, and when one was last added. */
export function notesUsage(folder: string): { count: number; bytes: number; addedMs: number } {
  const count = readNotes(folder).size
  const stat = lstatSync(notesPath(folder), { throwIfNoEntry: false })
  return { count, bytes: stat?.size ?? 0, addedMs: stat?.mtimeMs ?? 0 }
}

/** Of more than this the older half goes: some 15 MB, read at every start. */
const MAX_NOTES = 200_000

/** Forgets the oldest, if there are very many. What another process adds meanwhile may be lost with them. */
export function trimNotes(folder: string, max: number = MAX_NOTES): void {
  const names = [...readNotes(folder)]
  if (names.length <= max) return
  const kept = names.slice(-Math.floor(max / 2))
  writeFileAtomic(notesPath(folder), kept.map((name) => `${name}\n`).join(''))
}

export function clearNotes(folder: string): void {
  pending.delete(folder)
  removeFile(notesPath(folder))
}

/** Notes of many tests become one write. */
const WRITE_AFTER_MS = 100

const pending = new Map<string, string>()

function writeSoon(folder: string, line: string): void {
  if (pending.size === 0) setTimeout(flushNotes, WRITE_AFTER_MS).unref()
  pending.set(folder, (pending.get(folder) ?? '') + line)
}

process.once('exit', flushNotes)

function readNotes(folder: string): Set<string> {
  flushNotes()
  try {
    const text = readFileSync(notesPath(folder), 'latin1')
    return new Set([...text.matchAll(LINE)].map(([, name]) => name!))
  } catch {
    return new Set()
  }
}

const LINE = /^([a-z-]+\.[0-9a-f]{64})\n/gm
