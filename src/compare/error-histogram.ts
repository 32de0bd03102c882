/**
 * How many elements are off by how much, one bin per power of ten of the absolute error.
 *
 * Bins are found from the leading bits of the double, since Math.log10 costs more than all the
 * other figures of an element together. Every element is in `exact`, in a bin, or in `undefinedErrors`.
 */
export interface ErrorHistogram {
  /** Elements without any error. */
  readonly exact: number
  /** From the smallest decade to the largest that occurs, empty ones between them included. */
  readonly bins: readonly ErrorBin[]
  /** Elements whose error is no finite number: NaN or an infinity on one side. */
  readonly undefinedErrors: number
}

export interface ErrorBin {
  /** Errors e with 10^decade <= e < 10^(decade + 1); the outermost decades hold all beyond them. */
  readonly decade: number
  readonly count: number
}

const LOWEST = -20
const HIGHEST = 20
const DECADES = HIGHEST - LOWEST + 1

/** Counts: exact elements first, then one entry per decade. */
export type DecadeCounts = Uint32Array

export function newDecadeCounts(): DecadeCounts {
  return new Uint32Array(DECADES + 1)
}

/** Bits of the high word left out: what remains is the exponent and three bits of the mantissa. */
const LEFT_OUT = 17

/** The position in the counts for every value of these bits, at the smallest double that has them. */
const SLOT_OF_BITS = Uint8Array.from({ length: 2 ** (31 - LEFT_OUT) }, (_, bits) => {
  const exponent = Math.floor(bits / 8)
  const smallest = (1 + (bits % 8) / 8) * 2 ** (exponent - 1023)
  return exponent === 0 ? 0 : clamp(Math.floor(Math.log10(smallest)) - LOWEST + 1)
})

/**
 * Where the next position starts: doubles with the same bits can lie in two decades. Zero and
 * subnormals share an exponent, and the first is exact.
 */
const NEXT_START = Float64Array.from({ length: DECADES + 1 }, (_, slot) => {
  if (slot === 0) return Number.MIN_VALUE
  return slot === DECADES ? Infinity : Number(`1e${slot + LOWEST}`)
})

/** Counts finite errors, the first `size` of the array. */
export function countErrors(counts: DecadeCounts, errors: Float64Array, size: number): void {
  const words = new Uint32Array(errors.buffer)
  for (let i = 0; i < size; i++) {
    const slot = SLOT_OF_BITS[words[2 * i + 1]! >>> LEFT_OUT]!
    counts[errors[i]! >= NEXT_START[slot]! ? slot + 1 : slot]!++
  }
}

export interface UncountedErrors {
  /** Errors that belong into the last decade. */
  readonly huge: number
  readonly undefinedErrors: number
}

/** The histogram, where errors that could not be counted by `countErrors` stand as exact in the counts. */
export function histogramFromCounts(
  counts: DecadeCounts,
  { huge, undefinedErrors }: UncountedErrors,
): ErrorHistogram {
  const decades = Array.from(counts).slice(1)
  decades[DECADES - 1]! += huge
  const first = decades.findIndex((count) => count > 0)
  const last = decades.findLastIndex((count) => count > 0)
  const bins = decades.map((count, slot) => ({ decade: slot + LOWEST, count }))
  return {
    exact: counts[0]! - huge - undefinedErrors,
    bins: first === -1 ? [] : bins.slice(first, last + 1),
    undefinedErrors,
  }
}

function clamp(slot: number): number {
  return Math.min(Math.max(slot, 1), DECADES)
}
