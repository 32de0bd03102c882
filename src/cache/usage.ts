/** How much of what a cache holds. */
import { listEntries } from './entries.ts'
import { isCache } from './layout.ts'

export interface KindUsage {
  readonly kind: string
  readonly entries: number
  readonly bytes: number
  readonly lastUsedMs: number
}

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
  return [...kinds.values()].toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
}
