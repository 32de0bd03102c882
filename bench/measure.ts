/**
 * Measuring: work -> milliseconds, resident memory.
 *
 * Times are medians of several runs after a warm-up, since the first runs are the compiler's.
 * What a process grows by is measured in a fresh child: here, earlier work has already made
 * room. A child is a module of this folder that calls `answer` once.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { execaNode } from 'execa'

export interface MeasureOptions {
  /** @default 15 */
  readonly runs?: number
  /** Runs that do not count. @default 5 */
  readonly warmUp?: number
}

/** The median time of `work` in ms. */
export function measure(work: () => unknown, { runs = 15, warmUp = 5 }: MeasureOptions = {}): number {
  for (let run = 0; run < warmUp; run++) work()
  return median(Array.from({ length: runs }, () => timed(work).ms))
}

function timed<T>(work: () => T): { readonly ms: number; readonly result: T } {
  const started = performance.now()
  const result = work()
  return { ms: performance.now() - started, result }
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) throw new RangeError('the median of nothing was asked for')
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/**
 * The median processor time of `work` in ms, all threads of this process: unlike time on the
 * clock it stays the same when other programs keep the machine busy.
 */
export function measureProcessor(
  work: () => unknown,
  { runs = 15, warmUp = 5 }: MeasureOptions = {},
): number {
  for (let run = 0; run < warmUp; run++) work()
  return median(
    Array.from({ length: runs }, () => {
      const before = process.cpuUsage()
      work()
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }),
  )
}

export interface Growth<T> {
  readonly ms: number
  /** Bytes of resident memory more than before, garbage that is not collected yet included. */
  readonly bytes: number
  readonly result: T
}

/** The time of `work` and what the process grew by meanwhile. For fresh processes only. */
export function measureGrowth<T>(work: () => T): Growth<T> {
  const before = process.memoryUsage.rss()
  const { ms, result } = timed(work)
  return { ms, bytes: Math.max(0, process.memoryUsage.rss() - before), result }
}

/** What the module `name` of this folder answers, run in a process of its own. */
export async function askChild<T>(name: string, args: readonly string[]): Promise<T> {
  const { stdout } = await execaNode(join(import.meta.dirname, name), args, { stderr: 'inherit' })
  return JSON.parse(stdout) as T
}

/** The other side of `askChild`. */
export function answer(value: unknown): void {
  process.stdout.write(JSON.stringify(value))
}

export function describeMachine(): string {
  return `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${availableParallelism()} cores`
}
