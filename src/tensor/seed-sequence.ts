/**
 * A seed of any size -> well mixed 32-bit words, bit for bit as numpy's `SeedSequence(seed)`.
 *
 * Similar seeds give unrelated words: the seed is hashed into a pool of four words, each word of
 * which depends on all of the seed, and the output is hashed from the pool.
 */
import { ModelTestError } from '../errors.ts'

const POOL_WORDS = 4
const INIT_A = 0x43b0d7e5
const MULTIPLIER_A = 0x931e8875
const INIT_B = 0x8b51f9dd
const MULTIPLIER_B = 0x58f38ded
const MIX_LEFT = 0xca01f9dd
const MIX_RIGHT = 0x4973f715

/** The first `count` words of the sequence that the seed starts. */
export function seedWords(seed: number | bigint, count: number): Uint32Array {
  const pool = mixedPool(wordsOfSeed(seed))
  const hash = hasher(INIT_B, MULTIPLIER_B)
  return Uint32Array.from({ length: count }, (_, i) => hash(pool[i % POOL_WORDS]!))
}

/** The seed in words of 32 bits, the lowest first; zero is one word. */
function wordsOfSeed(seed: number | bigint): number[] {
  const valid = typeof seed === 'bigint' ? seed >= 0n : Number.isSafeInteger(seed) && seed >= 0
  if (!valid) {
    throw new ModelTestError('INVALID_OPTION', `a seed of ${seed}`, {
      hint: 'A seed is a whole number from 0 up; beyond 2^53 write it as a bigint.',
    })
  }
  const words: number[] = []
  let rest = BigInt(seed)
  do {
    words.push(Number(rest & 0xffff_ffffn))
    rest >>= 32n
  } while (rest > 0n)
  return words
}

function mixedPool(entropy: readonly number[]): Uint32Array {
  const hash = hasher(INIT_A, MULTIPLIER_A)
  const pool = Uint32Array.from({ length: POOL_WORDS }, (_, i) => hash(entropy[i] ?? 0))
  for (let from = 0; from < POOL_WORDS; from++) {
    for (let to = 0; to < POOL_WORDS; to++) {
      if (from !== to) pool[to] = mix(pool[to]!, hash(pool[from]!))
    }
  }
  for (const word of entropy.slice(POOL_WORDS)) {
    for (let to = 0; to < POOL_WORDS; to++) pool[to] = mix(pool[to]!, hash(word))
  }
  return pool
}

/** A hash whose constant moves on with every word, so that equal words hash differently. */
function hasher(init: number, multiplier: number): (word: number) => number {
  let constant = init
  return (word) => {
    const flipped = word ^ constant
    constant = Math.imul(constant, multiplier)
    return fold(Math.imul(flipped, constant))
  }
}

function mix(left: number, right: number): number {
  return fold(Math.imul(left, MIX_LEFT) - Math.imul(right, MIX_RIGHT))
}

function fold(word: number): number {
  return (word ^ (word >>> 16)) >>> 0
}
