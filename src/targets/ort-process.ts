/**
 * onnxruntime in a process of its own: jobs in, answers out.
 *
 * A native crash or a hang ends that process and becomes an error of the one job; the next
 * job gets a new process. What the library prints is kept for the error, off the screen.
 */
import { fileURLToPath } from 'node:url'
import { execaNode, type ResultPromise } from 'execa'
import { ModelTestError } from '../errors.ts'
import type { OrtAnswer, OrtJob } from './ort-jobs.ts'

export interface OrtProcess {
  ask(job: OrtJob, timeoutMs?: number): Promise<Exclude<OrtAnswer, { kind: 'failed' | 'missing' }>>
  close(): void
}

const DEFAULT_TIMEOUT_MS = 240_000

type Child = ResultPromise<ReturnType<typeof childOptions>>

export function startOrtProcess(): OrtProcess {
  let child: Child | undefined
  let nextId = 0
  return {
    async ask(job, timeoutMs = DEFAULT_TIMEOUT_MS) {
      child ??= startChild()
      const answer = await exchange(child, nextId++, job, timeoutMs).catch((error: unknown) => {
        child?.kill('SIGKILL')
        child = undefined
        throw error
      })
      if (answer.kind === 'failed') throw failed(answer)
      if (answer.kind === 'missing')
        throw new ModelTestError('RUNTIME_MISSING', answer.message, { hint: answer.hint })
      return answer
    },
    close() {
      child?.kill('SIGKILL')
      child = undefined
    },
  }
}

let shared: OrtProcess | undefined

/** The one process of this worker, for all its tests. */
export function sharedOrtProcess(): OrtProcess {
  shared ??= startOrtProcess()
  return shared
}

function startChild(): Child {
  const child = execaNode(childScript(), [], childOptions())
  child.catch(() => {})
  return child
}

function childOptions(): {
  ipc: true
  serialization: 'advanced'
  stdin: 'ignore'
  maxBuffer: number
  buffer: { ipc: false; stdout: true; stderr: true }
  reject: false
  nodeOptions: string[]
} {
  return {
    ipc: true,
    serialization: 'advanced',
    stdin: 'ignore',
    maxBuffer: 1_000_000,
    buffer: { ipc: false, stdout: true, stderr: true },
    reject: false,
    // Sources are TypeScript while the project itself is under test.
    nodeOptions: isSource() ? ['--import', 'tsx'] : [],
  }
}

function isSource(): boolean {
  return import.meta.url.endsWith('.ts')
}

function childScript(): string {
  return fileURLToPath(new URL(isSource() ? './ort-child.ts' : './ort-child.js', import.meta.url))
}

async function exchange(child: Child, id: number, job: OrtJob, timeoutMs: number): Promise<OrtAnswer> {
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  const started = performance.now()
  try {
    const [message] = await Promise.all([
      child.getOneMessage({ filter: (candidate) => (candidate as { id?: unknown }).id === id }),
      child.sendMessage({ id, job } as never),
    ])
    return (message as unknown as { answer: OrtAnswer }).answer
  } catch (cause) {
    const { signal, exitCode, stderr } = await child
    const isTimeout = performance.now() - started >= timeoutMs
    throw new ModelTestError(
      'RUNTIME_FAILED',
      diedMessage(isTimeout ? timeoutMs : undefined, signal, exitCode, stderr),
      {
        hint: 'onnxruntime itself failed on this model; try another version of it, or report the model to its makers.',
        cause,
      },
    )
  } finally {
    clearTimeout(timer)
  }
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
        ? 'The CPU provider lacks an operator or a type that the model uses, or the model is invalid.'
        : 'The inputs do not fit the model, or a kernel failed on them.',
  })
}
