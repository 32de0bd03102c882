/**
 * onnxruntime in a process of its own: jobs in, answers out.
 *
 * A native crash or a hang ends that process and becomes an error of the one job; the next
 * job gets a new process. What the library prints is kept for the error, off the screen.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ModelTestError } from '../errors.ts'
import type { OrtAnswer, OrtJob } from './ort-jobs.ts'

export interface OrtProcess {
  ask(job: OrtJob, timeoutMs?: number): Promise<Exclude<OrtAnswer, { kind: 'failed' | 'missing' }>>
  close(): void
}

const DEFAULT_TIMEOUT_MS = 240_000

export function startOrtProcess(): OrtProcess {
  let child: Child | undefined
  const stop = (one: Child | undefined): void => {
    one?.process.kill('SIGKILL')
    if (child === one) child = undefined
  }
  return {
    async ask(job, timeoutMs = DEFAULT_TIMEOUT_MS) {
      const asked = (child ??= startChild())
      const answer = await exchange(asked, job, timeoutMs).catch((error: unknown) => {
        stop(asked)
        throw error
      })
      if (answer.kind === 'failed') throw failed(answer)
      if (answer.kind === 'missing')
        throw new ModelTestError('RUNTIME_MISSING', answer.message, { hint: answer.hint })
      return answer
    },
    close: () => stop(child),
  }
}

let shared: OrtProcess | undefined

/** The one process of this worker, for all its tests. */
export function sharedOrtProcess(): OrtProcess {
  shared ??= startOrtProcess()
  return shared
}

interface Child {
  readonly process: ChildProcess
  /** Who waits for the answer to which job. */
  readonly waiting: Map<number, (answer: OrtAnswer) => void>
  readonly end: Promise<End>
  nextId: number
}

interface End {
  readonly signal: string | undefined
  readonly exitCode: number | undefined
  readonly stderr: string
  readonly cause?: Error
}

/** What is kept of the library's output. */
const MAX_STDERR = 1_000_000

/** Node's own channel: one event per message, where a stream of messages takes several times as long. */
function startChild(): Child {
  const process = fork(childScript(), [], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // Sources are TypeScript while the project itself is under test.
    execArgv: isSource() ? ['--import', 'tsx'] : [],
  })
  const waiting: Child['waiting'] = new Map()
  process.on('message', (message) => {
    const { id, answer } = message as { id: number; answer: OrtAnswer }
    waiting.get(id)?.(answer)
    waiting.delete(id)
  })
  return { process, waiting, end: endOf(process), nextId: 0 }
}

function endOf(process: ChildProcess): Promise<End> {
  let stderr = ''
  process.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, MAX_STDERR)
  })
  return new Promise((resolve) => {
    process.once('close', (exitCode, signal) => {
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined, stderr })
    })
    process.on('error', (cause) => resolve({ exitCode: undefined, signal: undefined, stderr, cause }))
  })
}

function isSource(): boolean {
  return import.meta.url.endsWith('.ts')
}

function childScript(): string {
  return fileURLToPath(new URL(isSource() ? './ort-child.ts' : './ort-child.js', import.meta.url))
}

async function exchange(child: Child, job: OrtJob, timeoutMs: number): Promise<OrtAnswer> {
  const { process, waiting } = child
  const id = child.nextId++
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    process.kill('SIGKILL')
  }, timeoutMs)
  try {
    return await new Promise<OrtAnswer>((resolve, reject) => {
      waiting.set(id, resolve)
      void child.end.then((end) => reject(died(end, isLate ? timeoutMs : undefined)))
      // A channel that is closed already means an end, which says more.
      process.send({ id, job }, () => {})
    })
  } finally {
    clearTimeout(timer)
  }
}

function died({ signal, exitCode, stderr, cause }: End, timeoutMs: number | undefined): ModelTestError {
  return new ModelTestError('RUNTIME_FAILED', diedMessage(timeoutMs, signal, exitCode, stderr), {
    hint: 'onnxruntime itself failed on this model; try another version of it, or report the model to its makers.',
    cause,
  })
}

function diedMessage(
  timeoutMs: number | undefined,
  signal: string | undefined,
  exitCode: number | undefined,
  stderr: string,
): string {
  const how =
    timeoutMs !== undefined
      ? `did not answer within ${timeoutMs / 1000} s`
      : signal !== undefined
        ? `was ended by ${signal}`
        : `stopped with exit code ${exitCode}`
  const said = stderr.trim()
  return `the process that runs onnxruntime ${how}${said === '' ? '' : `; it said:\n${said}`}`
}

function failed({ step, message }: Extract<OrtAnswer, { kind: 'failed' }>): ModelTestError {
  return new ModelTestError('RUNTIME_FAILED', `onnxruntime cannot ${step} the model: ${message}`, {
    hint:
      step === 'load'
        ? 'The provider lacks an operator or a type that the model uses, or the model is invalid.'
        : 'The inputs do not fit the model, or a kernel failed on them.',
  })
}
