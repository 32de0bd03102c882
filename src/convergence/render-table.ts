/**
 * Results -> the text a person reads: one row per checkpoint, step, metric and label.
 *
 * Pure. Colours come from the caller; without them the text is plain.
 */
import { numberFromLog } from './compare-value.ts'
import type { Measurement } from './compare-segment.ts'
import { renderFailure } from './explain-end.ts'
import type { CheckpointResult } from './run-checkpoint.ts'

export interface Paint {
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  readonly dim: (text: string) => string
}

export const PLAIN: Paint = { good: String, bad: String, dim: String }

export function renderCheckpoint(result: CheckpointResult, paint: Paint = PLAIN): string {
  return render(result, result.measurements, paint)
}

/** For the message of an error: only what is wrong, and not more than fits a screen. */
export function renderWrong(result: CheckpointResult): string {
  return render(
    result,
    result.measurements.filter(({ verdict }) => verdict !== 'pass'),
    PLAIN,
    MAX_WRONG_ROWS,
  )
}

const MAX_WRONG_ROWS = 40

function render(
  result: CheckpointResult,
  measurements: readonly Measurement[],
  paint: Paint,
  maxRows: number = measurements.length,
): string {
  const { startStep, checkpoint, failure } = result
  const more = measurements.length - maxRows
  return [
    `from step ${startStep} (${checkpoint}): ${verdictOf(result, paint)}`,
    ...renderRows(measurements.slice(0, maxRows), paint),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...(failure === null ? [] : indent(paint.bad(renderFailure(failure)))),
  ].join('\n')
}

/** "loss (MLM)"; a metric of one unnamed value is just "loss". */
export function metricTitle({ metric, label }: Pick<Measurement, 'metric' | 'label'>): string {
  return label === '0' ? metric : `${metric} (${label})`
}

/** What the rule asks for, in words: "<= expected + 5%". */
export function ruleText({ margin, comparison }: Pick<Measurement, 'margin' | 'comparison'>): string {
  return margin === 0
    ? comparison
    : `${comparison} ${comparison.startsWith('<') ? '+' : comparison.startsWith('>') ? '-' : '±'}${percent(margin)}`
}

function renderRows(measurements: readonly Measurement[], paint: Paint): string[] {
  const header = ['step', 'metric', 'expected', 'actual', 'change', 'rule', 'verdict']
  const rows = measurements.map(cells)
  const widths = header.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  return [
    paint.dim(alignRow(header, widths)),
    ...rows.map((row, index) => {
      const line = alignRow(row, widths)
      return measurements[index]?.verdict === 'pass' ? line : paint.bad(line)
    }),
  ]
}

function cells(measurement: Measurement): string[] {
  const { step, expected, actual, verdict } = measurement
  const shown = [actual ?? '-', changeText(measurement)]
  return [String(step), metricTitle(measurement), expected, ...shown, ruleText(measurement), verdict]
}

/** The step and the numbers stand right, words left. */
const RIGHT = new Set([0, 2, 3, 4])

function alignRow(row: readonly string[], widths: readonly number[]): string {
  const padded = row.map((cell, column) =>
    RIGHT.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
  )
  return `  ${padded.join('  ').trimEnd()}`
}

function changeText({ expected, actual }: Measurement): string {
  const [from, to] = [numberFromLog(expected), actual === null ? undefined : numberFromLog(actual)]
  if (from === undefined || to === undefined || !Number.isFinite(from) || !Number.isFinite(to)) return '-'
  if (from === to) return '0%'
  return from === 0 ? '-' : `${to > from ? '+' : '-'}${percent(Math.abs((to - from) / from))}`
}

function percent(proportion: number): string {
  return `${Number((proportion * 100).toPrecision(3))}%`
}

function verdictOf({ outcome, measurements }: CheckpointResult, paint: Paint): string {
  const wrong = measurements.filter(({ verdict }) => verdict !== 'pass').length
  if (outcome === 'passed') return paint.good(`passed, ${measurements.length} values`)
  return paint.bad(
    `${outcome}, ${wrong} of ${measurements.length} values ${outcome === 'regressed' ? 'regressed' : 'wrong or missing'}`,
  )
}

function indent(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`)
}
