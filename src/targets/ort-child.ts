/** The process that holds onnxruntime: takes jobs, gives answers, and may crash alone. */
import type { InferenceSession } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import { loadTensor, writeTensorFile } from '../files/tensor-file.ts'
import { equalTensors, type Tensor } from '../tensor/tensor.ts'
import type { OrtAnswer, OrtJob, OrtMessage, OrtModel, OrtSettings } from './ort-jobs.ts'
import { loadOrt, loadOrtWeb, type Ort } from './ort-runtime.ts'
import { fromOrtTensor, toOrtTensor } from './ort-tensor.ts'

const REFERENCE: OrtSettings = { providers: ['cpu'], optimisation: 'disabled' }

const load = process.argv[2] === 'web' ? loadOrtWeb : loadOrt
const library = load().catch((error: unknown) => error as ModelTestError)
// One after the other: a crash is then that of the first job that has no answer.
let last: Promise<unknown> = library.then(() => say({ kind: 'ready' }))
process.on('message', (jobs) => {
  for (const job of jobs as readonly OrtJob[]) {
    last = last.then(async () => say({ kind: 'answer', answer: await answerTo(job) }))
  }
})
process.once('disconnect', () => process.exit())

function say(message: OrtMessage): void {
  process.send!(message)
}

async function answerTo(job: OrtJob): Promise<OrtAnswer> {
  const ort = await library
  return ort instanceof ModelTestError
    ? { kind: 'missing', message: ort.message, hint: ort.hint }
    : answer(ort, job)
}

async function answer(ort: Ort, job: OrtJob): Promise<OrtAnswer> {
  const started = performance.now()
  let session: InferenceSession
  try {
    session = await createSession(ort, job)
  } catch (error) {
    return { kind: 'failed', step: 'load', message: messageOf(error) }
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
    if (error instanceof ModelTestError && error.code === 'FILE_UNWRITABLE')
      return fileError('unwritten', error)
    if (error instanceof ModelTestError && error.code === 'FILE_UNREADABLE') return fileError('unread', error)
    return { kind: 'failed', step: 'run', message: messageOf(error) }
  } finally {
    await session.release()
  }
}

function createSession(ort: Ort, { model, settings }: OrtJob): Promise<InferenceSession> {
  const options = sessionOptions(model, settings)
  return model.path === undefined
    ? ort.InferenceSession.create(model.bytes, options)
    : ort.InferenceSession.create(model.path, options)
}

function fileError(kind: 'unwritten' | 'unread', { message, hint, cause }: ModelTestError): OrtAnswer {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return { kind, message, hint, ...(code === undefined ? {} : { code }) }
}

/** C++ exceptions that leave WebAssembly are numbers. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `it threw ${String(error)}`
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
  const { extra } = session as { readonly extra?: { readonly session?: object } }
  return {
    executionProviders: providers as never,
    graphOptimizationLevel: optimisation,
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    ...session,
    ...(folder === undefined
      ? {}
      : {
          extra: {
            ...extra,
            session: { model_external_initializers_file_folder_path: folder, ...extra?.session },
          },
        }),
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
