/** The process that holds onnxruntime: takes jobs, gives answers, and may crash alone. */
import type { InferenceSession } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import { loadTensor, writeTensorFile } from '../files/tensor-file.ts'
import { equalTensors, type Tensor } from '../tensor/tensor.ts'
import type { OrtAnswer, OrtJob, OrtModel, OrtSettings } from './ort-jobs.ts'
import { loadOrt, type Ort } from './ort-runtime.ts'
import { fromOrtTensor, toOrtTensor } from './ort-tensor.ts'

interface Envelope {
  readonly id: number
  readonly job: OrtJob
}

const REFERENCE: OrtSettings = { providers: ['cpu'], optimisation: 'disabled' }

const library = loadOrt().catch((error: unknown) => error as ModelTestError)
// One after the other: a crash is then that of the job at hand.
let last: Promise<unknown> = Promise.resolve()
process.on('message', (message) => {
  last = last.then(() => reply(message as Envelope))
})
process.once('disconnect', () => process.exit())

async function reply({ id, job }: Envelope): Promise<void> {
  const ort = await library
  const missing =
    ort instanceof ModelTestError
      ? ({ kind: 'missing', message: ort.message, hint: ort.hint } as const)
      : undefined
  process.send!({ id, answer: missing ?? (await answer(ort as Ort, job)) })
}

async function answer(ort: Ort, job: OrtJob): Promise<OrtAnswer> {
  const started = performance.now()
  let session: InferenceSession
  try {
    session = await ort.InferenceSession.create(job.model.bytes, sessionOptions(job.model, job.settings))
  } catch (error) {
    return { kind: 'failed', step: 'load', message: (error as Error).message }
  }
  const loaded = performance.now()
  try {
    if (job.kind === 'describe') return { kind: 'described', description: describe(session) }
    const tensors = Object.entries(job.feeds).map(([name, stored]) => [name, loadTensor(stored)] as const)
    const feeds = Object.fromEntries(tensors.map(([name, value]) => [name, toOrtTensor(ort, value)]))
    const measures = job.kind === 'run' ? (job.measures ?? []) : []
    const results = await session.run(feeds, [...new Set([...job.fetches, ...measures])])
    const outputs = job.fetches.map((name) => [name, fromOrtTensor(results[name] as never)] as const)
    if (job.kind === 'run') {
      const shapes = Object.fromEntries(measures.map((name) => [name, [...results[name]!.dims]]))
      return { kind: 'ran', outputs: Object.fromEntries(outputs), shapes }
    }
    const runMs = performance.now() - loaded
    const isExpected = ([name, value]: readonly [string, Tensor]): boolean => {
      const stored = job.expected?.[name]
      return stored !== undefined && equalTensors(loadTensor(stored), value)
    }
    const [same, others] = partition(outputs, isExpected)
    const isNothingNew = same.length > 0 && others.length === 0 && !job.keepFeeds
    if (isNothingNew) return { kind: 'stored', loadMs: loaded - started, runMs }
    writeTensorFile(
      job.path,
      new Map([...(job.keepFeeds ? tensors : []), ...others]),
      same.map(([name]) => name),
    )
    return { kind: 'stored', loadMs: loaded - started, runMs }
  } catch (error) {
    if (error instanceof ModelTestError && error.code === 'FILE_UNWRITABLE') throw error
    return { kind: 'failed', step: 'run', message: (error as Error).message }
  } finally {
    await session.release()
  }
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  const parts: [T[], T[]] = [[], []]
  for (const item of items) parts[isFirst(item) ? 0 : 1].push(item)
  return parts
}

function sessionOptions(
  { folder }: OrtModel,
  { providers, optimisation, threads = 1, session = {} }: OrtSettings = REFERENCE,
): InferenceSession.SessionOptions {
  return {
    executionProviders: providers as never,
    graphOptimizationLevel: optimisation,
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    ...session,
    ...(folder === undefined
      ? {}
      : { extra: { session: { model_external_initializers_file_folder_path: folder } } }),
  }
}

function describe({
  inputMetadata,
  outputMetadata,
}: InferenceSession): Extract<OrtAnswer, { kind: 'described' }>['description'] {
  return {
    inputs: inputMetadata.map((info) => ({ ...info })),
    outputs: outputMetadata.map((info) => ({ ...info })),
  }
}
