/**
 * Manifest <-> JSON text.
 *
 * Pure. The JSON nests step, metric and label under `ckpt_logs`; in memory the values are one flat
 * list. A gather that has not ended writes `"incomplete": true` beside `ckpt_logs`, where readers
 * that know only `ckpt_logs` pass over it.
 */
import { z } from 'zod'
import { ModelTestError } from '../errors.ts'
import type { Recording } from './record-log.ts'
import type { MetricValue } from './value-log.ts'

/** `checkpoint` is a path relative to the manifest. */
export type CheckpointRecord = Recording

export interface Manifest {
  /** By start step. */
  readonly checkpoints: readonly CheckpointRecord[]
  /** The gather was interrupted, or is still running. */
  readonly incomplete: boolean
}

const stepKey = z.string().regex(/^\d+$/, 'a key must be a step number')
const loggedText = z.union([z.string(), z.number()]).transform(String)

const manifestSchema = z.object({
  ckpt_logs: z.record(
    stepKey,
    z.object({
      checkpoint: z.string().min(1),
      start_step: z.coerce.number<number>().int().nonnegative(),
      results: z.record(stepKey, z.record(z.string(), z.record(z.string(), loggedText))),
    }),
  ),
  incomplete: z.boolean().optional(),
})

type ManifestJson = z.output<typeof manifestSchema>

export function parseManifest(text: string, file: string): Manifest {
  const result = manifestSchema.safeParse(parseJson(text, file))
  if (!result.success) {
    const [issue] = result.error.issues
    throw manifestError(file, `${issue?.path.map(String).join('.') || 'the manifest'}: ${issue?.message}`)
  }
  const { ckpt_logs: logs, incomplete = false } = result.data
  return {
    checkpoints: sortByStep(Object.entries(logs).map((entry) => readCheckpoint(entry, file))),
    incomplete,
  }
}

export function renderManifest({ checkpoints, incomplete }: Manifest): string {
  const logs = sortByStep(checkpoints).map((record) => [record.startStep, writeCheckpoint(record)])
  const json = { ckpt_logs: Object.fromEntries(logs), ...(incomplete ? { incomplete } : {}) }
  return `${JSON.stringify(json, undefined, 4)}\n`
}

/** A checkpoint recorded anew replaces the one of the same step. */
export function addCheckpoint(manifest: Manifest, record: CheckpointRecord): Manifest {
  const others = manifest.checkpoints.filter(({ startStep }) => startStep !== record.startStep)
  return { ...manifest, checkpoints: sortByStep([...others, record]) }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw manifestError(file, 'is not JSON', error)
  }
}

function readCheckpoint(
  [key, log]: [string, ManifestJson['ckpt_logs'][string]],
  file: string,
): CheckpointRecord {
  if (Number(key) !== log.start_step) {
    throw manifestError(
      file,
      `ckpt_logs.${key}.start_step: is ${log.start_step}, must be ${key} as its key says`,
    )
  }
  return { startStep: log.start_step, checkpoint: log.checkpoint, values: readResults(log.results) }
}

function readResults(results: ManifestJson['ckpt_logs'][string]['results']): MetricValue[] {
  return Object.entries(results).flatMap(([step, metrics]) =>
    Object.entries(metrics).flatMap(([metric, labels]) =>
      Object.entries(labels).map(([label, value]) => ({ step: Number(step), metric, label, value })),
    ),
  )
}

function writeCheckpoint({ startStep, checkpoint, values }: CheckpointRecord): object {
  return {
    checkpoint,
    start_step: startStep,
    results: nest(values, 'step', (atStep) =>
      nest(atStep, 'metric', (ofMetric) => nest(ofMetric, 'label', (ofLabel) => ofLabel.at(-1)?.value)),
    ),
  }
}

/** Values grouped by one of their fields, in the order they come. */
function nest(
  values: readonly MetricValue[],
  field: 'step' | 'metric' | 'label',
  render: (group: MetricValue[]) => unknown,
): object {
  const groups = new Map<number | string, MetricValue[]>()
  for (const value of values) {
    const group = groups.get(value[field])
    if (group === undefined) groups.set(value[field], [value])
    else group.push(value)
  }
  return Object.fromEntries([...groups].map(([name, group]) => [name, render(group)]))
}

function sortByStep(checkpoints: readonly CheckpointRecord[]): CheckpointRecord[] {
  return checkpoints.toSorted((a, b) => a.startStep - b.startStep)
}

function manifestError(file: string, message: string, cause?: unknown): ModelTestError {
  return new ModelTestError('CONVERGENCE_MANIFEST', message, {
    file,
    hint: 'Gather again (-g), or restore the manifest; docs/convergence.md shows its format.',
    cause,
  })
}
