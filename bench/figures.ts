/**
 * Figures -> the table that a benchmark prints: what, figure, goal, verdict, ratio to a baseline.
 *
 * Pure. A figure with a goal is `ok` or `missed`; one without is there to compare with.
 */
export interface Section {
  readonly title: string
  readonly figures: readonly Figure[]
  /** What a reader must know to take the figures for what they are. */
  readonly notes?: readonly string[]
}

export interface Figure {
  readonly what: string
  readonly value: number
  readonly unit: Unit
  /** At most this. */
  readonly goal?: number
  /** Reads "0.3x of onnx-proto". */
  readonly ratio?: { readonly value: number; readonly versus: string }
}

export type Unit = 'ms' | 'µs' | 'kB' | 'MB' | 'MB/s' | 'x'

export function isMissed({ value, goal }: Figure): boolean {
  return goal !== undefined && value > goal
}

export function renderSection({ title, figures, notes = [] }: Section): string {
  const rows = [HEADER, ...figures.map(cells)]
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return [title, ...rows.map((row) => `  ${align(row, widths)}`), ...notes.map((note) => `  * ${note}`)].join(
    '\n',
  )
}

const HEADER: readonly string[] = ['', 'figure', 'goal', 'verdict', 'compared']

function cells(figure: Figure): readonly string[] {
  const { what, value, unit, goal, ratio } = figure
  return [
    what,
    withUnit(value, unit),
    goal === undefined ? '' : `<= ${withUnit(goal, unit)}`,
    goal === undefined ? '' : isMissed(figure) ? 'missed' : 'ok',
    ratio === undefined ? '' : `${rounded(ratio.value)}x ${ratio.versus}`,
  ]
}

/** The figure and the goal stand right, words left. */
const RIGHT = new Set([1, 2])

function align(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, column) =>
      RIGHT.has(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
    )
    .join('   ')
    .trimEnd()
}

function withUnit(value: number, unit: Unit): string {
  return unit === 'x' ? `${rounded(value)}x` : `${rounded(value)} ${unit}`
}

/** Three digits are more than a busy machine can promise. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumSignificantDigits: 3 })
}
