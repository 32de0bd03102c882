/**
 * The size cap as one process keeps it: adds up what it puts, and looks at the disk now and then,
 * because others put too.
 */
import { evict, listEntries, totalBytes } from './entries.ts'

export const DEFAULT_MAX_BYTES: number = 10 * 1024 ** 3

/** Evicting goes a little below the cap, so that the next put need not do it again. */
const EVICT_TO = 0.9
/** After putting this share of the cap, look again at what other processes have put. */
const LOOK_AGAIN = 0.02

export interface SizeCap {
  added(bytes: number): void
}

export function sizeCap(folder: string, maxBytes: number): SizeCap {
  let total: number | undefined
  let sinceLook = 0
  return {
    added(bytes) {
      total = total === undefined ? undefined : total + bytes
      sinceLook += bytes
      if (!mustLook()) return
      const entries = listEntries(folder)
      total = totalBytes(entries)
      sinceLook = 0
      if (total > maxBytes) total -= totalBytes(evict(entries, maxBytes * EVICT_TO))
    },
  }

  function mustLook(): boolean {
    if (total === undefined || sinceLook > maxBytes * LOOK_AGAIN) return true
    // Already above before these bytes: all is in use, and looking at each put would not help.
    return total > maxBytes && total - sinceLook <= maxBytes
  }
}
