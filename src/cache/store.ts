/**
 * Content-addressed files on disk: (kind, version) -> the path of a whole file.
 *
 * A version is a digest of all that an entry is made from, so an entry is never out of date, only
 * missing or damaged. What always holds, with any number of processes and a kill at any instant:
 * an entry is there whole or not at all; a missing one is made once, by one process, while the
 * others wait; what `check` refuses is made again. What a kill leaves behind is ignored here and
 * swept by `pruneCache`.
 *
 * An entry may be evicted by another process after `file` returned its path, though not within a
 * minute. An open file survives that; who finds the path gone calls `file` again.
 */
import { randomBytes } from 'node:crypto'
import { lstatSync, renameSync, type Stats, utimesSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ModelTestError } from '../errors.ts'
import { makeFolder } from '../files/make-folder.ts'
import { fileChecksum, recordChecksum } from './checksums.ts'
import { removeFile, TOUCH_MS } from './entries.ts'
import { type CacheKey, entryName, entryPath, layOut, locksFolder, temporaryFolder } from './layout.ts'
import { type Lock, tryLock } from './lock.ts'
import { openNotes } from './notes.ts'
import { thisProcess } from './process-owner.ts'
import { DEFAULT_MAX_BYTES, type SizeCap, sizeCap } from './size-cap.ts'
import { isDiskFull, storageError } from './storage-error.ts'

export type { CacheKey } from './layout.ts'
export { versionOf } from './version-of.ts'

export interface CacheOptions {
  readonly folder: string
  /**
   * Above this, least recently used entries are removed.
   * @default 10 GiB
   */
  readonly maxBytes?: number
  /**
   * Make every entry anew, once per process.
   * @default false
   */
  readonly recompute?: boolean
}

export interface CacheHit {
  readonly path: string
  /** Whether it was made just now, by this process. */
  readonly made: boolean
}

export interface Cache {
  readonly folder: string
  /**
   * The complete file of the entry; made once however many processes want it at the same time.
   *
   * `make` writes a plain file to the temporary path it is given; what it throws reaches the
   * caller, and nothing is stored. `check` throws when an existing file cannot be trusted: then
   * it is made anew. It is called once per process and file, and not for a file that this process
   * made. A cache that cannot be written throws FILE_UNWRITABLE, before `make` where it can.
   */
  file(key: CacheKey, make: MakeEntry, check?: CheckEntry): Promise<CacheHit>
  /**
   * The same for an entry that may turn out to need no file: when `make` writes none, that is noted,
   * and the answer is undefined, now and later. Cheaper, and without a lock: two processes that want
   * it at the same time both make it.
   */
  fileOrNote(key: CacheKey, make: MakeEntry, check?: CheckEntry): Promise<CacheHit | undefined>
  /** The path of an existing entry, unchecked; makes nothing. */
  peek(key: CacheKey): string | undefined
}

export type MakeEntry = (temporaryPath: string) => Promise<void>
export type CheckEntry = (path: string) => void

export function openCache({
  folder: named,
  maxBytes = DEFAULT_MAX_BYTES,
  recompute = false,
}: CacheOptions): Cache {
  const folder = resolve(named)
  const memory = memoryOf(folder)
  const cap = sizeCap(folder, maxBytes)
  const notes = openNotes(folder, recompute)
  const cache: OpenCache = { folder, memory, cap, recompute }
  return {
    folder,
    async file(key, make, check) {
      const path = entryPath(folder, key)
      const pending = memory.pending.get(path)
      if (pending) return pending
      if (isKnown(cache, path)) return { path, made: false }
      const hit = obtain(cache, { key, path, make, check }).finally(() => memory.pending.delete(path))
      memory.pending.set(path, hit)
      return hit
    },
    async fileOrNote(key, make, check) {
      if (notes.has(key)) return undefined
      const wanted = { key, path: entryPath(folder, key), make, check }
      if (isKnown(cache, wanted.path)) return { path: wanted.path, made: false }
      const hit = recompute ? undefined : findEntry(cache, wanted)
      if (hit !== undefined) return hit
      prepare(cache)
      const made = await makeEntryOrNone(cache, wanted)
      if (made === undefined) notes.add(key)
      return made
    },
    peek(key) {
      const path = entryPath(folder, key)
      if (recompute) return isKnown(cache, path) ? path : undefined
      const stat = statOf(path)
      if (!stat?.isFile()) return undefined
      touch(path, stat)
      return path
    },
  }
}

interface OpenCache {
  readonly folder: string
  readonly memory: Memory
  readonly cap: SizeCap
  readonly recompute: boolean
}

interface Wanted {
  readonly key: CacheKey
  readonly path: string
  readonly make: MakeEntry
  readonly check: CheckEntry | undefined
}

/** What this process knows of a folder, however often it opens it. */
interface Memory {
  /** Files that were checked or made here. */
  readonly known: Map<string, KnownFile>
  readonly pending: Map<string, Promise<CacheHit>>
  isLaidOut: boolean
}

interface KnownFile {
  /** The inode and the size: another file, or a cut one, is another. */
  readonly identity: string
  /** Made anew because `recompute` asked for it. */
  readonly isFresh: boolean
}

const memories = new Map<string, Memory>()

function memoryOf(folder: string): Memory {
  const memory = memories.get(folder) ?? { known: new Map(), pending: new Map(), isLaidOut: false }
  memories.set(folder, memory)
  return memory
}

/** The way of nearly every call: one look at the file. */
function isKnown({ memory, recompute }: OpenCache, path: string): boolean {
  const known = memory.known.get(path)
  if (known === undefined || (recompute && !known.isFresh)) return false
  const stat = statOf(path)
  if (stat === undefined || identityOf(stat) !== known.identity) return false
  touch(path, stat)
  return true
}

/** Waiting for another process starts with short naps, as most entries are made in milliseconds. */
const [FIRST_NAP_MS, LONGEST_NAP_MS] = [1, 100]

async function obtain(cache: OpenCache, wanted: Wanted): Promise<CacheHit> {
  // Under `recompute` the file that is there now will not do; one that another process makes meanwhile will.
  let refused = cache.recompute ? identityAt(wanted.path) : undefined
  const isUsable = (): boolean => {
    const identity = identityAt(wanted.path)
    if (identity === undefined || identity === refused) return false
    if (isTrusted(wanted)) {
      cache.memory.known.set(wanted.path, { identity, isFresh: cache.recompute })
      return true
    }
    refused = identity
    return false
  }

  for (let nap = FIRST_NAP_MS; ; nap = Math.min(nap * 1.5, LONGEST_NAP_MS)) {
    if (isUsable()) return { path: wanted.path, made: false }
    const lock = lockEntry(cache, wanted.key)
    if (lock === undefined) {
      await sleep(nap)
      continue
    }
    try {
      if (isUsable()) return { path: wanted.path, made: false }
      return await makeEntry(cache, wanted)
    } finally {
      release(lock)
    }
  }
}

function findEntry({ memory, recompute }: OpenCache, wanted: Wanted): CacheHit | undefined {
  const identity = identityAt(wanted.path)
  if (identity === undefined || !isTrusted(wanted)) return undefined
  memory.known.set(wanted.path, { identity, isFresh: recompute })
  return { path: wanted.path, made: false }
}

function isTrusted({ path, check }: Wanted): boolean {
  try {
    check?.(path)
    const stat = lstatSync(path)
    touch(path, stat)
    return stat.isFile()
  } catch {
    return false
  }
}

function lockEntry({ folder, memory }: OpenCache, key: CacheKey): Lock | undefined {
  const path = join(locksFolder(folder), entryName(key))
  try {
    if (memory.isLaidOut) return tryLock(path)
  } catch {
    // Somebody removed the folder meanwhile.
  }
  try {
    layOut(folder)
    memory.isLaidOut = true
    return tryLock(path)
  } catch (cause) {
    throw storageError(folder, cause)
  }
}

/** A lock that cannot be removed now counts as left over once this process is gone. */
function release(lock: Lock): void {
  try {
    lock.release()
  } catch {}
}

/** The folders of a cache, once per process; somebody may remove them later. */
function prepare({ folder, memory }: OpenCache): void {
  if (memory.isLaidOut && statOf(temporaryFolder(folder)) !== undefined) return
  try {
    layOut(folder)
    memory.isLaidOut = true
  } catch (cause) {
    throw storageError(folder, cause)
  }
}

async function makeEntry(cache: OpenCache, wanted: Wanted): Promise<CacheHit> {
  const temporary = newTemporaryPath(cache.folder)
  await makeInto(cache.folder, temporary, wanted.make)
  return keepEntry(cache, temporary, wanted)
}

async function makeEntryOrNone(cache: OpenCache, wanted: Wanted): Promise<CacheHit | undefined> {
  const temporary = newTemporaryPath(cache.folder)
  await makeInto(cache.folder, temporary, wanted.make)
  return statOf(temporary) === undefined ? undefined : keepEntry(cache, temporary, wanted)
}

function keepEntry(cache: OpenCache, temporary: string, wanted: Wanted): CacheHit {
  try {
    const stat = store(cache.folder, temporary, wanted)
    cache.memory.known.set(wanted.path, { identity: identityOf(stat), isFresh: cache.recompute })
    enforceCap(cache, stat.size)
    return { path: wanted.path, made: true }
  } catch (error) {
    removeQuietly(temporary)
    throw error
  }
}

async function makeInto(folder: string, temporary: string, make: MakeEntry): Promise<void> {
  try {
    await make(temporary)
  } catch (error) {
    removeQuietly(temporary)
    throw isDiskFull(error) ? storageError(folder, error) : error
  }
}

function store(folder: string, temporary: string, { key, path }: Wanted): Stats {
  try {
    const stat = statMade(temporary, key)
    touch(temporary, stat)
    const isSmall = stat.size <= SUMMED_AT_ONCE
    if (isSmall) recordChecksum(folder, key, fileChecksum(temporary))
    renameInto(temporary, path)
    // Whoever waits for a large one has better things to do first.
    if (!isSmall) setImmediate(recordLater, folder, key, path)
    return stat
  } catch (error) {
    throw error instanceof ModelTestError ? error : storageError(folder, error)
  }
}

/** Takes some milliseconds. */
const SUMMED_AT_ONCE = 4 * 1024 * 1024

/** If the process ends before, `verify` calls the entry unchecked. */
function recordLater(folder: string, key: CacheKey, path: string): void {
  try {
    recordChecksum(folder, key, fileChecksum(path))
  } catch {}
}

function statMade(temporary: string, { kind }: CacheKey): Stats {
  const stat = statOf(temporary)
  if (stat?.isFile()) return stat
  throw new ModelTestError('FILE_UNWRITABLE', `what makes the ${kind} wrote no file that can be read`, {
    file: temporary,
    hint: 'It must write one plain file to the path it is given, and end after that.',
  })
}

function renameInto(temporary: string, path: string): void {
  try {
    renameSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    makeFolder(dirname(path))
    renameSync(temporary, path)
  }
}

/** The entry is stored; that others could not be removed is no error of this one. */
function enforceCap({ cap }: OpenCache, bytes: number): void {
  try {
    cap.added(bytes)
  } catch {}
}

/** Names its owner, so that `pruneCache` can tell what was left by a killed process. */
function newTemporaryPath(folder: string): string {
  const { pid, host, started } = thisProcess()
  return join(temporaryFolder(folder), `${pid}-${started}-${host}-${randomBytes(8).toString('hex')}`)
}

function removeQuietly(path: string): void {
  try {
    removeFile(path)
  } catch {}
}

/** A cache that may only be read is still of use. */
function touch(path: string, stat: Stats): void {
  const now = Date.now()
  if (now - stat.mtimeMs < TOUCH_MS) return
  try {
    utimesSync(path, now / 1000, now / 1000)
  } catch {}
}

function identityAt(path: string): string | undefined {
  const stat = statOf(path)
  return stat && identityOf(stat)
}

function identityOf({ ino, size }: Stats): string {
  return `${ino}-${size}`
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
