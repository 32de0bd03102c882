/**
 * Tensor comparison: (actual, expected, tolerance) -> Verdict.
 *
 * Pure. A verdict keeps every number needed to explain itself, so that reporters and the dashboard
 * never read the tensors again. The two must have one dtype and one shape. NaN must stand in the
 * same places, infinities against themselves, and a result of zeros against zeros, whatever share
 * of wrong elements is allowed.
 */
import type { DType } from '../tensor/dtype.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { limitText } from './error-rule.ts'
import { type ErrorStats, errorStats } from './error-stats.ts'
import type { Tolerance } from './tolerance.ts'

export type Verdict =
  | {
      readonly kind: 'match'
      readonly dtype: DType
      readonly shape: readonly number[]
      readonly stats: ErrorStats
      readonly tolerance: Tolerance
    }
  | {
      readonly kind: 'mismatch'
      readonly dtype: DType
      readonly shape: readonly number[]
      readonly stats: ErrorStats
      readonly tolerance: Tolerance
      /** At least one. */
      readonly reasons: readonly Reason[]
    }
  | {
      readonly kind: 'incomparable'
      /** Dtype and shape, as in `float32[1, 3]`. */
      readonly actual: string
      readonly expected: string
    }

export interface Reason {
  readonly kind:
    | 'nan-positions'
    | 'infinities'
    | 'all-zero'
    | 'elements'
    | 'cosine'
    | 'sqnr'
    | 'ulp'
    | 'max-abs'
    | 'top1'
  /** One sentence with its values, without a full stop. */
  readonly message: string
}

export function compareTensor(actual: Tensor, expected: Tensor, tolerance: Tolerance): Verdict {
  const [a, e] = [describeTensor(actual), describeTensor(expected)]
  if (a !== e) return { kind: 'incomparable', actual: a, expected: e }

  const stats = errorStats(actual, expected, tolerance)
  const reasons = reasonsAgainst(expected.dtype, stats, tolerance)
  const judged = { dtype: expected.dtype, shape: expected.shape, stats, tolerance }
  return reasons.length === 0 ? { kind: 'match', ...judged } : { kind: 'mismatch', ...judged, reasons }
}

/** Dtype and shape, as in `float32[1, 3]`. */
export function describeTensor({ dtype, shape }: Tensor): string {
  return `${dtype}[${shape.join(', ')}]`
}

function reasonsAgainst(dtype: DType, stats: ErrorStats, tolerance: Tolerance): Reason[] {
  const isZeroed = stats.actualAllZero && !stats.expectedAllZero && dtype !== 'string'
  return [
    ...reasonIf(stats.nanDisagreements > 0 && !tolerance.skipNanCheck, 'nan-positions', () =>
      nanMessage(stats),
    ),
    ...reasonIf(stats.infDisagreements > 0, 'infinities', () => infMessage(stats)),
    ...reasonIf(isZeroed && !tolerance.allowAllZero, 'all-zero', () => 'output is 0 always'),
    ...reasonIf(stats.wrong > stats.allowedWrong, 'elements', () => wrongMessage(stats, tolerance)),
    ...boundReasons(stats, tolerance),
  ]
}

function reasonIf(fails: boolean, kind: Reason['kind'], message: () => string): Reason[] {
  return fails ? [{ kind, message: message() }] : []
}

function nanMessage({ nanDisagreements, count }: ErrorStats): string {
  return `NaN stands on one side only in ${ofElements(nanDisagreements, count)}`
}

function infMessage({ infDisagreements, count }: ErrorStats): string {
  return `an infinity stands against another value in ${ofElements(infDisagreements, count)}`
}

function wrongMessage({ wrong, allowedWrong, count, rule }: ErrorStats, tolerance: Tolerance): string {
  const limit = rule.kind === 'equal' ? 'differ' : `exceed ${limitText(rule, tolerance)}`
  const allowance = allowedWrong === 0 ? '' : `, and ${allowedWrong} may`
  return `${ofElements(wrong, count)} ${limit}${allowance}`
}

/** `3 of 64 elements (4.69%)`. */
export function ofElements(part: number, count: number): string {
  return `${part} of ${count} ${count === 1 ? 'element' : 'elements'} (${percent(part, count)})`
}

/** Never rounds some to none, nor nearly all to all. */
function percent(part: number, count: number): string {
  const value = (100 * part) / count
  if (part > 0 && value < 0.01) return '<0.01%'
  if (part < count && value > 99.99) return '>99.99%'
  return `${value.toFixed(2)}%`
}

/** A figure of the whole tensors that a field of the tolerance bounds. */
export interface Bound {
  readonly kind: Reason['kind']
  readonly name: string
  readonly figure: 'cosine' | 'sqnr' | 'maxUlp' | 'maxAbs' | 'top1'
  readonly field: 'minCosine' | 'minSqnr' | 'maxUlp' | 'maxAbs' | 'minTop1'
  readonly side: 'least' | 'most'
}

export const BOUNDS: readonly Bound[] = [
  { kind: 'cosine', name: 'cosine similarity', figure: 'cosine', field: 'minCosine', side: 'least' },
  { kind: 'sqnr', name: 'SQNR in dB', figure: 'sqnr', field: 'minSqnr', side: 'least' },
  { kind: 'ulp', name: 'largest ULP distance', figure: 'maxUlp', field: 'maxUlp', side: 'most' },
  { kind: 'max-abs', name: 'largest absolute error', figure: 'maxAbs', field: 'maxAbs', side: 'most' },
  { kind: 'top1', name: 'top-1 agreement', figure: 'top1', field: 'minTop1', side: 'least' },
]

/** NaN, from squares that overflow, keeps no bound. */
function boundReasons(stats: ErrorStats, tolerance: Tolerance): Reason[] {
  return BOUNDS.flatMap(({ kind, name, figure, field, side }) => {
    const [value, bound] = [stats[figure], tolerance[field]]
    if (value === undefined || bound === undefined) return []
    const isKept = side === 'least' ? value >= bound : value <= bound
    const limit = `${side === 'least' ? 'below' : 'above'} the bound ${bound}`
    return reasonIf(!isKept, kind, () => `${name} ${Number(value.toPrecision(9))} is ${limit}`)
  })
}
