/**
 * Integers below a bound without bias, bit for bit as numpy's `Generator.integers` draws arrays.
 *
 * The method is Lemire's: multiply a random word by the number of values and take the high half,
 * rejecting the few words that would favour some values. How wide that word is, and how many of
 * them one 32-bit draw yields, depends on the dtype; numbers match numpy's only with both right.
 */
import type { Pcg64 } from './pcg64.ts'

const TWO_32 = 2 ** 32

/** Draws integers in [0, span]: the last value included, as 2^32 - 1 is easier to hold than 2^32. */
export type Draw = () => number

/** For elements of 32 and 64 bits, where `span` is below 2^32. */
export function draw32(bits: Pcg64, span: number): Draw {
  if (span === 0) return zero
  if (span === TWO_32 - 1) return () => bits.next32() >>> 0
  const values = span + 1
  const threshold = (TWO_32 - values) % values
  return () => {
    for (;;) {
      const word = bits.next32() >>> 0
      // The product has up to 64 bits: take it in two parts of 48.
      const lower = (word & 0xffff) * values
      const upper = (word >>> 16) * values + Math.floor(lower / 0x1_0000)
      const rest = (upper % 0x1_0000) * 0x1_0000 + (lower % 0x1_0000)
      if (rest >= threshold) return Math.floor(upper / 0x1_0000)
    }
  }
}

/** For elements of 8 and 16 bits: one 32-bit draw is used up from its low end. */
export function drawSmall(bits: Pcg64, width: 8 | 16, span: number): Draw {
  if (span === 0) return zero
  const words = 2 ** width
  const next = pieces(bits, width)
  if (span === words - 1) return next
  const values = span + 1
  const threshold = (words - values) % values
  return () => {
    for (;;) {
      const product = next() * values
      if (product % words >= threshold) return product >>> width
    }
  }
}

/** For bool: one 32-bit draw is good for 32 values. */
export function drawBit(bits: Pcg64, span: number): Draw {
  return span === 0 ? zero : pieces(bits, 1)
}

/** For 64-bit elements with 2^32 or more values. */
export function draw64(bits: Pcg64, span: bigint): () => bigint {
  if (span === 2n ** 64n - 1n) return () => word64(bits)
  const values = span + 1n
  const threshold = (2n ** 64n - values) % values
  return () => {
    for (;;) {
      const product = word64(bits) * values
      if (BigInt.asUintN(64, product) >= threshold) return product >> 64n
    }
  }
}

function zero(): number {
  return 0
}

function word64(bits: Pcg64): bigint {
  bits.next64()
  return (BigInt(bits.high >>> 0) << 32n) | BigInt(bits.low >>> 0)
}

/** Cuts 32-bit draws into pieces of `width` bits, the lowest first. */
function pieces(bits: Pcg64, width: number): Draw {
  const mask = 2 ** width - 1
  let [word, left] = [0, 0]
  return () => {
    if (left === 0) {
      word = bits.next32()
      left = 32 / width
    } else word >>>= width
    left--
    return word & mask
  }
}
