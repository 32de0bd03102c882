/**
 * The process that holds onnxruntime: takes jobs, gives answers, and may crash alone.
 *
 * Reference settings: no optimisation, one thread, so that results do not depend on the machine.
 */
import { getEachMessage, sendMessage } from 'execa'
import type { InferenceSession } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import type { OrtAnswer, OrtJob, OrtModel } from './ort-jobs.ts'
import { loadOrt, type Ort } from './ort-runtime.ts'
import { fromOrtTensor, toOrtTensor } from './ort-tensor.ts'

interface Envelope {
  readonly id: number
  readonly job: OrtJob
}

const library = loadOrt().catch((error: unknown) => error as ModelTestError)
for await (const message of getEachMessage()) {
  const { id, job } = message as unknown as Envelope
  const ort = await library
  const missing =
    ort instanceof ModelTestError
      ? ({ kind: 'missing', message: ort.message, hint: ort.hint } as const)
      : undefined
  await sendMessage({ id, answer: missing ?? (await answer(ort as Ort, job)) } as never)
}

async function answer(ort: Ort, job: OrtJob): Promise<OrtAnswer> {
  let session: InferenceSession
  try {
    session = await ort.InferenceSession.create(job.model.bytes, sessionOptions(job.model))
  } catch (error) {
    return { kind: 'failed', step: 'load', message: (error as Error).message }
  }
  try {
    if (job.kind === 'describe') return { kind: 'described', description: describe(session) }
    const feeds = Object.fromEntries(
      Object.entries(job.feeds).map(([name, value]) => [name, toOrtTensor(ort, value)]),
    )
    const { fetches, measures = [] } = job
    const results = await session.run(feeds, [...new Set([...fetches, ...measures])])
    return {
      kind: 'ran',
      outputs: Object.fromEntries(fetches.map((name) => [name, fromOrtTensor(results[name] as never)])),
      shapes: Object.fromEntries(measures.map((name) => [name, [...results[name]!.dims]])),
    }
  } catch (error) {
    return { kind: 'failed', step: 'run', message: (error as Error).message }
  } finally {
    await session.release()
  }
}

function sessionOptions({ folder }: OrtModel): InferenceSession.SessionOptions {
  return {
    executionProviders: ['cpu'],
    graphOptimizationLevel: 'disabled',
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
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
