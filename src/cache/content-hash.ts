/**
 * The digest of a file's bytes, where a file of gigabytes is read once, not once per process.
 *
 * The digest is kept under the cache folder with what the file looked like: its real path, size,
 * inode and the times at which its bytes and its inode were last changed, in nanoseconds. A kept
 * digest can be wrong only for a file that was changed with all of these kept; the kernel does
 * not let a program set the last one.
 */
import { createHash } from 'node:crypto'
import { type BigIntStats, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readInPieces } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'
import { openFile } from '../files/file-source.ts'
import { writeFileAtomic } from '../files/write-file.ts'
import { hashesFolder, layOut, VERSION_PATTERN } from './layout.ts'
import { type Lock, tryLock } from './lock.ts'

/** sha256 of the file's bytes, in hex. A cache folder that cannot be written costs time, nothing else. */
export function contentHash(path: string, cacheFolder: string): string {
  const before = stateOf(path)
  if (before === undefined || before.size <= SMALL_BYTES) return hashFile(path)
  const memo = memoPath(cacheFolder, before.path)
  return (
    recall(memo, before) ??
    alone(cacheFolder, memo, () => recall(memo, before) ?? hashAndKeep(path, memo, before))
  )
}

/** Hashing so little takes no longer than looking it up. */
const SMALL_BYTES = 64 * 1024

interface FileState {
  readonly path: string
  readonly size: number
  readonly stamp: string
  readonly changedMs: number
}

const Memo = z.object({
  path: z.string(),
  stamp: z.string(),
  sha256: z.string().regex(VERSION_PATTERN),
})

/** Digests of this process, by the path of the memo. */
const kept = new Map<string, z.infer<typeof Memo>>()

function recall(memo: string, { path, stamp }: FileState): string | undefined {
  const isSame = (entry: z.infer<typeof Memo> | undefined): boolean =>
    entry?.path === path && entry.stamp === stamp
  if (!isSame(kept.get(memo))) {
    const stored = readMemo(memo)
    if (stored === undefined || !isSame(stored)) return undefined
    kept.set(memo, stored)
  }
  return kept.get(memo)?.sha256
}

function hashAndKeep(path: string, memo: string, before: FileState): string {
  const sha256 = hashFile(path)
  const after = stateOf(path)
  if (after?.stamp !== before.stamp) {
    throw new ModelTestError('FILE_UNREADABLE', 'the file changed while it was read', {
      file: path,
      hint: 'Another program is writing it; try again when that is done.',
    })
  }
  if (Date.now() - after.changedMs > CLOCK_STEP_MS)
    keep(memo, { path: before.path, stamp: before.stamp, sha256 })
  return sha256
}

/** Two changes within one step of a file system's clock look like one, so a file just changed is hashed again. */
const CLOCK_STEP_MS = 2000

function keep(memo: string, entry: z.infer<typeof Memo>): void {
  kept.set(memo, entry)
  try {
    writeFileAtomic(memo, JSON.stringify(entry))
  } catch {}
}

/** Whether what the memo says of its file still holds. */
export function isMemoCurrent(memo: string): boolean {
  const entry = readMemo(memo)
  return entry !== undefined && stateOf(entry.path)?.stamp === entry.stamp
}

function readMemo(memo: string): z.infer<typeof Memo> | undefined {
  try {
    return Memo.parse(JSON.parse(readFileSync(memo, 'utf8')))
  } catch {
    return undefined
  }
}

/** Of several processes that want the same digest one reads the file; the others sleep meanwhile. */
function alone<T>(cacheFolder: string, memo: string, work: () => T): T {
  let lock: Lock | undefined
  try {
    layOut(cacheFolder)
    while ((lock = tryLock(`${memo}.lock`)) === undefined) napSync(NAP_MS)
  } catch {
    // Without a place for locks everybody reads for himself.
  }
  try {
    return work()
  } finally {
    try {
      lock?.release()
    } catch {}
  }
}

const NAP_MS = 5

function napSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function memoPath(cacheFolder: string, realPath: string): string {
  return join(hashesFolder(cacheFolder), createHash('sha256').update(realPath).digest('hex'))
}

/** Undefined where there is no plain file: reading it then says what is wrong. */
function stateOf(path: string): FileState | undefined {
  let stat: BigIntStats
  let realPath: string
  try {
    stat = statSync(path, { bigint: true })
    realPath = realpathSync.native(path)
  } catch {
    return undefined
  }
  if (!stat.isFile()) return undefined
  const { size, mtimeNs, ctimeNs, ino, mtimeMs, ctimeMs } = stat
  return {
    path: realPath,
    size: Number(size),
    stamp: [size, mtimeNs, ctimeNs, ino].join('-'),
    changedMs: Number(mtimeMs > ctimeMs ? mtimeMs : ctimeMs),
  }
}

function hashFile(path: string): string {
  const source = openFile(path)
  try {
    const hash = createHash('sha256')
    for (const piece of readInPieces(source)) hash.update(piece)
    return hash.digest('hex')
  } finally {
    source.close()
  }
}
