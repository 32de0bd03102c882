/**
 * Runs the application under test and hands over its log line by line.
 *
 * Edge. The program is started directly, never through a shell, in a process group of its own, so
 * that its workers end with it. Output is read as it comes and not kept, but for the last lines of
 * each stream, which explain a failure.
 */
import { execa } from 'execa'
import { ModelTestError } from '../errors.ts'
import { endWithParent } from './end-with-parent.ts'
import { LineSplitter } from './split-lines.ts'
import { LastLines } from './last-lines.ts'

export interface Application {
  readonly command: readonly string[]
  readonly directory: string
  readonly logOutput: 'stdout' | 'stderr'
}

export interface Watch {
  /** Sees every line of the log; `stop` ends the application, which then has not failed. */
  readonly onLine: (line: string) => 'go on' | 'progress' | 'stop'
  readonly signal?: AbortSignal | undefined
  /** Seconds without progress after which the application is stopped. @default no limit */
  readonly stepTimeout?: number | undefined
  /** From the request to end until the kill: enough to finish writing a checkpoint. @default 5000 */
  readonly graceMs?: number | undefined
}

export type ApplicationEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly signal: string }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'stuck'; readonly seconds: number }

export interface ApplicationRun {
  readonly end: ApplicationEnd
  /** The end of the log and of the other stream. */
  readonly lastLines: readonly string[]
}

/** From the exit until the processes it left behind are killed, which hold its output open. */
const LEFTOVER_MS = 1_000

/** A longer timer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

type Process = ReturnType<typeof start>

export async function runApplication(application: Application, watch: Watch): Promise<ApplicationRun> {
  if (watch.signal?.aborted === true) return { end: { kind: 'interrupted' }, lastLines: [] }

  const child = start(application)
  const stopper = new Stopper(child, watch.graceMs ?? 5_000)
  const timer = new ProgressTimer(watch.stepTimeout, () =>
    stopper.stop({ kind: 'stuck', seconds: watch.stepTimeout ?? 0 }),
  )
  const interrupt = (): void => stopper.stop({ kind: 'interrupted' })
  watch.signal?.addEventListener('abort', interrupt, { once: true })
  try {
    const lastLines = await readOutput(child, application, (line) => {
      const answer = stopper.reason === undefined ? watch.onLine(line) : 'go on'
      if (answer === 'progress') timer.restart()
      if (answer === 'stop') stopper.stop({ kind: 'stopped' })
    })
    const result = await child
    return { end: stopper.reason ?? endOf(result, application), lastLines }
  } catch (error) {
    stopper.killNow()
    await child
    throw error
  } finally {
    watch.signal?.removeEventListener('abort', interrupt)
    timer.clear()
    stopper.release()
  }
}

// The type follows from the options, which decide what a process of execa offers.
function start({ command, directory }: Application) {
  const [program = '', ...words] = command
  return execa(program, words, {
    cwd: directory,
    // Python holds back what it prints to a pipe.
    env: { PYTHONUNBUFFERED: '1' },
    stdin: 'ignore',
    buffer: false,
    reject: false,
    detached: true,
    cleanup: false,
    windowsHide: true,
  })
}

async function readOutput(
  child: Process,
  { logOutput }: Application,
  onLogLine: (line: string) => void,
): Promise<string[]> {
  const [log, other] = [new LastLines(), new LastLines()]
  const onLog = (line: string): void => {
    log.add(line)
    onLogLine(line)
  }
  const [logStream, otherStream] =
    logOutput === 'stdout' ? [child.stdout, child.stderr] : [child.stderr, child.stdout]
  await Promise.all([readLines(logStream, onLog), readLines(otherStream, (line) => other.add(line))])
  return [...other.all(), ...log.all()]
}

async function readLines(stream: AsyncIterable<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const splitter = new LineSplitter(onLine)
  for await (const chunk of stream) splitter.write(chunk)
  splitter.end()
}

function endOf(result: Awaited<Process>, { command, directory }: Application): ApplicationEnd {
  if (result.signal !== undefined) return { kind: 'killed', signal: result.signal }
  if (result.exitCode !== undefined) return { kind: 'exited', code: result.exitCode }
  throw new ModelTestError(
    'APPLICATION_FAILED',
    `"${command[0]}" cannot be started in ${directory}: ${result.code}`,
    {
      hint: 'Check `executable` and `directory` in the config, and that the program is on the PATH.',
      cause: result.cause,
    },
  )
}

/** Ends the application and all it started: a request first, then by force. */
class Stopper {
  readonly #child: Process
  readonly #graceMs: number
  #reason: ApplicationEnd | undefined
  readonly #timers: NodeJS.Timeout[] = []
  readonly #forget: () => void

  constructor(child: Process, graceMs: number) {
    this.#child = child
    this.#graceMs = graceMs
    this.#forget = endWithParent(this.killNow)
    child.once('exit', () => this.#timers.push(setTimeout(this.killNow, LEFTOVER_MS)))
  }

  get reason(): ApplicationEnd | undefined {
    return this.#reason
  }

  stop(reason: ApplicationEnd): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#kill('SIGTERM')
    this.#timers.push(setTimeout(this.killNow, this.#graceMs))
  }

  readonly killNow = (): void => this.#kill('SIGKILL')

  /** Workers that closed their output are still there when it has ended. */
  release(): void {
    this.killNow()
    this.#forget()
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      if (process.platform === 'win32') this.#child.kill(signal)
      else process.kill(-pid, signal)
    } catch {
      // The group is gone.
    }
  }
}

class ProgressTimer {
  readonly #seconds: number | undefined
  readonly #onStuck: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(seconds: number | undefined, onStuck: () => void) {
    this.#seconds = seconds
    this.#onStuck = onStuck
    this.restart()
  }

  restart(): void {
    this.clear()
    if (this.#seconds === undefined) return
    this.#timer = setTimeout(this.#onStuck, Math.min(this.#seconds * 1_000, MAX_TIMER_MS))
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}
