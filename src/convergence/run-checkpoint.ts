/**
 * Run: starts the application from one checkpoint for the steps that were recorded after it, and
 * compares each value.
 *
 * Edge. An application that goes on past the last recorded step is stopped there. One that fails,
 * or does not log all that was recorded, gives no verdict: its outcome is `failed`.
 */
import { ModelTestError } from '../errors.ts'
import { runCommand } from './command-line.ts'
import { compareSegment, type Measurement } from './compare-segment.ts'
import type { OnEvent } from './events.ts'
import { explainEnd, failWith, type ApplicationFailure } from './explain-end.ts'
import type { CheckpointRecord } from './manifest.ts'
import type { ConvergenceTest } from './parse-config.ts'
import { parseLogLine } from './parse-log-line.ts'
import { runApplication, type ApplicationRun } from './run-application.ts'
import { findCheckpoint, type TestStorage } from './storage.ts'
import { ValueLog } from './value-log.ts'

export interface CheckpointResult {
  readonly startStep: number
  readonly checkpoint: string
  readonly outcome: 'passed' | 'regressed' | 'failed' | 'interrupted'
  readonly measurements: readonly Measurement[]
  readonly failure: ApplicationFailure | null
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  readonly stepTimeout?: number | undefined
  readonly onEvent: OnEvent
}

export async function runCheckpoint(
  test: ConvergenceTest,
  storage: TestStorage,
  record: CheckpointRecord,
  options: RunOptions,
): Promise<CheckpointResult> {
  const lastStep = lastStepOf(test, record)
  const start = { checkpoint: requireCheckpoint(test, storage, record), startStep: record.startStep }
  const command = runCommand(test, start, lastStep)
  options.onEvent({ kind: 'started', test: test.name, command, startStep: record.startStep })

  const segment = new Segment(test, record, options.onEvent)
  const { directory, logOutput } = test
  const { signal, stepTimeout } = options
  const onLine = (line: string): ReturnType<Segment['readLine']> => segment.readLine(line)
  const run = await runApplication({ command, directory, logOutput }, { onLine, signal, stepTimeout })

  const result = judge(test, record, segment, run)
  options.onEvent({ kind: 'judged', test: test.name, result })
  return result
}

/** As many steps as the config says, and more where the manifest was recorded with more. */
function lastStepOf(test: ConvergenceTest, { startStep, values }: CheckpointRecord): number {
  return values.reduce((last, { step }) => Math.max(last, step), startStep + test.stepsToRecord)
}

export function requireCheckpoint(
  test: ConvergenceTest,
  storage: TestStorage,
  { checkpoint }: CheckpointRecord,
): string {
  const file = findCheckpoint(storage, checkpoint)
  if (file !== undefined) return file
  throw new ModelTestError(
    'CONVERGENCE_MANIFEST',
    `test "${test.name}": there is no checkpoint ${checkpoint}`,
    {
      file: storage.manifestFile,
      hint: 'Checkpoint paths are relative to the manifest: move them together, or gather again (-g).',
    },
  )
}

/** What the application logs of the recorded steps. */
class Segment {
  readonly observed = new ValueLog()
  readonly #test: ConvergenceTest
  readonly #steps: ReadonlySet<number>
  readonly #lastStep: number
  readonly #onEvent: OnEvent
  #step: number | undefined

  constructor(test: ConvergenceTest, { values }: CheckpointRecord, onEvent: OnEvent) {
    this.#test = test
    this.#steps = new Set(values.map(({ step }) => step))
    this.#lastStep = values.reduce((last, { step }) => Math.max(last, step), 0)
    this.#onEvent = onEvent
  }

  get lastLogged(): number | undefined {
    return this.#step
  }

  readLine(line: string): 'go on' | 'progress' | 'stop' {
    const { step, values } = parseLogLine(this.#test, line)
    const isNew = step !== undefined && step !== this.#step
    this.#step = step ?? this.#step
    if (this.#step === undefined) return 'go on'
    if (this.#step > this.#lastStep) return 'stop'

    if (this.#steps.has(this.#step)) for (const value of values) this.observed.add(this.#step, value)
    if (step !== undefined || values.length > 0) {
      this.#onEvent({ kind: 'step', test: this.#test.name, step: this.#step, values })
    }
    return isNew ? 'progress' : 'go on'
  }
}

function judge(
  test: ConvergenceTest,
  { startStep, checkpoint, values }: CheckpointRecord,
  segment: Segment,
  run: ApplicationRun,
): CheckpointResult {
  const measurements = compareSegment(values, segment.observed, test.metrics)
  if (run.end.kind === 'interrupted') {
    return { startStep, checkpoint, outcome: 'interrupted', measurements, failure: null }
  }
  const failure = explainEnd(run) ?? explainMissing(test, measurements, segment, run)
  const regressed = measurements.some(({ verdict }) => verdict === 'regression')
  const outcome = failure !== undefined ? 'failed' : regressed ? 'regressed' : 'passed'
  return { startStep, checkpoint, outcome, measurements, failure: failure ?? null }
}

function explainMissing(
  { name, logOutput, flags }: ConvergenceTest,
  measurements: readonly Measurement[],
  { lastLogged, observed }: Segment,
  run: ApplicationRun,
): ApplicationFailure | undefined {
  const missing = measurements.find(({ verdict }) => verdict === 'missing')
  if (missing === undefined) return undefined
  if (lastLogged === undefined) {
    return failWith(`no line of its ${logOutput} matched log_parsing.step_num of test "${name}"`, run)
  }
  const value = `step ${missing.step} logged no ${missing.metric} (${missing.label})`
  if (observed.size > 0 && lastLogged >= missing.step) return failWith(value, run)
  return failWith(
    `${value}: the last step logged is ${lastLogged}. If the application counts otherwise, set \`offset\` or \`counts\` of ${flags.run.run_for.key} or ${flags.run.start_step.key} in the config`,
    run,
  )
}
