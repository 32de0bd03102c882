/**
 * A process that holds onnxruntime: jobs in, answers out, in the order of the jobs.
 *
 * A native crash or a hang ends the process and becomes an error of the one job it was at; what
 * it had not begun is handed back. What the library prints is kept for the error, off the screen.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ModelTestError } from '../errors.ts'
import type { OrtAnswer, OrtJob, OrtMessage, OrtRuntime } from './ort-jobs.ts'

/** A job and who waits for its answer. */
export interface OrtOrder {
  readonly job: OrtJob
  /** From when the process turns to it; the start of the process and jobs before it do not count. */
  readonly timeoutMs: number
  readonly resolve: (answer: OrtAnswer) => void
  readonly reject: (error: unknown) => void
}

export interface OrtProcess {
  /** Jobs that are not answered yet. */
  readonly load: number
  /** In one message. */
  send(batch: readonly OrtOrder[]): void
  kill(): void
}

export interface OrtProcessEvents {
  /** It can take another job. */
  answered(): void
  /** It is gone; these jobs it had not begun. */
  ended(unbegun: readonly OrtOrder[]): void
}

/** Loading the library reads tens of megabytes, which takes long on a cold or busy machine. */
const START_TIMEOUT_MS = 120_000

export function startOrtProcess(runtime: OrtRuntime, events: OrtProcessEvents): OrtProcess {
  const child = forkChild(runtime)
  const orders: OrtOrder[] = []
  const said = { text: '' }
  let isReady = false
  let timer: NodeJS.Timeout | undefined
  let lateMs: number | undefined

  const watchFirst = (): void => {
    clearTimeout(timer)
    const [first] = orders
    keepAlive(child, first !== undefined)
    if (first === undefined) return
    const limit = isReady ? first.timeoutMs : START_TIMEOUT_MS
    timer = setTimeout(() => {
      lateMs = limit
      child.kill('SIGKILL')
    }, limit)
  }

  child.on('message', (message: OrtMessage) => {
    if (message.kind === 'ready') isReady = true
    else orders.shift()?.resolve(message.answer)
    // What it printed was about the job that is done; the next is not to be charged with it.
    said.text = ''
    watchFirst()
    if (message.kind === 'answer') events.answered()
  })
  void endOf(child, said).then((end) => {
    clearTimeout(timer)
    const [first, ...unbegun] = orders.splice(0)
    first?.reject(died(end, lateMs, isReady))
    events.ended(unbegun)
  })
  return {
    get load() {
      return orders.length
    },
    send(batch) {
      const wasIdle = orders.length === 0
      orders.push(...batch)
      if (wasIdle) watchFirst()
      // A channel that is closed already means an end, which says more.
      child.send(
        batch.map(({ job }) => job),
        () => {},
      )
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

/** Node's own channel: one event per message, where a stream of messages takes several times as long. */
function forkChild(runtime: OrtRuntime): ChildProcess {
  return fork(childScript(), [runtime], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // Sources are TypeScript while the project itself is under test.
    execArgv: isSource() ? ['--import', 'tsx'] : [],
  })
}

/** A process without jobs does not keep its parent from ending; it ends when the parent has. */
function keepAlive(child: ChildProcess, isNeeded: boolean): void {
  const pipe = child.stderr as (NodeJS.ReadableStream & { ref(): void; unref(): void }) | null
  const change = isNeeded ? 'ref' : 'unref'
  for (const handle of [child, child.channel, pipe]) handle?.[change]()
}

interface End {
  readonly signal: string | undefined
  readonly exitCode: number | undefined
  readonly stderr: string
  readonly cause?: Error
}

/** What is kept of the library's output. */
const MAX_STDERR = 1_000_000

function endOf(child: ChildProcess, said: { text: string }): Promise<End> {
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said.text = (said.text + text).slice(0, MAX_STDERR)
  })
  return new Promise((resolve) => {
    child.once('close', (exitCode, signal) => {
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined, stderr: said.text })
    })
    child.on('error', (cause) =>
      resolve({ exitCode: undefined, signal: undefined, stderr: said.text, cause }),
    )
  })
}

function isSource(): boolean {
  return import.meta.url.endsWith('.ts')
}

function childScript(): string {
  return fileURLToPath(new URL(isSource() ? './ort-child.ts' : './ort-child.js', import.meta.url))
}

function died(
  { signal, exitCode, stderr, cause }: End,
  lateMs: number | undefined,
  wasReady: boolean,
): ModelTestError {
  const said = stderr.trim() === '' ? '' : `; it said:\n${stderr.trim()}`
  if (lateMs !== undefined) {
    const what = wasReady ? 'did not answer' : 'did not start'
    return new ModelTestError(
      'RUNTIME_FAILED',
      `the process that runs onnxruntime ${what} within ${lateMs / 1000} s${said}`,
      {
        hint: 'Allow more with ONNX_TEST_RUN_TIMEOUT (seconds), or test a smaller shape; if it never ends, report the model to the makers of onnxruntime.',
        cause,
      },
    )
  }
  const how = signal === undefined ? `stopped with exit code ${exitCode}` : `was ended by ${signal}`
  return new ModelTestError('RUNTIME_FAILED', `the process that runs onnxruntime ${how}${said}`, {
    hint: 'onnxruntime itself failed on this model; try another version of it, or report the model to its makers.',
    cause,
  })
}
