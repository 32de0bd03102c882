/** The error for a cache that cannot be written: what happened, and how to point it elsewhere. */
import { ModelTestError } from '../errors.ts'

const FULL = 'the disk is full: the result was computed, but is not stored'
const READ_ONLY = 'the cache folder may not be written to'

const FACTS: Readonly<Record<string, string>> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EROFS: READ_ONLY,
  EACCES: READ_ONLY,
  EPERM: READ_ONLY,
}

export function storageError(folder: string, cause: unknown): ModelTestError {
  const fact = factOf(cause)
  return new ModelTestError(
    'FILE_UNWRITABLE',
    fact ?? `the cache folder cannot be written (${(cause as Error).message})`,
    {
      file: folder,
      hint:
        fact === FULL
          ? 'Make room (vitest-onnx cache prune --max-size 1GB), or set ONNX_TEST_CACHE_DIR to a folder on another disk.'
          : 'Set ONNX_TEST_CACHE_DIR to a folder that may be written to.',
      cause,
    },
  )
}

/** Whether this is about the disk, not about what was to be written. */
export function isDiskFull(error: unknown): boolean {
  return factOf(error) === FULL
}

/** Looks at the causes too: whoever writes a file may have wrapped the system's error in another. */
function factOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const fact = FACTS[(cause as NodeJS.ErrnoException).code ?? '']
    if (fact !== undefined) return fact
  }
  return undefined
}
