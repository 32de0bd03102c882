/**
 * Places in a pair of tensors -> what stands there, ready to be shown and to be written as JSON.
 */
import { elementCount, type Tensor } from '../tensor/tensor.ts'
import type { PlacedValue } from './largest-values.ts'
import { BLOCK_SIZE, newBlock, type PairBlock, pairReader } from './pair-blocks.ts'
import type { Tolerance } from './tolerance.ts'

export interface WorstElement {
  /** Position in the flat data. */
  readonly index: number
  /** Position along every axis. */
  readonly position: readonly number[]
  /** A number, or text where none is exact: strings, complex numbers, 64-bit integers beyond 2^53. */
  readonly expected: number | string
  readonly actual: number | string
  readonly abs: number
  readonly rel: number
}

export function worstElements(
  actual: Tensor,
  expected: Tensor,
  places: readonly PlacedValue[],
  { epsilon }: Tolerance,
): WorstElement[] {
  if (places.length === 0) return []
  const count = elementCount(expected.shape)
  const { fill } = pairReader(actual, expected)
  const block = newBlock(count)
  return places.map(({ place }) => {
    const from = place - (place % BLOCK_SIZE)
    fill(block, from, Math.min(BLOCK_SIZE, count - from))
    return {
      index: place,
      position: positionOf(place, expected.shape),
      expected: exactText(expected, place) ?? block.expected[place - from]!,
      actual: exactText(actual, place) ?? block.actual[place - from]!,
      ...errorsAt(block, place - from, epsilon),
    }
  })
}

function errorsAt(
  { expected, actual, distance }: PairBlock,
  i: number,
  epsilon: number,
): { abs: number; rel: number } {
  const abs = distance[i]!
  // Halves, since the sum of two large float64 values overflows.
  const scale = Math.abs(expected[i]!) / 2 + Math.abs(actual[i]!) / 2 + epsilon / 2
  return { abs, rel: abs === 0 ? 0 : Math.min(abs / 2 / scale, 1) }
}

function positionOf(index: number, shape: readonly number[]): number[] {
  const position: number[] = []
  let rest = index
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    position.unshift(rest % shape[axis]!)
    rest = Math.floor(rest / shape[axis]!)
  }
  return position
}

/** Undefined where the number in the block is the element itself. */
function exactText(t: Tensor, index: number): string | undefined {
  switch (t.dtype) {
    case 'string':
      return t.data[index]!
    case 'complex64':
    case 'complex128':
      return complexText(t.data[2 * index]!, t.data[2 * index + 1]!)
    case 'int64':
    case 'uint64':
      return Number.isSafeInteger(Number(t.data[index])) ? undefined : String(t.data[index])
    default:
      return undefined
  }
}

function complexText(re: number, im: number): string {
  const sign = im < 0 || Object.is(im, -0) ? '-' : '+'
  return `${re}${sign}${Math.abs(im)}i`
}
