/**
 * `<model>-thresholds.json`, which the threshold command writes: JSON -> thresholds per metric.
 *
 *   { "model_id": "org/model", "ce": 2.39, "diff_mean": 5.8e-4, "abs_diff": { "layers.0": 0.4 } }
 *
 * Each metric has one number for the whole model or one per layer.
 */
import * as z from 'zod'
import { ModelTestError } from '../errors.ts'

export interface MetricThresholds {
  readonly modelId: string
  readonly model: ReadonlyMap<string, number>
  readonly layers: ReadonlyMap<string, ReadonlyMap<string, number>>
}

const schema = z
  .object({ model_id: z.string() })
  .catchall(z.union([z.number(), z.record(z.string(), z.number())]))

export function parseMetricThresholds(json: unknown, file: string): MetricThresholds {
  const result = schema.safeParse(json)
  if (!result.success) throw invalid(file, result.error)
  const { model_id: modelId, ...metrics } = result.data
  const model = new Map<string, number>()
  const layers = new Map<string, ReadonlyMap<string, number>>()
  for (const [metric, value] of Object.entries(metrics)) {
    if (typeof value === 'number') model.set(metric, value)
    else layers.set(metric, new Map(Object.entries(value)))
  }
  return { modelId, model, layers }
}

function invalid(file: string, error: z.ZodError): ModelTestError {
  const issue = error.issues[0]!
  const place = issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`
  return new ModelTestError('INVALID_OPTION', `not a file of metric thresholds${place}: ${issue.message}`, {
    file,
    hint: 'It holds "model_id" and, per metric, a number or an object of numbers by layer.',
  })
}
