/** How much of what a cache holds. */
import { listEntries } from './entries.ts'
import { isCache } from './layout.ts'
import { notesUsage } from './notes.ts'

export interface KindUsage {
  readonly kind: string
  readonly entries: number
  readonly bytes: number
  readonly lastUsedMs: number
}

/** Results that equal the reference, of which only that is kept. */
const NOTES = 'notes'

/** By kind, in the order of their names. */
export function cacheUsage(folder: string): KindUsage[] {
  if (!isCache(folder)) return []
  const kinds = new Map<string, KindUsage>()
  for (const { kind, bytes, usedMs } of listEntries(folder)) {
    const sum = kinds.get(kind)
    kinds.set(kind, {
      kind,
      entries: (sum?.entries ?? 0) + 1,
      bytes: (sum?.bytes ?? 0) + bytes,
      lastUsedMs: Math.max(sum?.lastUsedMs ?? 0, usedMs),
    })
  }
  const notes = notesUsage(folder)
  if (notes.count > 0) {
    const { count: entries, bytes, addedMs: lastUsedMs } = notes
    kinds.set(NOTES, { kind: NOTES, entries, bytes, lastUsedMs })
  }
  return [...kinds.values()].toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
}
