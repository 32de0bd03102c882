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
import { type ErrorStats, errorStats } from './error-stats.ts'
import { snakeCase, type Tolerance } from './tolerance.ts'

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
    ...reasonIf(stats.wrong > stats.allowedWrong, 'elements', () => wrongMessage(stats)),
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

function wrongMessage({ wrong, allowedWrong, count, rule }: ErrorStats): string {
  const limit = rule.kind === 'equal' ? 'differ' : `exceed ${snakeCase(rule.kind)} ${rule.limit}`
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

interface Bound {
  readonly kind: Reason['kind']
  readonly name: string
  readonly value: number | undefined
  readonly least?: number | undefined
  readonly most?: number | undefined
}

function boundReasons(stats: ErrorStats, tolerance: Tolerance): Reason[] {
  const bounds: Bound[] = [
    { kind: 'cosine', name: 'cosine similarity', value: stats.cosine, least: tolerance.minCosine },
    { kind: 'sqnr', name: 'SQNR in dB', value: stats.sqnr, least: tolerance.minSqnr },
    { kind: 'ulp', name: 'largest ULP distance', value: stats.maxUlp, most: tolerance.maxUlp },
    { kind: 'max-abs', name: 'largest absolute error', value: stats.maxAbs, most: tolerance.maxAbs },
    { kind: 'top1', name: 'top-1 agreement', value: stats.top1, least: tolerance.minTop1 },
  ]
  return bounds.flatMap(boundReason)
}

/** NaN, from squares that overflow, keeps no bound. */
function boundReason({ kind, name, value, least = -Infinity, most = Infinity }: Bound): Reason[] {
  const isKept =
    value === undefined || (least === -Infinity && most === Infinity) || (value >= least && value <= most)
  const limit = most === Infinity ? `below the bound ${least}` : `above the bound ${most}`
  return reasonIf(!isKept, kind, () => `${name} ${Number(value?.toPrecision(9))} is ${limit}`)
}
