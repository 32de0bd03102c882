/**
 * Processes of onnxruntime that share the jobs of this process: a job in, its answer out.
 *
 * They start when there is something to do, as many as are allowed. Each has the next jobs in hand
 * while it is at one, so that it never waits. Jobs that a process had not begun when it ended go to
 * another.
 */
import { ModelTestError } from '../errors.ts'
import type { OrtAnswer, OrtJob, OrtRuntime } from './ort-jobs.ts'
import { type OrtOrder, type OrtProcess, startOrtProcess } from './ort-process.ts'

export type OrtReply = Exclude<OrtAnswer, { kind: 'failed' | 'missing' | 'unwritten' | 'unread' }>

export interface OrtPool {
  ask(job: OrtJob, timeoutMs?: number): Promise<OrtReply>
  /** Starts a process ahead of the first job. */
  start(): void
  close(): void
}

export interface OrtPoolOptions {
  /** @default 'node' */
  readonly runtime?: OrtRuntime
  /** How many processes at most; asked when there is more to do than they can take. @default 1 */
  readonly size?: () => number
}

const DEFAULT_TIMEOUT_MS = 240_000
/**
 * Waking a process costs more than running a small layer, so it gets several jobs at a time, and more
 * before it is through with them. Of large models it has the one it is at, and the next.
 */
const [LOW_LOAD, MAX_BATCH, MAX_BATCH_BYTES] = [2, 6, 256 * 1024]

export function openOrtPool({ runtime = 'node', size = () => 1 }: OrtPoolOptions = {}): OrtPool {
  const processes = new Set<OrtProcess>()
  const queue: OrtOrder[] = []

  const startProcess = (): OrtProcess => {
    const started = startOrtProcess(runtime, {
      answered: handOut,
      ended(unbegun) {
        const wasWanted = processes.delete(started)
        if (wasWanted) queue.unshift(...unbegun)
        else for (const { reject } of unbegun) reject(closed())
        handOut()
      },
    })
    processes.add(started)
    return started
  }
  /** An idle process first, then a new one, then one that is nearly idle. */
  const next = (): OrtProcess | undefined => {
    const [least] = [...processes].toSorted((a, b) => a.load - b.load)
    if (least !== undefined && least.load === 0) return least
    if (processes.size < size()) return startProcess()
    return least !== undefined && least.load < LOW_LOAD ? least : undefined
  }
  const handOut = (): void => {
    while (queue.length > 0) {
      const taker = next()
      if (taker === undefined) return
      taker.send(takeBatch(queue))
    }
  }
  return {
    async ask(job, timeoutMs = DEFAULT_TIMEOUT_MS) {
      const answer = await new Promise<OrtAnswer>((resolve, reject) => {
        queue.push({ job, timeoutMs, resolve, reject })
        handOut()
      })
      switch (answer.kind) {
        case 'failed':
          throw failed(answer, runtime)
        case 'missing':
          throw new ModelTestError('RUNTIME_MISSING', answer.message, { hint: answer.hint })
        case 'unwritten':
          throw unwritten(answer)
        case 'unread':
          throw new ModelTestError(
            'FILE_UNREADABLE',
            `what was stored a moment ago is gone: ${answer.message}`,
            {
              hint: 'Something removes files of the cache while tests run. Run them again, with a folder of their own if need be (ONNX_TEST_CACHE_DIR).',
            },
          )
        default:
          return answer
      }
    },
    start() {
      if (processes.size === 0) startProcess()
    },
    close() {
      for (const { reject } of queue.splice(0)) reject(closed())
      for (const one of processes) one.kill()
      processes.clear()
    },
  }
}

function takeBatch(queue: OrtOrder[]): OrtOrder[] {
  let [count, bytes] = [0, 0]
  while (count < Math.min(queue.length, MAX_BATCH) && bytes < MAX_BATCH_BYTES) {
    bytes += queue[count++]!.job.model.bytes.length
  }
  return queue.splice(0, count)
}

/** Sets how many processes may run models on the CPU at the same time. */
export function allowOrtProcesses(count: number): void {
  allowed = Math.max(1, count)
}

let allowed = 1

const pools = new Map<string, OrtPool>()

/**
 * The processes of this worker, for all its tests. A device other than the CPU gets one process of
 * its own, since what it has is not ours to divide.
 */
export function sharedOrtPool(use = 'cpu', runtime: OrtRuntime = 'node'): OrtPool {
  const key = `${runtime} ${use}`
  const pool = pools.get(key) ?? openOrtPool({ runtime, size: () => (use === 'cpu' ? allowed : 1) })
  pools.set(key, pool)
  return pool
}

function failed(
  { step, message }: Extract<OrtAnswer, { kind: 'failed' }>,
  runtime: OrtRuntime,
): ModelTestError {
  const library = runtime === 'web' ? 'onnxruntime-web' : 'onnxruntime'
  return new ModelTestError('RUNTIME_FAILED', `${library} cannot ${step} the model: ${message}`, {
    hint:
      step === 'load'
        ? `The provider lacks an operator or a type that the model uses, or the model is ${runtime === 'web' ? 'too large for 4 GB of memory' : 'invalid'}.`
        : 'The inputs do not fit the model, or a kernel failed on them.',
  })
}

function unwritten({
  message,
  hint,
  code,
}: Extract<OrtAnswer, { kind: 'unwritten' | 'unread' }>): ModelTestError {
  const cause = Object.assign(new Error(message), { code })
  return new ModelTestError('FILE_UNWRITABLE', message, { hint, cause })
}

function closed(): ModelTestError {
  return new ModelTestError(
    'RUNTIME_FAILED',
    'the processes that run onnxruntime were closed before the model ran',
    {
      hint: 'Run the test again.',
    },
  )
}
