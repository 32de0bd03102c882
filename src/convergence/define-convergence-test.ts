/**
 * Declares the convergence tests of a config as Vitest tests: one for each gathered checkpoint.
 *
 * Surface of Vitest. The manifest is read while tests are collected, so that every checkpoint is a
 * test with a name of its own for `-t`, `--shard` and reporters. With `vitest --update` there is one
 * test instead, which gathers.
 */
import { describe, test, type TestContext } from 'vitest'
import { ModelTestError } from '../errors.ts'
import { renderFailure } from './explain-end.ts'
import { gatherTest } from './gather-test.ts'
import type { CheckpointRecord } from './manifest.ts'
import { renderWrong } from './render-table.ts'
import { runCheckpoint, type CheckpointResult } from './run-checkpoint.ts'
import {
  locateTests,
  requireManifest,
  type GatherConvergenceOptions,
  type LocatedTest,
} from './run-convergence.ts'
import { readManifest } from './storage.ts'

export interface ConvergenceTestOptions extends Omit<GatherConvergenceOptions, 'signal' | 'onEvent'> {
  /** Gather instead of comparing. @default whether Vitest runs with `--update` */
  readonly gather?: boolean | undefined
  /** Milliseconds for each test, 0 for no limit. @default 0 */
  readonly timeout?: number | undefined
}

/** A regression as Vitest shows it: the values that are wrong. */
export class ConvergenceRegression extends Error {
  override readonly name = 'ConvergenceRegression'
  readonly result: CheckpointResult

  constructor(result: CheckpointResult) {
    super(renderWrong(result))
    this.result = result
  }
}

export function defineConvergenceTest(options: ConvergenceTestOptions): void {
  const gather = options.gather ?? isUpdating()
  for (const located of locateTests(options)) {
    describe(`convergence of ${located.test.name}`, () => {
      if (gather) defineGather(located, options)
      else defineRuns(located, options)
    })
  }
}

function defineRuns(located: LocatedTest, options: ConvergenceTestOptions): void {
  const { timeout = 0 } = options
  if (readManifest(located.storage) === undefined) {
    // A failing test says how to gather; a file without tests would not.
    test('has a manifest', () => void requireManifest(located))
    return
  }
  for (const record of requireManifest(located).checkpoints) {
    test(`from step ${record.startStep} (${record.checkpoint})`, { timeout }, (context) =>
      compareCheckpoint(located, record, options, context),
    )
  }
}

async function compareCheckpoint(
  { test: tested, storage }: LocatedTest,
  record: CheckpointRecord,
  { stepTimeout }: ConvergenceTestOptions,
  { signal }: TestContext,
): Promise<void> {
  const result = await runCheckpoint(tested, storage, record, {
    signal,
    stepTimeout,
    onEvent: () => undefined,
  })
  if (result.outcome === 'regressed') throw new ConvergenceRegression(result)
  if (result.outcome === 'passed') return
  throw applicationFailed(tested.name, renderWrong(result))
}

function defineGather({ test: tested, storage }: LocatedTest, options: ConvergenceTestOptions): void {
  const { fresh = false, stepTimeout, timeout = 0 } = options
  test('gathers checkpoints', { timeout }, async ({ signal, annotate }) => {
    const result = await gatherTest(tested, storage, { fresh, signal, stepTimeout, onEvent: () => undefined })
    if (result.failure !== null) throw applicationFailed(tested.name, renderFailure(result.failure))
    if (result.outcome === 'interrupted') throw applicationFailed(tested.name, 'the gather was interrupted')
    await annotate(`${result.checkpoints.length} checkpoints in ${result.manifest}`)
  })
}

function applicationFailed(name: string, message: string): ModelTestError {
  return new ModelTestError('APPLICATION_FAILED', `test "${name}": ${message}`, {
    hint: 'Run the application by hand with the flags of the config to see why.',
  })
}

/**
 * Vitest tells a test file of `--update` in no public way (vitest-dev/vitest#9481); the snapshot
 * state that matchers see exists only once tests run, too late to declare them.
 */
function isUpdating(): boolean {
  const worker: WorkerState | undefined = Reflect.get(globalThis, '__vitest_worker__')
  return worker?.config?.snapshotOptions?.updateSnapshot === 'all'
}

interface WorkerState {
  readonly config?: { readonly snapshotOptions?: { readonly updateSnapshot?: string } }
}
