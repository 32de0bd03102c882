/**
 * Tolerances: how far two tensors may differ and still match.
 *
 * A tolerance is complete: every field that has a default has a value, and the optional bounds
 * judge only where they are given. The named ones are the words users write in files, options and
 * environment variables.
 */
export interface Tolerance {
  /** Integers: the largest |expected - actual| that is no difference. @default 1 */
  readonly intTol: number
  /** Accepted because the tables this project succeeds have it; it judges nothing. @default 1 */
  readonly intThld: number
  /** Floats: a bound for the mean relative error that is reported and judges nothing. @default 0.01 */
  readonly fpAvgTol: number
  /** Floats: an element is wrong if |e-a| / (|e|+|a|+epsilon) is larger; 1 accepts all. @default 0.01 */
  readonly fpMaxTol: number
  /** Keeps the relative error of values around zero small. @default 1e-6 */
  readonly epsilon: number
  /** Whether a result of zeros may stand against a reference that has others. @default false */
  readonly allowAllZero: boolean
  /** Floats: the share of elements that may be wrong, 0 to 1. @default 0 */
  readonly allowedWrong: number
  /** Whether NaN on one side only is overlooked. Everything else is still judged. @default false */
  readonly skipNanCheck: boolean
  /**
   * Floats: with `rtol` or `atol` an element is wrong if |e-a| > atol + rtol*|e|, as numpy's allclose has it,
   * and `fpMaxTol` judges nothing. The one that is not given counts as 0.
   */
  readonly rtol?: number
  readonly atol?: number
  /** The least cosine similarity of the whole tensors. */
  readonly minCosine?: number
  /** The least signal-to-noise ratio in dB, the error being the noise. */
  readonly minSqnr?: number
  /** The most floats of the tensor's dtype that may lie between two elements. */
  readonly maxUlp?: number
  /** The largest absolute error. */
  readonly maxAbs?: number
  /** The least share of rows (last axis) whose largest element is the same. */
  readonly minTop1?: number
}

export const DEFAULT_TOLERANCE: Tolerance = {
  intTol: 1,
  intThld: 1,
  fpAvgTol: 0.01,
  fpMaxTol: 0.01,
  epsilon: 1e-6,
  allowAllZero: false,
  allowedWrong: 0,
  skipNanCheck: false,
}

export type ToleranceName =
  | 'default'
  | 'exact'
  | 'close'
  | 'approximate'
  | 'very-approximate'
  | 'fp32'
  | 'fp16'
  | 'bf16'
  | 'int8'

/**
 * | name | for | floats | integers |
 * | --- | --- | --- | --- |
 * | default | no other rule | relative error up to 0.01 | ±1 |
 * | exact | copies, shape changes, integer maths | equal | equal |
 * | close | the same float32 maths in another order | rtol 1e-5, atol 1e-6 | equal |
 * | approximate | fused or approximated functions | rtol 1e-3, atol 1e-4 | ±1 |
 * | very-approximate | long chains of them | rtol 0.05, atol 0.01 | ±2 |
 * | fp32 | a target that computes in float32 | rtol 1e-4, atol 1e-5 | equal |
 * | fp16 | one that stores values in float16 | rtol 0.01, atol 1e-3, cosine 0.999 | ±1 |
 * | bf16 | one that stores values in bfloat16 | rtol 0.05, atol 0.01, cosine 0.99 | ±1 |
 * | int8 | one that quantises: single elements say little | cosine 0.98, 15 dB | ±1 |
 */
export const NAMED_TOLERANCES: Readonly<Record<ToleranceName, Tolerance>> = {
  default: DEFAULT_TOLERANCE,
  exact: { ...DEFAULT_TOLERANCE, intTol: 0, intThld: 0, fpAvgTol: 0, fpMaxTol: 0 },
  close: { ...DEFAULT_TOLERANCE, intTol: 0, rtol: 1e-5, atol: 1e-6 },
  approximate: { ...DEFAULT_TOLERANCE, rtol: 1e-3, atol: 1e-4 },
  'very-approximate': { ...DEFAULT_TOLERANCE, intTol: 2, rtol: 0.05, atol: 0.01 },
  fp32: { ...DEFAULT_TOLERANCE, intTol: 0, rtol: 1e-4, atol: 1e-5 },
  fp16: { ...DEFAULT_TOLERANCE, rtol: 0.01, atol: 1e-3, minCosine: 0.999 },
  bf16: { ...DEFAULT_TOLERANCE, rtol: 0.05, atol: 0.01, minCosine: 0.99 },
  int8: { ...DEFAULT_TOLERANCE, fpMaxTol: 1, minCosine: 0.98, minSqnr: 15 },
}

export const TOLERANCE_NAMES: readonly ToleranceName[] = Object.keys(NAMED_TOLERANCES) as ToleranceName[]

/** `fpMaxTol` as files and messages write it: `fp_max_tol`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
