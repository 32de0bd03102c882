/**
 * The recorded values of a checkpoint and those of a new run -> one measurement for each.
 *
 * Pure. Only metrics of the config are judged: one dropped from the config is not tested any more.
 */
import { compareValue, type ComparisonRule, type ValueVerdict } from './compare-value.ts'
import type { Metric } from './parse-config.ts'
import type { MetricValue, ValueLog } from './value-log.ts'

export interface Measurement extends ComparisonRule {
  readonly step: number
  readonly metric: string
  readonly label: string
  /** As logged when gathered. */
  readonly expected: string
  /** As logged now; null where the application logged no value. */
  readonly actual: string | null
  readonly verdict: ValueVerdict
}

export function compareSegment(
  recorded: readonly MetricValue[],
  observed: ValueLog,
  metrics: readonly Metric[],
): Measurement[] {
  const rules = new Map(metrics.map((metric) => [metric.name, metric]))
  return recorded.flatMap((value) => {
    const rule = rules.get(value.metric)
    return rule === undefined ? [] : [measure(value, observed.get(value), rule)]
  })
}

function measure(
  recorded: MetricValue,
  actual: string | undefined,
  { margin, comparison }: Metric,
): Measurement {
  const { step, metric, label, value: expected } = recorded
  const verdict = compareValue(actual, expected, { margin, comparison })
  return { step, metric, label, expected, actual: actual ?? null, margin, comparison, verdict }
}
