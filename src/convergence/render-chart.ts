/**
 * A chart -> an SVG picture that stands alone.
 *
 * Pure. The segments stand side by side, each with a step axis of its own: on one axis, segments of
 * a few steps of a training of millions would be dots. Failing steps differ by shape as well as by
 * colour. Colours follow the reader's light or dark setting.
 */
import { scaleLinear, scaleLog } from 'd3-scale'
import {
  area,
  line,
  symbol,
  symbolCircle,
  symbolDiamond,
  symbolSquare,
  symbolTimes,
  type SymbolType,
} from 'd3-shape'
import type { Chart, ChartPoint, ChartSegment } from './chart-data.ts'
import { escapeMarkup } from './escape-markup.ts'
import { ruleText } from './render-table.ts'

const HEIGHT = 360
const MIN_WIDTH = 960
const MARGIN = { top: 72, right: 20, bottom: 52, left: 76 }
const PANEL_GAP = 10
const MIN_PANEL_WIDTH = 34
/** What a digit of a step label takes, and the least space between two labels. */
const DIGIT_WIDTH = 7
const LABEL_GAP = 10
/** Positive values that span more than this factor are drawn on a log scale. */
const LOG_SPAN = 20

interface Panel {
  readonly segment: ChartSegment
  readonly left: number
  readonly width: number
  readonly x: (step: number) => number
}

interface YAxis {
  (value: number): number
  readonly marks: readonly { readonly y: number; readonly text: string }[]
}

/** `id` tells the charts of a page apart. */
export function renderChart(chart: Chart, id: string = 'chart'): string {
  const width = Math.max(
    MIN_WIDTH,
    MARGIN.left + MARGIN.right + chart.segments.length * (MIN_PANEL_WIDTH + PANEL_GAP),
  )
  const panels = layOut(chart.segments, width)
  const y = yAxis(chart)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="convergence" viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" role="img" aria-labelledby="${id}-title ${id}-desc">`,
    `<title id="${id}-title">${escapeMarkup(`${chart.test}: ${chart.title}`)}</title>`,
    `<desc id="${id}-desc">${escapeMarkup(describe(chart))}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="${width}" height="${HEIGHT}"/>`,
    renderHead(chart),
    ...panels.map(renderBackground),
    ...y.marks.map((tick) => renderGridLine(tick, width)),
    ...panels.map((panel) => renderPanel(panel, y)),
    ...stepLabels(panels),
    text(width / 2, HEIGHT - 10, 'step', 'muted', 'middle'),
    '</svg>',
    '',
  ].join('\n')
}

function describe({ segments, rule }: Chart): string {
  const points = segments.flatMap((segment) => segment.points)
  const wrong = points.filter(isWrong)
  const what = `${segments.length} segments of the recorded training curve, ${points.length} steps`
  if (rule === undefined) return `${what}.`
  const verdict =
    wrong.length === 0 ? 'all steps pass' : `failing steps: ${wrong.map(({ step }) => step).join(', ')}`
  return `${what}, with the values of the new run; rule ${ruleText(rule)}; ${verdict}.`
}

/** Widths in proportion to the steps, but never too narrow to see. */
function layOut(segments: readonly ChartSegment[], width: number): Panel[] {
  const free =
    width - MARGIN.left - MARGIN.right - PANEL_GAP * (segments.length - 1) - MIN_PANEL_WIDTH * segments.length
  const total = segments.reduce((sum, segment) => sum + span(segment), 0)
  let left = MARGIN.left
  return segments.map((segment) => {
    const panelWidth = MIN_PANEL_WIDTH + (free * span(segment)) / total
    const panel = { segment, left, width: panelWidth, x: stepScale(segment, left, panelWidth) }
    left += panelWidth + PANEL_GAP
    return panel
  })
}

function span({ points }: ChartSegment): number {
  const [first, last] = ends(points)
  return last - first + 1
}

function stepScale({ points }: ChartSegment, left: number, width: number): (step: number) => number {
  const inset = Math.min(12, width / 4)
  return scaleLinear(ends(points), [left + inset, left + width - inset])
}

/** The points of a segment are in order. */
function ends(points: readonly ChartPoint[]): [first: number, last: number] {
  return [points[0]?.step ?? 0, points.at(-1)?.step ?? 0]
}

function yAxis(chart: Chart): YAxis {
  const values = chart.segments.flatMap(({ points }) => points.flatMap(finiteValues))
  const [low, high] = values.length === 0 ? [0, 1] : [values.reduce(min), values.reduce(max)]
  const range = [HEIGHT - MARGIN.bottom - 8, MARGIN.top + 8]
  const isLog = low > 0 && high / low > LOG_SPAN
  const [from, to] =
    low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high]
  const scale = isLog ? scaleLog([low, high], range) : scaleLinear([from, to], range).nice()
  const ticks = isLog ? thinOut(scale.ticks()) : scale.ticks(6)
  const marks = ticks.map((value) => ({ y: scale(value), text: tickText(value) }))
  return Object.assign((value: number) => scale(value), { marks })
}

/** A log scale gives more ticks than lines of text fit: 1, 2 and 5 of each decade, or its 1 alone. */
function thinOut(ticks: readonly number[]): number[] {
  const of = (digits: string): number[] =>
    ticks.filter((tick) => digits.includes(tick.toExponential(0).charAt(0)))
  const few = of('125')
  return few.length <= 10 ? few : of('1')
}

// Spread into Math.min, the values of a long training would overflow the stack.
const min = (a: number, b: number): number => Math.min(a, b)
const max = (a: number, b: number): number => Math.max(a, b)

function tickText(value: number): string {
  return String(Number(value.toPrecision(6)))
}

function finiteValues({ expected, actual, band }: ChartPoint): number[] {
  return [expected.value, actual?.value ?? Number.NaN, ...(band ?? [])].filter(Number.isFinite)
}

function renderHead({ test, title, rule }: Chart): string {
  const rules = rule === undefined ? '' : `, rule ${ruleText(rule)}`
  const legend = legendOf(rule).map(([kind, name, shape], index) => {
    const x = MARGIN.left + 8 + index * 112
    return (
      mark(kind, shape, x, 46, kind === 'wrong' || kind === 'band' ? 70 : 36) +
      text(x + 12, 50, name, 'muted')
    )
  })
  return text(MARGIN.left, 26, `${test}: ${title}${rules}`, 'title') + legend.join('')
}

function legendOf(rule: Chart['rule']): [kind: string, name: string, shape: SymbolType][] {
  const recorded: [string, string, SymbolType] = ['recorded', 'recorded', symbolCircle]
  if (rule === undefined) return [recorded]
  return [
    recorded,
    ['band', 'margin', symbolSquare],
    ['new', 'new run', symbolCircle],
    ['wrong', 'regression', symbolTimes],
    ['wrong', 'not logged', symbolDiamond],
  ]
}

function renderGridLine({ y, text: value }: YAxis['marks'][number], width: number): string {
  return (
    `<line class="grid" x1="${MARGIN.left}" x2="${width - MARGIN.right}" y1="${px(y)}" y2="${px(y)}"/>` +
    text(MARGIN.left - 8, y + 4, value, 'muted', 'end')
  )
}

function renderBackground({ left, width }: Panel): string {
  const height = HEIGHT - MARGIN.top - MARGIN.bottom
  return `<rect class="panel" x="${px(left)}" y="${MARGIN.top}" width="${px(width)}" height="${height}"/>`
}

function renderPanel({ segment, x }: Panel, y: YAxis): string {
  const { points } = segment
  return [
    '<g>',
    path('band', bandPath(points, x, y)),
    path(
      'recorded',
      curve(points, (point) => point.expected.value, x, y),
    ),
    path(
      'new',
      curve(points, (point) => point.actual?.value ?? Number.NaN, x, y),
    ),
    ...points.map((point) => renderPoint(point, segment, x, y)),
    '</g>',
  ].join('')
}

function curve(
  points: readonly ChartPoint[],
  value: (point: ChartPoint) => number,
  x: Panel['x'],
  y: YAxis,
): string | null {
  return line<ChartPoint>(
    (point) => x(point.step),
    (point) => y(value(point)),
  ).defined((point) => Number.isFinite(value(point)))([...points])
}

function bandPath(points: readonly ChartPoint[], x: Panel['x'], y: YAxis): string | null {
  return area<ChartPoint>(
    (point) => x(point.step),
    (point) => y(point.band?.[0] ?? 0),
    (point) => y(point.band?.[1] ?? 0),
  ).defined(({ band }) => band !== undefined)([...points])
}

function renderPoint(point: ChartPoint, segment: ChartSegment, x: Panel['x'], y: YAxis): string {
  const { step, expected, actual, verdict } = point
  const at = x(step)
  const expectedY = Number.isFinite(expected.value) ? y(expected.value) : MARGIN.top + 8
  const actualY = actual !== undefined && Number.isFinite(actual.value) ? y(actual.value) : MARGIN.top + 14
  const parts = [mark('recorded', symbolCircle, at, expectedY, 14)]
  if (verdict === 'pass') parts.push(mark('new', symbolCircle, at, actualY, 14))
  if (verdict === 'regression') parts.push(mark('wrong', symbolTimes, at, actualY, 90))
  if (verdict === 'missing') parts.push(mark('wrong', symbolDiamond, at, expectedY, 70))
  if (verdict === 'regression' && actual !== undefined && !Number.isFinite(actual.value)) {
    parts.push(text(at, actualY + 18, actual.text.slice(0, 8), 'wrong-text', 'middle'))
  }
  const now =
    actual === undefined ? (verdict === undefined ? '' : ', not logged') : `, new ${actual.text} (${verdict})`
  const tip = `step ${step} from ${segment.checkpoint}: recorded ${expected.text}${now}`
  return `<g><title>${escapeMarkup(tip)}</title>${parts.join('')}</g>`
}

/** The first step of every panel that has room, and the last where it fits before the next first. */
function stepLabels(panels: readonly Panel[]): string[] {
  const y = HEIGHT - MARGIN.bottom + 18
  let free = 0
  return panels.flatMap(({ segment, x }, index) => {
    const next = panels[index + 1]
    const limit =
      next === undefined ? Number.POSITIVE_INFINITY : labelStart(next, ends(next.segment.points)[0])
    const steps = [...new Set(ends(segment.points))]
    return steps.flatMap((step, position) => {
      const [from, to] = [labelStart({ x }, step), 2 * x(step) - labelStart({ x }, step) + LABEL_GAP]
      if (from < free || (position > 0 && to > limit)) return []
      free = to
      return [text(x(step), y, String(step), 'muted', 'middle')]
    })
  })
}

function labelStart({ x }: Pick<Panel, 'x'>, step: number): number {
  return x(step) - (String(step).length * DIGIT_WIDTH) / 2
}

function isWrong({ verdict }: ChartPoint): boolean {
  return verdict === 'regression' || verdict === 'missing'
}

function mark(kind: string, shape: SymbolType, x: number, y: number, size: number): string {
  return `<path class="mark ${kind}" transform="translate(${px(x)},${px(y)})" d="${symbol(shape, size)()}"/>`
}

function path(kind: string, d: string | null): string {
  return d === null || d === '' ? '' : `<path class="curve ${kind}" d="${d}"/>`
}

function text(x: number, y: number, value: string, kind: string, anchor: string = 'start'): string {
  return `<text class="${kind}" x="${px(x)}" y="${px(y)}" text-anchor="${anchor}">${escapeMarkup(value)}</text>`
}

function px(value: number): string {
  return String(Math.round(value * 100) / 100)
}

const STYLE = `
.convergence{--paper:#fff;--panel:#f6f8fa;--ink:#1f2328;--muted:#59636e;--grid:#d1d9e0;--recorded:#6e7781;--new:#0969da;--wrong:#cf222e;font:12px system-ui,sans-serif}
@media (prefers-color-scheme:dark){.convergence{--paper:#0d1117;--panel:#151b23;--ink:#f0f6fc;--muted:#9198a1;--grid:#3d444d;--recorded:#9198a1;--new:#58a6ff;--wrong:#ff7b72}}
.convergence .paper{fill:var(--paper)}
.convergence .panel{fill:var(--panel)}
.convergence .grid{stroke:var(--grid);stroke-opacity:.6}
.convergence text{fill:var(--ink)}
.convergence .title{font-size:15px;font-weight:600}
.convergence .muted{fill:var(--muted)}
.convergence .wrong-text{fill:var(--wrong);font-weight:600}
.convergence .curve{fill:none;stroke-width:1.75;stroke-linejoin:round}
.convergence .curve.recorded{stroke:var(--recorded)}
.convergence .curve.new{stroke:var(--new)}
.convergence .curve.band{fill:var(--recorded);fill-opacity:.16;stroke:none}
.convergence .mark.recorded{fill:var(--recorded)}
.convergence .mark.band{fill:var(--recorded);fill-opacity:.3}
.convergence .mark.new{fill:var(--new)}
.convergence .mark.wrong{fill:none;stroke:var(--wrong);stroke-width:2.25;stroke-linecap:round}
`.trim()
