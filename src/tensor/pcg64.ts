/**
 * PCG64 (XSL-RR 128/64), bit for bit as numpy's `PCG64(seed)`: a stream of 64-bit words.
 *
 * The 128-bit state is kept as six limbs of 22 bits in doubles: products of limbs have 44 bits and
 * sums of six of them fit a double exactly, which is several times faster than BigInt.
 */
import { seedWords } from './seed-sequence.ts'

const LIMB_BITS = 22
const LIMB = 2 ** LIMB_BITS
const PER_LIMB = 2 ** -LIMB_BITS
/** The sixth limb has the 18 bits that are left of 128. */
const TOP = 2 ** 18

const [M0, M1, M2, M3, M4, M5] = limbs(0x2360ed05_1fc65da4_4385df64_9fccf645n)

export class Pcg64 {
  /** The latest word, as two signed halves. */
  low = 0
  high = 0
  /** Six limbs, the lowest first. */
  readonly #state: Float64Array
  readonly #increment: Float64Array
  #hasSpare = false
  #spare = 0

  constructor(seed: number | bigint) {
    const words = [...new BigUint64Array(seedWords(seed, 8).buffer)] as [bigint, bigint, bigint, bigint]
    const start = (words[0] << 64n) | words[1]
    const stream = (words[2] << 64n) | words[3]
    const increment = BigInt.asUintN(128, (stream << 1n) | 1n)
    this.#increment = Float64Array.from(limbs(increment))
    // The first step of a zero state gives the increment; the start is added to that.
    this.#state = Float64Array.from(limbs(BigInt.asUintN(128, increment + start)))
    this.#step()
  }

  /** Draws the next word into `low` and `high`. */
  next64(): void {
    this.#step()
    const state = this.#state
    const s0 = state[0]! | 0
    const s1 = state[1]! | 0
    const s2 = state[2]! | 0
    const s3 = state[3]! | 0
    const s4 = state[4]! | 0
    const s5 = state[5]! | 0
    const low = (s0 | (s1 << 22)) ^ ((s2 >>> 20) | (s3 << 2) | (s4 << 24))
    const high = ((s1 >>> 10) | (s2 << 12)) ^ ((s4 >>> 8) | (s5 << 14))
    this.#rotated(low, high, s5 >>> 12)
  }

  /** The next 32 bits: the low half of a new word, then the high half of the same. Signed. */
  next32(): number {
    if (this.#hasSpare) {
      this.#hasSpare = false
      return this.#spare
    }
    this.next64()
    this.#hasSpare = true
    this.#spare = this.high
    return this.low
  }

  /** The next double in [0, 1), of 53 random bits. */
  nextDouble(): number {
    this.next64()
    return ((this.high >>> 0) * 2 ** 21 + (this.low >>> 11)) * 2 ** -53
  }

  /** The next float32 in [0, 1), of 24 random bits. */
  nextFloat(): number {
    return (this.next32() >>> 8) * 2 ** -24
  }

  /** Rotates to the right by 0 to 63 bits. A shift by 32 does nothing in JavaScript, hence 1 + (31 - n). */
  #rotated(low: number, high: number, by: number): void {
    const n = by & 31
    const first = by < 32 ? low : high
    const second = by < 32 ? high : low
    this.low = (first >>> n) | ((second << 1) << (31 - n))
    this.high = (second >>> n) | ((first << 1) << (31 - n))
  }

  /** state = state * multiplier + increment, modulo 2^128: long multiplication, column by column. */
  #step(): void {
    const state = this.#state
    const add = this.#increment
    const a = state[0]!
    const b = state[1]!
    const c = state[2]!
    const d = state[3]!
    const e = state[4]!
    const f = state[5]!

    let sum = a * M0 + add[0]!
    let carry = Math.floor(sum * PER_LIMB)
    state[0] = sum - carry * LIMB

    sum = a * M1 + b * M0 + add[1]! + carry
    carry = Math.floor(sum * PER_LIMB)
    state[1] = sum - carry * LIMB

    sum = a * M2 + b * M1 + c * M0 + add[2]! + carry
    carry = Math.floor(sum * PER_LIMB)
    state[2] = sum - carry * LIMB

    sum = a * M3 + b * M2 + c * M1 + d * M0 + add[3]! + carry
    carry = Math.floor(sum * PER_LIMB)
    state[3] = sum - carry * LIMB

    sum = a * M4 + b * M3 + c * M2 + d * M1 + e * M0 + add[4]! + carry
    carry = Math.floor(sum * PER_LIMB)
    state[4] = sum - carry * LIMB

    sum = a * M5 + b * M4 + c * M3 + d * M2 + e * M1 + f * M0 + add[5]! + carry
    state[5] = sum - Math.floor(sum / TOP) * TOP
  }
}

type Limbs = [number, number, number, number, number, number]

function limbs(value: bigint): Limbs {
  return Array.from({ length: 6 }, (_, i) =>
    Number(BigInt.asUintN(LIMB_BITS, value >> BigInt(i * LIMB_BITS))),
  ) as Limbs
}
