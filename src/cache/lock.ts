/**
 * Locks between processes: files that only one can create.
 *
 * A lock names its owner, so that one left by a killed process is taken over at once. An owner
 * that is alive shows it by touching the file; one that has not done so for long (stopped, on a
 * host that is gone, a thread that was ended) loses the lock. Losing it wrongly costs work done
 * twice, never a wrong entry: entries come whole by rename.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync, renameSync, utimes, writeSync } from 'node:fs'
import { removeFile } from './entries.ts'
import { type ProcessOwner, processState, thisProcess } from './process-owner.ts'

export interface Lock {
  release(): void
}

/** An owner that shows no life for so long is given up. Native code may block a process for minutes. */
const SILENT_MS = 5 * 60_000
const SHOW_LIFE_MS = 30_000
/** Nothing takes longer to make; an owner that does hangs. */
const HOLD_MS = 60 * 60_000
/** The time between creating a lock and writing the owner into it, generously. */
const WRITING_MS = 2000

/** The lock, or undefined while another holds it. The folder must be there. */
export function tryLock(path: string): Lock | undefined {
  const owner = { ...thisProcess(), token: randomBytes(8).toString('hex') }
  if (createLock(path, owner)) return heldLock(path, owner.token)
  const current = readLock(path)
  return current === undefined || isHeld(current) ? undefined : takeOver(path, current, owner)
}

/** Whether the lock at this path belongs to nobody any more. */
export function isLeftover(path: string): boolean {
  const current = readLock(path)
  return current !== undefined && !isHeld(current)
}

interface LockState {
  /** Absent while the owner writes it, or when it died doing so. */
  readonly owner: ProcessOwner | undefined
  /** Never the same for two locks. */
  readonly token: string
  readonly silentMs: number
}

function isHeld({ owner, silentMs }: LockState): boolean {
  if (owner === undefined) return silentMs < WRITING_MS
  return silentMs < SILENT_MS && processState(owner) !== 'dead'
}

/**
 * Of all who see the same dead lock only one may replace it, or the second would remove the lock of
 * the first; so the right to replace it is a lock itself, named after the dead one.
 */
function takeOver(
  path: string,
  dead: LockState,
  owner: ProcessOwner & { readonly token: string },
): Lock | undefined {
  const claim = `${path}~${dead.token}`
  const right = tryLock(claim)
  if (right === undefined) return undefined
  try {
    if (readLock(path)?.token !== dead.token) return undefined
    const replacement = `${claim}~new`
    removeFile(replacement)
    if (!createLock(replacement, owner)) return undefined
    renameSync(replacement, path)
    return heldLock(path, owner.token)
  } finally {
    right.release()
  }
}

function createLock(path: string, owner: ProcessOwner & { readonly token: string }): boolean {
  let descriptor: number
  try {
    descriptor = openSync(path, 'wx')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  try {
    writeSync(descriptor, JSON.stringify(owner))
    return true
  } catch (error) {
    removeFile(path)
    throw error
  } finally {
    closeSync(descriptor)
  }
}

function heldLock(path: string, token: string): Lock {
  const since = Date.now()
  const timer = setInterval(() => {
    if (Date.now() - since > HOLD_MS) clearInterval(timer)
    else utimes(path, new Date(), new Date(), () => {})
  }, SHOW_LIFE_MS).unref()
  return {
    release() {
      clearInterval(timer)
      // Only one that may have been silent can have lost the lock to another.
      if (Date.now() - since < SILENT_MS || readLock(path)?.token === token) removeFile(path)
    },
  }
}

function readLock(path: string): LockState | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch {
    return undefined
  }
  try {
    const { ino, mtimeMs } = fstatSync(descriptor)
    const owner = parseOwner(readFileSync(descriptor, 'utf8'))
    return { owner, token: owner?.token ?? `${ino}-${mtimeMs}`, silentMs: Date.now() - mtimeMs }
  } finally {
    closeSync(descriptor)
  }
}

function parseOwner(text: string): (ProcessOwner & { readonly token: string }) | undefined {
  try {
    const { pid, host, started, token } = JSON.parse(text) as Record<string, unknown>
    const isWhole =
      Number.isSafeInteger(pid) &&
      typeof host === 'string' &&
      typeof started === 'string' &&
      typeof token === 'string' &&
      /^[0-9a-f]{16}$/.test(token)
    return isWhole ? { pid: pid as number, host, started, token } : undefined
  } catch {
    return undefined
  }
}
