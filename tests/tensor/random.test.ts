import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { defaultRng, type IntegerDType, type Random, tweakedRandom } from '../../src/tensor/random.ts'
import { bytesOfTensor, tensorFromBytes, toFloat64 } from '../../src/tensor/tensor.ts'
import { bytesOfData } from '../../src/tensor/tensor-data.ts'
import { DTYPES } from '../../src/tensor/dtype.ts'
import { bytesOf, readVectors } from './read-vectors.ts'

interface Call {
  readonly kind: 'random' | 'random32' | 'uniform' | 'integers'
  readonly args: readonly (string | number)[]
  readonly count: number
}

interface Vectors {
  readonly streams: readonly { seed: string; calls: readonly (Call & { bytes: string })[] }[]
  readonly tweaked: readonly { dtype: 'float32'; seed: number; shape: number[]; bytes: string }[]
  readonly long: readonly (Call & { crc: number })[]
}

const vectors = readVectors<Vectors>('random')

describe('the generator is numpy’s default_rng', () => {
  test.each(vectors.streams)('seed $seed', ({ seed, calls }) => {
    const rng = defaultRng(BigInt(seed))
    for (const call of calls) {
      expect(draw(rng, call), `${call.kind}(${call.args.join(', ')})`).toEqual(bytesOf(call.bytes))
    }
  })

  test.each(vectors.long)('$count values of $kind $args', (call) => {
    expect(crc32(draw(defaultRng(5), call))).toBe(call.crc)
  })

  test('a seed may be a number or a bigint', () => {
    expect(defaultRng(1234).random(3)).toEqual(defaultRng(1234n).random(3))
  })

  test.each([-1, 1.5, NaN, 2 ** 53, -1n])('%s is no seed', (seed) => {
    expect(() => defaultRng(seed)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  test.each([
    ['uint8', -1, 4],
    ['uint8', 0, 257],
    ['int8', 3, 3],
    ['int64', 0, 2n ** 63n + 1n],
    ['int32', 0, 1.5],
    ['bool', 0, 3],
  ] as const)('%s in [%s, %s) is refused', (dtype, low, high) => {
    expect(() => defaultRng(1).integers(dtype, low, high, 1)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    )
  })

  test.each([
    [1, 0],
    [0, Infinity],
    [NaN, 1],
  ])('uniform in [%d, %d) is refused', (low, high) => {
    expect(() => defaultRng(1).uniform(low, high, 1)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    )
  })
})

describe('tweaked random', () => {
  test('the values that were agreed on, each from a fresh generator', () => {
    expect([...tweakedRandom(defaultRng(1234), 'float32', [3]).data]).toEqual(
      [38.135983, -9.584341, 33.8597].map((value) => Math.fround(value)),
    )
    expect([...tweakedRandom(defaultRng(1234), 'int8', [6]).data]).toEqual([18, 18, 16, 38, 35, 39])
    expect([...tweakedRandom(defaultRng(1234), 'int64', [6]).data]).toEqual([38n, 38n, 39n, -10n, -27n, 33n])
    expect([...tweakedRandom(defaultRng(1234), 'bool', [8]).data]).toEqual([0, 1, 0, 1, 1, 1, 0, 1])
  })

  test.each(vectors.tweaked)('$dtype $shape is what numpy draws', ({ dtype, seed, shape, bytes }) => {
    const drawn = tweakedRandom(defaultRng(seed), dtype, shape)
    expect(drawn).toEqual(tensorFromBytes(dtype, shape, bytesOf(bytes)))
  })

  test('one generator goes on from tensor to tensor', () => {
    const rng = defaultRng(1234)
    const both = tweakedRandom(defaultRng(1234), 'float32', [5]).data
    expect([...tweakedRandom(rng, 'float32', [2]).data, ...tweakedRandom(rng, 'float32', [3]).data]).toEqual([
      ...both,
    ])
  })

  test('a range of one’s own replaces the default', () => {
    const data = tweakedRandom(defaultRng(1), 'uint8', [500], { low: 250, high: 256 }).data
    expect([Math.min(...data), Math.max(...data)]).toEqual([250, 255])
  })

  const bounds = {
    bool: [0, 1],
    uint8: [0, 79],
    uint16: [0, 79],
    uint32: [0, 79],
    uint64: [0, 79],
    uint4: [0, 15],
    int4: [-8, 7],
    uint2: [0, 3],
    int2: [-2, 1],
    float4e2m1: [-6, 6],
    float8e8m0: [0, 64],
  } as Partial<Record<string, [number, number]>>
  test.each(DTYPES.filter((dtype) => dtype !== 'string'))('%s stays in its range', (dtype) => {
    const values = toFloat64(tweakedRandom(defaultRng(3), dtype, [40, 50]))
    const [low, high] = bounds[dtype] ?? [-40, 40]
    expect(Math.min(...values)).toBeGreaterThanOrEqual(low)
    expect(Math.max(...values)).toBeLessThanOrEqual(high)
    expect(new Set(values).size).toBeGreaterThan(1)
  })

  test('bfloat16 is the uniform stream rounded once', () => {
    const doubles = defaultRng(9).uniform(-40, 40, 1000)
    const values = toFloat64(tweakedRandom(defaultRng(9), 'bfloat16', [1000]))
    const worst = Math.max(...values.map((value, i) => Math.abs(value - doubles[i]!) / Math.abs(doubles[i]!)))
    expect(worst).toBeLessThanOrEqual(2 ** -8)
  })

  test('no elements draw nothing', () => {
    const rng = defaultRng(1)
    expect(bytesOfTensor(tweakedRandom(rng, 'int8', [0, 4]))).toHaveLength(0)
    expect(rng.random(1)).toEqual(defaultRng(1).random(1))
  })

  test.each([
    ['string', undefined, 'UNSUPPORTED_DTYPE'],
    ['int4', { low: -9, high: 2 }, 'INVALID_OPTION'],
    ['uint8', { low: -1, high: 2 }, 'INVALID_OPTION'],
  ] as const)('%s from %j is refused', (dtype, range, code) => {
    expect(() => tweakedRandom(defaultRng(1), dtype, [2], range)).toThrow(expect.objectContaining({ code }))
  })
})

function draw(rng: Random, { kind, args, count }: Call): Uint8Array {
  switch (kind) {
    case 'random':
      return bytesOfData(rng.random(count))
    case 'random32':
      return bytesOfData(rng.random32(count))
    case 'uniform':
      return bytesOfData(rng.uniform(Number(args[0]), Number(args[1]), count))
    case 'integers':
      return bytesOfData(rng.integers(args[0] as IntegerDType, BigInt(args[1]!), BigInt(args[2]!), count))
  }
}
