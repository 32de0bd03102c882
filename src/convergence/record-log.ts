/**
 * Log entries in order -> recordings: for each saved checkpoint the values of the steps after it.
 *
 * Pure. A recording covers `stepsToRecord` steps after the step logged last before the save,
 * however often the application logs. Recordings may overlap: a checkpoint saved while another is
 * being recorded ends neither. A recording is complete once a later step shows that its last step
 * has logged everything.
 */
import type { LogEntry } from './parse-log-line.ts'
import { ValueLog, type MetricValue } from './value-log.ts'

export interface Recording {
  readonly startStep: number
  /** As logged: relative to the application's folder, or absolute. */
  readonly checkpoint: string
  readonly values: readonly MetricValue[]
}

export type RecorderEvent =
  | { readonly kind: 'saved'; readonly startStep: number; readonly checkpoint: string }
  | { readonly kind: 'recorded'; readonly recording: Recording }
  | { readonly kind: 'warning'; readonly message: string }

interface OpenRecording {
  readonly startStep: number
  readonly checkpoint: string
  /** The step before the first to record; unknown until the first step where none was logged yet. */
  after: number | undefined
  readonly values: ValueLog
}

export class Recorder {
  readonly #stepsToRecord: number
  #step: number | undefined
  #open: OpenRecording[] = []

  /** `step` is where a resumed training goes on. */
  constructor(stepsToRecord: number, step?: number) {
    this.#stepsToRecord = stepsToRecord
    this.#step = step
  }

  get step(): number | undefined {
    return this.#step
  }

  observe(entry: LogEntry): RecorderEvent[] {
    const events: RecorderEvent[] = entry.step === undefined ? [] : this.#moveTo(entry.step)
    this.#record(entry)
    if (entry.saved !== undefined) events.push(...this.#start(entry.saved))
    return events
  }

  /** The training ran to its end: what was being recorded is kept as far as it got. */
  finish(): RecorderEvent[] {
    const open = this.#open
    this.#open = []
    return open.map(close)
  }

  #moveTo(step: number): RecorderEvent[] {
    const events: RecorderEvent[] = []
    if (this.#step !== undefined && step < this.#step) events.push(wentBack(this.#step, step))
    this.#step = step

    // Steps that count from 0 have no step before the first; steps that count from 1 have step 0.
    for (const recording of this.#open) recording.after ??= step === 0 ? -1 : 0
    const done = this.#open.filter((recording) => step > this.#lastStep(recording))
    this.#open = this.#open.filter((recording) => !done.includes(recording))
    return [...events, ...done.map(close)]
  }

  #record({ values }: LogEntry): void {
    const step = this.#step
    if (step === undefined) return
    for (const recording of this.#open) {
      if (recording.after === undefined || step <= recording.after) continue
      for (const value of values) recording.values.add(step, value)
    }
  }

  #start(checkpoint: string): RecorderEvent[] {
    const startStep = this.#step ?? 0
    const replaced = this.#open.find((recording) => recording.startStep === startStep)
    this.#open = this.#open.filter((recording) => recording !== replaced)
    this.#open.push({ startStep, checkpoint, after: this.#step, values: new ValueLog() })
    return [
      ...(replaced === undefined ? [] : [savedTwice(replaced, checkpoint)]),
      { kind: 'saved', startStep, checkpoint },
    ]
  }

  #lastStep({ after }: OpenRecording): number {
    return (after ?? 0) + this.#stepsToRecord
  }
}

function close({ startStep, checkpoint, values }: OpenRecording): RecorderEvent {
  if (values.size > 0) return { kind: 'recorded', recording: { startStep, checkpoint, values: values.all() } }
  return {
    kind: 'warning',
    message: `checkpoint ${checkpoint} (step ${startStep}) is left out: no metric was logged in the steps after it`,
  }
}

function wentBack(from: number, to: number): RecorderEvent {
  return {
    kind: 'warning',
    message: `the step went back from ${from} to ${to}: log_parsing.step_num must count over the whole training`,
  }
}

function savedTwice(earlier: OpenRecording, later: string): RecorderEvent {
  return {
    kind: 'warning',
    message: `two checkpoints were saved at step ${earlier.startStep}: ${later} is kept, ${earlier.checkpoint} is not`,
  }
}
