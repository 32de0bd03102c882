/**
 * Gather: runs the application to its end and records the steps after each checkpoint it saves.
 *
 * Edge. The manifest is written whenever a recording is complete, so an interrupted gather leaves
 * what it has. It is marked incomplete until the application has ended well; gathering an
 * incomplete one goes on from its last checkpoint.
 */
import type { CheckpointStart } from './command-line.ts'
import { gatherCommand } from './command-line.ts'
import type { OnEvent } from './events.ts'
import { explainEnd, failWith, type ApplicationFailure } from './explain-end.ts'
import { addCheckpoint, type CheckpointRecord, type Manifest } from './manifest.ts'
import type { ConvergenceTest } from './parse-config.ts'
import { parseLogLine } from './parse-log-line.ts'
import { Recorder, type RecorderEvent } from './record-log.ts'
import { runApplication, type ApplicationRun } from './run-application.ts'
import {
  findCheckpoint,
  manifestPath,
  prepareStorage,
  readManifest,
  writeManifest,
  type TestStorage,
} from './storage.ts'

export interface GatherResult {
  readonly test: string
  readonly outcome: 'gathered' | 'interrupted' | 'failed'
  readonly manifest: string
  readonly checkpoints: readonly CheckpointRecord[]
  /** The step of the checkpoint that an interrupted gather went on from. */
  readonly resumedFrom: number | null
  readonly failure: ApplicationFailure | null
  readonly warnings: readonly string[]
}

export interface GatherOptions {
  readonly fresh: boolean
  readonly signal?: AbortSignal | undefined
  readonly stepTimeout?: number | undefined
  readonly onEvent: OnEvent
}

export async function gatherTest(
  test: ConvergenceTest,
  storage: TestStorage,
  options: GatherOptions,
): Promise<GatherResult> {
  prepareStorage(storage)
  const resumed = options.fresh ? undefined : resumePoint(storage)
  const session = new GatherSession(
    test,
    storage,
    resumed?.manifest ?? EMPTY,
    resumed?.start.startStep,
    options.onEvent,
  )

  const command = gatherCommand(test, storage.checkpointFolder, resumed?.start)
  const resumedFrom = resumed?.start.startStep ?? null
  options.onEvent({ kind: 'started', test: test.name, command, startStep: resumedFrom })
  const run = await session.follow(command, options)
  const failure = session.finish(run)
  return {
    test: test.name,
    outcome: failure !== undefined ? 'failed' : run.end.kind === 'interrupted' ? 'interrupted' : 'gathered',
    manifest: storage.manifestFile,
    checkpoints: session.manifest.checkpoints,
    resumedFrom,
    failure: failure ?? null,
    warnings: session.warnings,
  }
}

const EMPTY: Manifest = { checkpoints: [], incomplete: true }

interface ResumePoint {
  readonly manifest: Manifest
  readonly start: CheckpointStart
}

/** The last checkpoint of an incomplete manifest whose file is still there. */
function resumePoint(storage: TestStorage): ResumePoint | undefined {
  const manifest = readManifest(storage)
  if (manifest === undefined || !manifest.incomplete) return undefined
  for (const { startStep, checkpoint } of manifest.checkpoints.toReversed()) {
    const file = findCheckpoint(storage, checkpoint)
    if (file !== undefined) return { manifest, start: { startStep, checkpoint: file } }
  }
  return undefined
}

class GatherSession {
  readonly warnings: string[] = []
  manifest: Manifest
  readonly #test: ConvergenceTest
  readonly #storage: TestStorage
  readonly #recorder: Recorder
  readonly #onEvent: OnEvent
  #logged = false

  constructor(
    test: ConvergenceTest,
    storage: TestStorage,
    manifest: Manifest,
    step: number | undefined,
    onEvent: OnEvent,
  ) {
    this.#test = test
    this.#storage = storage
    this.manifest = manifest
    this.#recorder = new Recorder(test.stepsToRecord, step)
    this.#onEvent = onEvent
  }

  follow(command: readonly string[], { signal, stepTimeout }: GatherOptions): Promise<ApplicationRun> {
    const { directory, logOutput } = this.#test
    const watch = { onLine: (line: string) => this.#readLine(line), signal, stepTimeout }
    return runApplication({ command, directory, logOutput }, watch)
  }

  /** Keeps what the end of the training left half recorded, unless it ended badly. */
  finish(run: ApplicationRun): ApplicationFailure | undefined {
    const failure = explainEnd(run)
    if (failure !== undefined || run.end.kind !== 'exited') return failure

    for (const event of this.#recorder.finish()) this.#take(event)
    if (this.manifest.checkpoints.length === 0) return failWith(this.#whyNothing(), run)

    this.manifest = { ...this.manifest, incomplete: false }
    writeManifest(this.#storage, this.manifest)
    return undefined
  }

  #readLine(line: string): 'go on' | 'progress' {
    const before = this.#recorder.step
    const entry = parseLogLine(this.#test, line)
    for (const event of this.#recorder.observe(entry)) this.#take(event)
    const { step } = this.#recorder
    if (step !== undefined && (entry.step !== undefined || entry.values.length > 0)) {
      this.#logged = true
      this.#onEvent({ kind: 'step', test: this.#test.name, step, values: entry.values })
    }
    return step === before ? 'go on' : 'progress'
  }

  #take(event: RecorderEvent): void {
    const test = this.#test.name
    if (event.kind === 'saved') this.#onEvent({ test, ...event })
    else if (event.kind === 'recorded') this.#keep(event.recording)
    else this.#warn(event.message)
  }

  #keep({ startStep, checkpoint: logged, values }: CheckpointRecord): void {
    const checkpoint = manifestPath(this.#storage, this.#test.directory, logged)
    if (findCheckpoint(this.#storage, checkpoint) === undefined)
      this.#warn(`there is no file at checkpoint ${logged}`)
    this.manifest = addCheckpoint(this.manifest, { startStep, checkpoint, values })
    const steps = new Set(values.map(({ step }) => step)).size
    this.#onEvent({ kind: 'recorded', test: this.#test.name, startStep, checkpoint, steps })
    writeManifest(this.#storage, this.manifest)
  }

  #warn(message: string): void {
    if (this.warnings.includes(message)) return
    this.warnings.push(message)
    this.#onEvent({ kind: 'warning', test: this.#test.name, message })
  }

  #whyNothing(): string {
    const { name, logOutput } = this.#test
    if (!this.#logged) {
      return `the application ended and no line of its ${logOutput} matched log_parsing.step_num of test "${name}"`
    }
    return `the application ended and left nothing to record: no line of its ${logOutput} matched log_parsing.model_save of test "${name}", or no metric was logged after it`
  }
}
