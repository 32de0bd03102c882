/**
 * Which rule judges the elements of a dtype, as one number per element: an element is wrong if its
 * badness exceeds the limit.
 *
 * The badness is chosen so that it equals the smallest limit the element would pass. So the order
 * of badness is the order of "worst", and a quantile of it is the smallest tolerance that passes.
 */
import type { DType } from '../tensor/dtype.ts'
import { snakeCase, type Tolerance } from './tolerance.ts'

export interface ErrorRule {
  /**
   * - `equal`: bools and strings; badness 0 or 1
   * - `intTol`, `atol`: |e-a|
   * - `fpMaxTol`: |e-a| / (|e|+|a|+epsilon)
   * - `rtol`: (|e-a| - atol) / |e|, which exceeds rtol where |e-a| exceeds atol + rtol*|e|
   */
  readonly kind: 'equal' | 'intTol' | 'fpMaxTol' | 'rtol' | 'atol'
  readonly limit: number
  /** The share of elements that may exceed the limit. */
  readonly allowedWrong: number
}

export function errorRule(dtype: DType, tolerance: Tolerance): ErrorRule {
  if (dtype === 'bool' || dtype === 'string') return { kind: 'equal', limit: 0, allowedWrong: 0 }
  if (isInteger(dtype)) return { kind: 'intTol', limit: tolerance.intTol, allowedWrong: 0 }
  const { rtol, atol, fpMaxTol, allowedWrong } = tolerance
  if (rtol !== undefined) return { kind: 'rtol', limit: rtol, allowedWrong }
  if (atol !== undefined) return { kind: 'atol', limit: atol, allowedWrong }
  return { kind: 'fpMaxTol', limit: fpMaxTol, allowedWrong }
}

/** As in `rtol 0.01 with atol 0.001`. */
export function limitText({ kind, limit }: ErrorRule, { atol = 0 }: Tolerance): string {
  if (kind === 'equal') return 'equal'
  return `${snakeCase(kind)} ${limit}${kind === 'rtol' && atol > 0 ? ` with atol ${atol}` : ''}`
}

/** The largest number of wrong elements that is not more than the allowed share, rounding left out. */
export function allowedCount({ allowedWrong }: ErrorRule, size: number): number {
  let count = Math.min(Math.floor(allowedWrong * size) + 1, size)
  while (count > 0 && count / size > allowedWrong) count--
  return count
}

function isInteger(dtype: DType): boolean {
  return /^u?int/.test(dtype)
}
