/**
 * How long and from which seed: `FUZZ_SEED` repeats a failure, `FUZZ_SECONDS` gives a longer run.
 *
 * Memory is checked after a collection, so what counts is what is kept, not what passes through.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type * as fc from 'fast-check'

export const FUZZ_SEED: number = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

/** Over all fuzz tests. */
const FUZZ_SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 12)

/** Settings for a run that takes `share` of the time; fast-check prints the seed when it fails. */
export function fuzzBudget(share: number): fc.Parameters<unknown> & { interruptAfterTimeLimit: number } {
  return {
    seed: FUZZ_SEED,
    numRuns: 10_000_000,
    interruptAfterTimeLimit: FUZZ_SECONDS * 1000 * share,
    markInterruptAsFailure: false,
  }
}

/** For Vitest: the budget, and as much again for shrinking a failure. */
export const FUZZ_TIMEOUT: number = FUZZ_SECONDS * 2_000 + 30_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes in use once nothing unused is left. */
export function bytesInUse(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
