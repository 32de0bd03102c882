/**
 * Results -> charts: one for each metric and label, its segments in the order of the training.
 *
 * Pure.
 */
import { allowedRange, numberFromLog, type ComparisonRule, type ValueVerdict } from './compare-value.ts'
import type { Measurement } from './compare-segment.ts'
import type { GatherResult } from './gather-test.ts'
import { metricTitle } from './render-table.ts'
import type { TestRun } from './run-convergence.ts'
import type { MetricValue } from './value-log.ts'

export interface Chart {
  readonly test: string
  readonly metric: string
  readonly label: string
  readonly title: string
  /** Undefined for a chart of the recorded values alone. */
  readonly rule: ComparisonRule | undefined
  readonly segments: readonly ChartSegment[]
}

export interface ChartSegment {
  readonly startStep: number
  readonly checkpoint: string
  readonly points: readonly ChartPoint[]
}

export interface ChartPoint {
  readonly step: number
  readonly expected: Plotted
  /** Undefined where nothing was logged, or nothing was run. */
  readonly actual: Plotted | undefined
  readonly verdict: ValueVerdict | undefined
  /** What passes next to the expected value; undefined for a bound that is not there. */
  readonly band: readonly [low: number, high: number] | undefined
}

interface Plotted {
  readonly text: string
  readonly value: number
}

type Value = Omit<MetricValue, 'value'> | Measurement

interface Source<T extends Value> {
  readonly startStep: number
  readonly checkpoint: string
  readonly values: readonly T[]
}

export function chartsOfRun({ test, checkpoints }: TestRun): Chart[] {
  const sources = checkpoints.map(({ startStep, checkpoint, measurements: values }) => ({
    startStep,
    checkpoint,
    values,
  }))
  return charts(test, sources, measuredPoint, (first) => first)
}

export function chartsOfGather({ test, checkpoints }: GatherResult): Chart[] {
  return charts(test, checkpoints, recordedPoint, () => undefined)
}

function charts<T extends Value>(
  test: string,
  sources: readonly Source<T>[],
  pointOf: (value: T) => ChartPoint,
  ruleOf: (value: T) => ComparisonRule | undefined,
): Chart[] {
  const firsts = new Map<string, T>()
  for (const value of sources.flatMap(({ values }) => values)) {
    const key = curveKey(value)
    if (!firsts.has(key)) firsts.set(key, value)
  }
  return [...firsts].map(([key, first]) => ({
    test,
    metric: first.metric,
    label: first.label,
    title: metricTitle(first),
    rule: ruleOf(first),
    segments: sources.flatMap(({ startStep, checkpoint, values }) => {
      const points = values.filter((value) => curveKey(value) === key).map(pointOf)
      return points.length === 0
        ? []
        : [{ startStep, checkpoint, points: points.toSorted((a, b) => a.step - b.step) }]
    }),
  }))
}

function curveKey({ metric, label }: Value): string {
  return JSON.stringify([metric, label])
}

function measuredPoint(measurement: Measurement): ChartPoint {
  const { step, expected, actual, verdict } = measurement
  const recorded = plotted(expected)
  return {
    step,
    expected: recorded,
    actual: actual === null ? undefined : plotted(actual),
    verdict,
    band: Number.isFinite(recorded.value) ? bandBeside(recorded.value, measurement) : undefined,
  }
}

function recordedPoint({ step, value }: MetricValue): ChartPoint {
  return { step, expected: plotted(value), actual: undefined, verdict: undefined, band: undefined }
}

function plotted(text: string): Plotted {
  return { text, value: numberFromLog(text) ?? Number.NaN }
}

/** The part of the allowed range that the margin adds: finite, so that it can be drawn. */
function bandBeside(expected: number, rule: ComparisonRule): [number, number] | undefined {
  if (rule.comparison === '!=' || rule.margin === 0) return undefined
  const [low, high] = allowedRange(expected, rule)
  return [Number.isFinite(low) ? low : expected, Number.isFinite(high) ? high : expected]
}
