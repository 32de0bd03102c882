/**
 * What each small float format means, written from its definition with strings and searches.
 *
 * Slow and plain on purpose: it shares no code and no method with src/tensor/float-formats.ts.
 */
import type { FloatFormat } from '../../src/tensor/float-formats.ts'

interface Definition {
  readonly exponentBits: number
  readonly mantissaBits: number
  readonly bias: number
  /** Patterns without the sign bit that are infinite, and those that are NaN. */
  readonly infinities: readonly number[]
  readonly isNaN: (pattern: number) => boolean
  readonly fnuz?: true
}

export const DEFINITIONS: Readonly<Record<Exclude<FloatFormat, 'float8e8m0'>, Definition>> = {
  float16: {
    exponentBits: 5,
    mantissaBits: 10,
    bias: 15,
    infinities: [0b11111_0000000000],
    isNaN: (pattern) => pattern > 0b11111_0000000000,
  },
  bfloat16: {
    exponentBits: 8,
    mantissaBits: 7,
    bias: 127,
    infinities: [0b11111111_0000000],
    isNaN: (pattern) => pattern > 0b11111111_0000000,
  },
  float8e4m3fn: {
    exponentBits: 4,
    mantissaBits: 3,
    bias: 7,
    infinities: [],
    isNaN: (pattern) => pattern === 0b1111_111,
  },
  float8e5m2: {
    exponentBits: 5,
    mantissaBits: 2,
    bias: 15,
    infinities: [0b11111_00],
    isNaN: (pattern) => [0b11111_01, 0b11111_10, 0b11111_11].includes(pattern),
  },
  float8e4m3fnuz: {
    exponentBits: 4,
    mantissaBits: 3,
    bias: 8,
    infinities: [],
    isNaN: () => false,
    fnuz: true,
  },
  float8e5m2fnuz: {
    exponentBits: 5,
    mantissaBits: 2,
    bias: 16,
    infinities: [],
    isNaN: () => false,
    fnuz: true,
  },
  float4e2m1: { exponentBits: 2, mantissaBits: 1, bias: 1, infinities: [], isNaN: () => false },
}

/** The value of a pattern, read off its bits. */
export function valueOf(definition: Definition, pattern: number): number {
  const { exponentBits, mantissaBits, infinities, fnuz } = definition
  const bits = pattern.toString(2).padStart(1 + exponentBits + mantissaBits, '0')
  const sign = bits[0] === '1' ? -1 : 1
  const unsigned = Number.parseInt(bits.slice(1), 2)
  if (fnuz && sign === -1 && unsigned === 0) return NaN
  if (definition.isNaN(unsigned)) return NaN
  return sign * (infinities.includes(unsigned) ? Infinity : magnitudeOf(definition, unsigned))
}

/** The magnitude of an unsigned pattern by the formula alone, special patterns included. */
function magnitudeOf({ mantissaBits, bias }: Definition, unsigned: number): number {
  const exponent = unsigned >> mantissaBits
  const mantissa = (unsigned & (2 ** mantissaBits - 1)) / 2 ** mantissaBits
  return exponent === 0 ? 2 ** (1 - bias) * mantissa : 2 ** (exponent - bias) * (1 + mantissa)
}

/**
 * The pattern without sign that is nearest to a magnitude, ties to the even one; or 'overflow'
 * when the nearest on an endless scale would be beyond the largest finite value.
 */
export function nearestPattern(definition: Definition, magnitude: number): number | 'overflow' {
  const beyond = firstBeyond(definition)
  let [below, above] = [0, beyond]
  if (magnitude >= magnitudeOf(definition, beyond)) return 'overflow'
  while (above - below > 1) {
    const middle = (below + above) >> 1
    if (magnitudeOf(definition, middle) <= magnitude) below = middle
    else above = middle
  }
  const half = (magnitudeOf(definition, below) + magnitudeOf(definition, above)) / 2
  const nearest = magnitude < half || (magnitude === half && below % 2 === 0) ? below : above
  return nearest === beyond ? 'overflow' : nearest
}

/** The first unsigned pattern that is not a finite value. */
function firstBeyond(definition: Definition): number {
  const { exponentBits, mantissaBits, infinities } = definition
  const all = 2 ** (exponentBits + mantissaBits)
  for (let pattern = 0; pattern < all; pattern++) {
    if (infinities.includes(pattern) || definition.isNaN(pattern)) return pattern
  }
  return all
}
