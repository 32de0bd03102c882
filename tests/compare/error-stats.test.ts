import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { errorStats } from '../../src/compare/error-stats.ts'
import { DEFAULT_TOLERANCE } from '../../src/compare/tolerance.ts'
import { fromFloat64, type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { anyPair, FLOATS } from './any-pair.ts'
import { slowStats } from './slow-stats.ts'

describe('one pass', () => {
  test('has the figures that the definitions give', () => {
    const share = fc.constantFrom(0, 0.01, 0.1, 0.5, 1)
    fc.assert(
      fc.property(anyPair(), share, ({ actual, expected }, allowedWrong) => {
        const stats = errorStats(actual, expected, { ...DEFAULT_TOLERANCE, allowedWrong })
        const slow = slowStats(actual, expected, { limit: stats.rule.limit, epsilon: 1e-6, allowedWrong })
        for (const name of ['meanAbs', 'meanRel', 'cosine', 'sqnr'] as const)
          expectClose(stats[name], slow[name])
        for (const name of ['maxAbs', 'maxRel', 'wrong', 'nanDisagreements', 'infDisagreements'] as const) {
          expect(stats[name], name).toBe(slow[name])
        }
        expect([stats.expectedAllZero, stats.actualAllZero]).toEqual([
          slow.expectedAllZero,
          slow.actualAllZero,
        ])
        expect(stats.worst.map(({ index }) => index)).toEqual(slow.worstIndexes)
        if (stats.rule.kind !== 'equal') expect(stats.smallestTolerance).toBe(slow.smallest)
      }),
      { numRuns: 400 },
    )
  })

  test('counts every element once in the histogram, in its decade', () => {
    fc.assert(
      fc.property(anyPair(), ({ actual, expected }) => {
        const { histogram, count } = errorStats(actual, expected, DEFAULT_TOLERANCE)
        const binned = histogram.bins.reduce((sum, bin) => sum + bin.count, 0)
        expect(histogram.exact + binned + histogram.undefinedErrors).toBe(count)
      }),
    )
    const errors = [0, 0.001, 0.00999, 0.01, 0.5, 1, 9.999, 10, 1e-30, 5e-324, 1e30]
    const stats = errorStats(float64(errors), float64(errors.map(() => 0)), DEFAULT_TOLERANCE)
    expect(stats.histogram.exact).toBe(1)
    expect(stats.histogram.bins.filter(({ count }) => count > 0)).toEqual([
      { decade: -20, count: 2 },
      { decade: -3, count: 2 },
      { decade: -2, count: 1 },
      { decade: -1, count: 1 },
      { decade: 0, count: 2 },
      { decade: 1, count: 1 },
      { decade: 20, count: 1 },
    ])
  })

  test('goes across blocks', () => {
    const values = Float64Array.from({ length: 5000 }, (_, i) => Math.sin(i))
    const off = values.map((value, i) => (i % 1000 === 999 ? value + 0.1 * (i + 1) : value))
    const stats = errorStats(
      fromFloat64('float32', [5, 1000], off) as Tensor,
      fromFloat64('float32', [5, 1000], values) as Tensor,
      DEFAULT_TOLERANCE,
    )
    expect(stats.worst.map(({ position }) => position)).toEqual(
      expect.arrayContaining([
        [4, 999],
        [0, 999],
      ]),
    )
    expect(stats.wrong).toBe(5)
    expect(stats.top1).toBe(0)
  })
})

test('wrong elements count also in blocks that hold none of the worst', () => {
  const values = Float64Array.from({ length: 3000 }, (_, i) => (i < 10 ? 3 : 1.5))
  const [actual, expected] = [values, values.map(() => 1)].map(
    (list) => fromFloat64('float32', [3000], list) as Tensor,
  )
  expect(errorStats(actual!, expected!, DEFAULT_TOLERANCE)).toMatchObject({
    wrong: 3000,
    smallestTolerance: 2 / 4.000001,
  })
})

describe('ULP distance', () => {
  test.each(FLOATS)('of %s counts the floats in between', (dtype) => {
    const line = fromFloat64(dtype, [3], Float64Array.of(1, 2, -1)) as Tensor
    const bits = {
      float32: 23,
      float64: 52,
      float16: 10,
      bfloat16: 7,
      float8e4m3fn: 3,
      float8e5m2: 2,
      float4e2m1: 1,
    }[dtype]
    const other = fromFloat64(dtype, [3], Float64Array.of(2, 2, -1)) as Tensor
    expect(errorStats(other, line, DEFAULT_TOLERANCE).maxUlp).toBe(2 ** bits)
  })

  test('passes through zero, whose signs are one', () => {
    const [tiny, zero] = [2 ** -149, 0]
    expect(errorStats(float32([tiny]), float32([-tiny]), DEFAULT_TOLERANCE).maxUlp).toBe(2)
    expect(errorStats(float32([-0]), float32([zero]), DEFAULT_TOLERANCE).maxUlp).toBe(0)
    expect(errorStats(float64([-5e-324]), float64([5e-324]), DEFAULT_TOLERANCE).maxUlp).toBe(2)
  })

  test('of powers of two, which have no sign, counts the powers', () => {
    const [one, four] = [1, 4].map(
      (value) => fromFloat64('float8e8m0', [1], Float64Array.of(value)) as Tensor,
    )
    expect(errorStats(four!, one!, DEFAULT_TOLERANCE).maxUlp).toBe(2)
  })

  test('has no meaning for integers and complex numbers', () => {
    const int = tensor('int32', [1], Int32Array.of(1))
    expect(errorStats(int, int, DEFAULT_TOLERANCE).maxUlp).toBeUndefined()
    const complex = tensor('complex64', [1], Float32Array.of(1, 2))
    expect(errorStats(complex, complex, DEFAULT_TOLERANCE).maxUlp).toBeUndefined()
  })
})

describe('top-k agreement', () => {
  test.each([
    ['the same order', [[1, 2, 3, 4, 5, 6]], [[1, 2, 3, 4, 5, 6]], 1, 1],
    [
      'two rows, one changed',
      [
        [9, 1],
        [1, 9],
      ],
      [
        [9, 1],
        [9, 1],
      ],
      0.5,
      undefined,
    ],
    ['a tie in the result', [[5, 5, 1]], [[4.9, 5, 1]], 1, undefined],
    ['one of five replaced', [[1, 2, 3, 4, 5, 6]], [[9, 2, 3, 4, 5, 6]], 0, 0.8],
    ['NaN in the result', [[NaN, 1, 2]], [[9, 1, 2]], 0, undefined],
    ['rows of one', [[1], [2]], [[2], [1]], undefined, undefined],
    ['rows of -Infinity', [[-Infinity, -Infinity]], [[-Infinity, -Infinity]], 1, undefined],
  ])('%s', (_, actual, expected, top1, top5) => {
    const shape = [actual.length, actual[0]!.length]
    const [a, e] = [actual, expected].map((rows) => tensor('float32', shape, Float32Array.from(rows.flat())))
    expect(errorStats(a!, e!, DEFAULT_TOLERANCE)).toMatchObject({ top1, top5 })
  })

  test('agrees with sorting, on random rows', () => {
    const row = fc.array(fc.tuple(fc.integer({ min: -20, max: 20 }), fc.integer({ min: -20, max: 20 })), {
      minLength: 6,
      maxLength: 30,
    })
    fc.assert(
      fc.property(row, (pairs) => {
        const [e, a] = [pairs.map(([x]) => x), pairs.map(([, y]) => y)]
        const { top1, top5 } = errorStats(float32(a), float32(e), DEFAULT_TOLERANCE)
        const order = e.map((_, i) => i).toSorted((i, j) => e[j]! - e[i]! || i - j)
        const fifth = a.toSorted((x, y) => y - x)[4]!
        expect(top1).toBe(a[order[0]!] === Math.max(...a) ? 1 : 0)
        expect(top5).toBe(order.slice(0, 5).filter((i) => a[i]! >= fifth).length / 5)
      }),
    )
  })
})

describe('values at the edge of doubles', () => {
  const max = Number.MAX_VALUE
  test.each([
    ['opposite', [max], [-max], 1, 1],
    ['near', [max], [max * (1 - 1e-9)], 0, 5e-10],
    ['equal', [max], [max], 0, 0],
  ])('%s', (_, actual, expected, wrong, rel) => {
    const stats = errorStats(float64(actual), float64(expected), DEFAULT_TOLERANCE)
    expect(stats.wrong).toBe(wrong)
    expect(stats.maxRel).toBeCloseTo(rel, 12)
    expect(stats.infDisagreements).toBe(0)
    expect(stats.worst).toHaveLength(rel === 0 ? 0 : 1)
  })
})

test('worst elements show 64-bit integers, complex numbers and strings as they are', () => {
  const big = tensor('int64', [2], BigInt64Array.of(9007199254740993n, 7n))
  const bigger = tensor('int64', [2], BigInt64Array.of(9007199254740999n, 9n))
  expect(errorStats(bigger, big, DEFAULT_TOLERANCE).worst).toMatchObject([
    { position: [0], expected: '9007199254740993', actual: '9007199254740999', abs: 6 },
    { position: [1], expected: 7, actual: 9, abs: 2 },
  ])
  const complex = tensor('complex64', [1], Float32Array.of(1, -2))
  const other = tensor('complex64', [1], Float32Array.of(4, 2))
  expect(errorStats(other, complex, DEFAULT_TOLERANCE).worst).toMatchObject([
    { expected: '1-2i', actual: '4+2i', abs: 5 },
  ])
  const [text, words] = [tensor('string', [1], ['a']), tensor('string', [1], ['b'])]
  expect(errorStats(words, text, DEFAULT_TOLERANCE).worst).toMatchObject([{ expected: 'a', actual: 'b' }])
})

function float32(values: readonly number[]): Tensor {
  return tensor('float32', [values.length], Float32Array.from(values))
}

function float64(values: readonly number[]): Tensor {
  return tensor('float64', [values.length], Float64Array.from(values))
}

function expectClose(ours: number, slow: number): void {
  if (Number.isFinite(slow))
    expect(Math.abs(ours - slow)).toBeLessThanOrEqual(1e-9 * Math.max(1, Math.abs(slow)))
  else expect(ours).toBe(slow)
}
