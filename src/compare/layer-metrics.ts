/**
 * Metrics of a layer's two results: tensors of one shape -> absolute differences and cosines.
 *
 * The cosine is taken over the last axis. So that numbers can be compared with those recorded by
 * torch's CosineSimilarity, it follows two of its rules: a norm counts as at least 1e-8, and a zero
 * counts as 1e-6, which makes two rows of zeros alike.
 */
import { ModelTestError } from '../errors.ts'
import { type Tensor, toFloat64 } from '../tensor/tensor.ts'

export interface LayerMetrics {
  readonly shape: readonly number[]
  /** One per element. */
  readonly absDiff: Float64Array
  /** One per row of the last axis. */
  readonly cosSim: Float64Array
}

export function layerMetrics(a: Tensor, b: Tensor): LayerMetrics {
  if (a.shape.join() !== b.shape.join()) throw differentShapes(a, b)
  const [left, right] = [toFloat64(a), toFloat64(b)]
  return {
    shape: a.shape,
    absDiff: left.map((value, i) => (value === right[i] ? 0 : Math.abs(value - right[i]!))),
    cosSim: rowCosines(left, right, a.shape.at(-1) ?? 1),
  }
}

/** L2 norm; NaN counts as 0. */
export function l2Norm(values: Float64Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + orZero(value) ** 2, 0))
}

/** Mean; NaN counts as 0. */
export function meanOf(values: Float64Array): number {
  return values.reduce((sum, value) => sum + orZero(value), 0) / values.length
}

function orZero(value: number): number {
  return Number.isNaN(value) ? 0 : value
}

function rowCosines(left: Float64Array, right: Float64Array, rowLength: number): Float64Array {
  const rows = rowLength === 0 ? 0 : left.length / rowLength
  return Float64Array.from({ length: rows }, (_, row) => {
    const [from, to] = [row * rowLength, (row + 1) * rowLength]
    return cosine(left.subarray(from, to), right.subarray(from, to))
  })
}

const LEAST_NORM = 1e-8
const ZERO = 1e-6

function cosine(left: Float64Array, right: Float64Array): number {
  let [dot, leftSquares, rightSquares] = [0, 0, 0]
  for (let i = 0; i < left.length; i++) {
    const l = left[i] === 0 ? ZERO : left[i]!
    const r = right[i] === 0 ? ZERO : right[i]!
    dot += l * r
    leftSquares += l * l
    rightSquares += r * r
  }
  return dot / (norm(leftSquares) * norm(rightSquares))
}

function norm(squares: number): number {
  return Math.max(Math.sqrt(squares), LEAST_NORM)
}

function differentShapes(a: Tensor, b: Tensor): ModelTestError {
  return new ModelTestError(
    'MALFORMED_TENSOR',
    `a layer's results have the shapes [${a.shape.join(', ')}] and [${b.shape.join(', ')}]`,
    { hint: 'Run both models on the same inputs, and check that the layer is the same in both.' },
  )
}
