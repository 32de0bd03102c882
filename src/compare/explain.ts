/**
 * A verdict -> lines of plain text for people: what was judged, by which rule, and what is off.
 *
 * No colours and no trailing spaces: who prints the lines may paint them. Numbers have six
 * significant digits, except expected and actual values, which are written so that reading them
 * back gives the same float32.
 */
import { BOUNDS, ofElements, type Verdict } from './compare.ts'
import type { OutputsVerdict } from './compare-outputs.ts'
import type { ErrorHistogram } from './error-histogram.ts'
import { limitText } from './error-rule.ts'
import type { ErrorStats } from './error-stats.ts'
import { textTable } from './text-table.ts'
import { snakeCase, type Tolerance } from './tolerance.ts'
import type { WorstElement } from './worst-elements.ts'

export interface ExplainOptions {
  /** The output's name. */
  readonly name?: string | undefined
  /** Where the tolerance came from, as in `thresholds.json: op Softmax on webgpu`. */
  readonly origin?: string | undefined
  /** Whether to add the histogram of absolute errors. @default false */
  readonly histogram?: boolean | undefined
}

/** One line: the verdict and the figure that decided it. */
export function summarizeVerdict(verdict: Verdict, { name }: ExplainOptions = {}): string {
  const subject = name === undefined ? '' : `${name}: `
  switch (verdict.kind) {
    case 'match':
      return `${subject}match, ${shortFigures(verdict.stats)}`
    case 'mismatch':
      return `${subject}mismatch, ${verdict.reasons[0]!.message}; ${shortFigures(verdict.stats)}`
    case 'incomparable':
      return `${subject}incomparable, actual is ${verdict.actual}, expected is ${verdict.expected}`
  }
}

export function explainVerdict(verdict: Verdict, options: ExplainOptions = {}): string[] {
  if (verdict.kind === 'incomparable') return [summarizeVerdict(verdict, options)]
  const { stats, tolerance } = verdict
  return [
    `${options.name === undefined ? '' : `${options.name}: `}${verdict.kind} of ${verdict.dtype}[${verdict.shape.join(', ')}]`,
    ...(verdict.kind === 'mismatch' ? verdict.reasons.map(({ message }) => `  - ${message}`) : []),
    `threshold ${thresholdText(verdict, options)}`,
    wrongText(verdict),
    ...(stats.finite === stats.count
      ? []
      : [`figures of ${ofElements(stats.finite, stats.count)}, the finite ones`]),
    ...section('', textTable(metricRows(stats, tolerance), [1, 2])),
    ...section('worst elements', worstTable(stats)),
    ...(options.histogram === true
      ? section('absolute errors', histogramTable(stats.histogram, stats.count))
      : []),
  ]
}

/** All outputs that do not match, or a line for each if all do; `originOf` says where an output's tolerance came from. */
export function explainOutputs(
  verdict: OutputsVerdict,
  originOf: (name: string) => string | undefined = () => undefined,
): string[] {
  const { kind, outputs, missing, unexpected } = verdict
  if (kind === 'match') return [...outputs].map(([name, output]) => summarizeVerdict(output, { name }))
  return [
    ...missing.map((name) => `${name}: the result has no such output`),
    ...unexpected.map((name) => `${name}: the reference has no such output`),
    ...[...outputs].flatMap(([name, output]) =>
      output.kind === 'match'
        ? [summarizeVerdict(output, { name })]
        : explainVerdict(output, { name, origin: originOf(name) }),
    ),
  ]
}

/** The absolute errors by powers of ten, with bars. */
export function histogramTable({ exact, bins, undefinedErrors }: ErrorHistogram, count: number): string[] {
  const rows = [
    { label: 'equal', count: exact },
    ...bins.map((bin) => ({ label: `1e${bin.decade} to 1e${bin.decade + 1}`, count: bin.count })),
    ...(undefinedErrors > 0 ? [{ label: 'NaN or infinity', count: undefinedErrors }] : []),
  ]
  return textTable(
    rows.map((row) => [row.label, String(row.count), bar(row.count, count)]),
    [1],
  )
}

const BAR_WIDTH = 40

/** At least one mark for what occurs at all. */
function bar(part: number, count: number): string {
  return part === 0 ? '' : '#'.repeat(Math.max(1, Math.round((BAR_WIDTH * part) / count)))
}

function shortFigures({ rule, wrong, count, maxAbs, maxRel, cosine }: ErrorStats): string {
  if (rule.kind === 'equal') return `${count - wrong} equal`
  return `max abs ${figure(maxAbs)}, max rel ${figure(maxRel)}, cosine ${figure(cosine)}`
}

type Judged = Exclude<Verdict, { kind: 'incomparable' }>

/** What decided: of a mismatch the limits that were exceeded, else all there are. */
function thresholdText(verdict: Judged, { origin }: ExplainOptions): string {
  const limits = decidingLimits(verdict).map(({ text }) => text)
  const kinds = reasonKinds(verdict)
  const flags = [
    ...(kinds.has('nan-positions') ? ['skip_nan_check false'] : []),
    ...(kinds.has('all-zero') ? ['allow_all_zero false'] : []),
  ]
  const texts = limits.length > 0 ? limits : flags
  if (texts.length === 0) return 'equal infinities, whatever the tolerance'
  return `${texts.join(', ')}${origin === undefined ? '' : ` from ${origin}`}`
}

interface Limit {
  readonly text: string
  readonly field: string
  readonly side: 'least' | 'most'
  /** The tightest limit that holds; undefined if there is none. */
  readonly passing: string | undefined
}

function decidingLimits(verdict: Judged): Limit[] {
  const { stats, tolerance } = verdict
  const kinds = reasonKinds(verdict)
  const decides = (kind: string): boolean => verdict.kind === 'match' || kinds.has(kind)
  const bounds = BOUNDS.flatMap(({ kind, figure: key, field, side }): Limit[] => {
    const [value, bound] = [stats[key], tolerance[field]]
    if (value === undefined || bound === undefined || !decides(kind)) return []
    const name = snakeCase(field)
    return [{ text: `${name} ${bound}`, field: name, side, passing: rounded(value, side) }]
  })
  return [...(decides('elements') ? [elementLimit(verdict)] : []), ...bounds]
}

function elementLimit({ stats, tolerance }: Judged): Limit {
  const { rule, count, smallestTolerance } = stats
  const allowance = rule.allowedWrong === 0 ? '' : `, allowed_wrong ${rule.allowedWrong} of ${count}`
  return {
    text: `${limitText(rule, tolerance)}${allowance}`,
    field: snakeCase(rule.kind),
    side: 'most',
    passing: smallestTolerance === undefined ? undefined : rounded(smallestTolerance, 'most'),
  }
}

function reasonKinds(verdict: Judged): ReadonlySet<string> {
  return new Set(verdict.kind === 'match' ? [] : verdict.reasons.map(({ kind }) => kind))
}

/** How many are wrong, and what the limits that decided would have to be. */
function wrongText(verdict: Judged): string {
  const { rule, wrong, count } = verdict.stats
  const share = `wrong: ${ofElements(wrong, count)}`
  const limits = verdict.kind === 'match' ? [elementLimit(verdict)] : decidingLimits(verdict)
  if (rule.kind === 'equal' || limits.length === 0) return share
  const kinds = reasonKinds(verdict)
  const isHopeless =
    ['nan-positions', 'infinities', 'all-zero'].some((kind) => kinds.has(kind)) ||
    limits.some(({ passing }) => passing === undefined)
  if (limits.length > 1) {
    const all = limits.map(({ field, passing }) => `${field} ${passing}`).join(', ')
    return `${share}; together would pass: ${isHopeless ? 'none' : all}`
  }
  const [{ field, side, passing }] = limits as [Limit]
  const extreme = side === 'most' ? 'smallest' : 'largest'
  return `${share}; ${extreme} ${field} that would pass: ${isHopeless ? 'none' : passing}`
}

function rounded(value: number, side: Limit['side']): string | undefined {
  if (!Number.isFinite(value)) return undefined
  if (Number.isSafeInteger(value)) return String(value)
  return side === 'most' ? roundedUp(value) : String(-Number(roundedUp(-value)))
}

/** Six digits, never below the number itself: who writes them into a file gets a pass. */
function roundedUp(value: number): string {
  const text = value.toPrecision(6)
  if (Number(text) >= value || value === 0) return String(Number(text))
  const exponent = Number(value.toExponential().split('e')[1])
  return String(Number((Number(text) + 10 ** (exponent - 5)).toPrecision(6)))
}

/** Bools and strings have no figures beyond how many differ. */
function metricRows(stats: ErrorStats, tolerance: Tolerance): string[][] {
  if (stats.rule.kind === 'equal') return []
  const { rule } = stats
  const bounds = {
    abs:
      rule.kind === 'intTol' || rule.kind === 'atol'
        ? most(Math.min(rule.limit, tolerance.maxAbs ?? Infinity))
        : most(tolerance.maxAbs),
    rel: rule.kind === 'fpMaxTol' ? `<= ${rule.limit}` : '',
  }
  const rows: (readonly [string, number | undefined, string])[] = [
    ['max abs error', stats.maxAbs, bounds.abs],
    ['mean abs error', stats.meanAbs, ''],
    ['max rel error', stats.maxRel, bounds.rel],
    ['mean rel error', stats.meanRel, rule.kind === 'fpMaxTol' ? `(${tolerance.fpAvgTol})` : ''],
    ['cosine', stats.cosine, least(tolerance.minCosine)],
    ['SQNR dB', stats.sqnr, least(tolerance.minSqnr)],
    ['max ULP', stats.maxUlp, most(tolerance.maxUlp)],
    ['top-1 agreement', stats.top1, least(tolerance.minTop1)],
    ['top-5 agreement', stats.top5, ''],
    ['NaN on one side', stats.nanDisagreements || undefined, tolerance.skipNanCheck ? '(skipped)' : '0'],
    ['infinity differs', stats.infDisagreements || undefined, '0'],
  ]
  const known = rows.flatMap(([name, value, bound]) =>
    value === undefined ? [] : [[name, figure(value), bound]],
  )
  return [['metric', 'value', 'bound'], ...known]
}

function most(bound: number | undefined): string {
  return bound === undefined ? '' : `<= ${bound}`
}

function least(bound: number | undefined): string {
  return bound === undefined ? '' : `>= ${bound}`
}

/** Without the errors where values are equal or not. */
function worstTable({ worst, rule }: ErrorStats): string[] {
  if (worst.length === 0) return []
  const columns = rule.kind === 'equal' ? 3 : 5
  const rows = [['index', 'expected', 'actual', 'abs', 'rel'], ...worst.map(worstRow)]
  return textTable(
    rows.map((row) => row.slice(0, columns)),
    [1, 2, 3, 4],
  )
}

function worstRow({ position, expected, actual, abs, rel }: WorstElement): string[] {
  return [`[${position.join(', ')}]`, valueText(expected), valueText(actual), figure(abs), figure(rel)]
}

/** Integers and complex numbers, which have no exact number, as worst-elements.ts writes them. */
const NUMBER_TEXT = /^([-+]?(\d[\d.e+-]*|NaN|Infinity)i?)+$/

/** Strings in quotes and cut, numbers with the nine digits that tell all float32 apart. */
function valueText(value: number | string): string {
  if (typeof value === 'number') return String(Number(value.toPrecision(9)))
  if (NUMBER_TEXT.test(value)) return value
  return JSON.stringify(value.length > 40 ? `${value.slice(0, 39)}…` : value)
}

function figure(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : String(Number(value.toPrecision(6)))
}

function section(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return []
  return [...(title === '' ? [] : [title]), ...lines.map((line) => `  ${line}`)]
}
