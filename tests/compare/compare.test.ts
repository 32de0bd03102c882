import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareOutputs } from '../../src/compare/compare-outputs.ts'
import { compareTensor, type Verdict } from '../../src/compare/compare.ts'
import { DEFAULT_TOLERANCE, NAMED_TOLERANCES, type Tolerance } from '../../src/compare/tolerance.ts'
import type { DType } from '../../src/tensor/dtype.ts'
import type { FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import { fromFloat64, type Tensor, tensor, toFloat64 } from '../../src/tensor/tensor.ts'
import { anyTensor } from '../tensor/any-tensor.ts'
import { anyPair, FLOATS, INTEGERS, type Pair } from './any-pair.ts'

const lenient = { ...DEFAULT_TOLERANCE, allowAllZero: true }

describe('always', () => {
  test('a tensor of any dtype matches itself, exactly', () => {
    fc.assert(
      fc.property(anyTensor(), (t) => {
        const verdict = compareTensor(t, t, NAMED_TOLERANCES.exact)
        expect(verdict).toMatchObject({
          kind: 'match',
          stats: { wrong: 0, worst: [], maxAbs: 0, smallestTolerance: 0 },
        })
      }),
      { numRuns: 500 },
    )
  })

  test('which side is which changes no verdict, but for zeros', () => {
    fc.assert(
      fc.property(anyPair(), ({ actual, expected }) => {
        const [there, back] = [
          compareTensor(actual, expected, lenient),
          compareTensor(expected, actual, lenient),
        ]
        expect(kindsOf(back)).toEqual(kindsOf(there))
      }),
    )
  })

  test('the order of elements changes no verdict', () => {
    const shuffled = anyPair().chain((pair) => {
      const places = toFloat64(pair.expected).map((_, i) => i)
      return fc.tuple(fc.constant(pair), fc.shuffledSubarray([...places], { minLength: places.length }))
    })
    fc.assert(
      fc.property(shuffled, fc.constantFrom(0, 0.1, 0.5), ([pair, places], allowedWrong) => {
        const tolerance = { ...DEFAULT_TOLERANCE, allowedWrong }
        const moved = compareTensor(permuted(pair.actual, places), permuted(pair.expected, places), tolerance)
        expect(kindsOf(moved)).toEqual(kindsOf(compareTensor(pair.actual, pair.expected, tolerance)))
      }),
    )
  })

  const rules = [
    ['fpMaxTol', {}, FLOATS],
    ['rtol', { rtol: 0, atol: 1e-6 }, FLOATS],
    ['atol', { atol: 0 }, FLOATS],
    ['intTol', {}, INTEGERS],
  ] as const
  test.each(rules)('the smallest %s passes, and a little less does not', (name, bounds, dtypes) => {
    let judged = 0
    fc.assert(
      fc.property(
        anyPair(dtypes, 'small'),
        fc.constantFrom(0, 0.05, 0.3),
        ({ actual, expected }, allowedWrong) => {
          const base: Tolerance = { ...lenient, ...bounds, allowedWrong }
          const smallest = smallestOf(compareTensor(actual, expected, base))
          if (smallest === undefined) return
          expect(compareTensor(actual, expected, { ...base, [name]: smallest }).kind).toBe('match')
          const less = smallest * (1 - Number.EPSILON)
          if (less === smallest) return
          judged++
          expect(compareTensor(actual, expected, { ...base, [name]: less }).kind).toBe('mismatch')
        },
      ),
      { numRuns: 300 },
    )
    expect(judged).toBeGreaterThan(20)
  })
})

describe('rules', () => {
  const cases: [string, Pair, Partial<Tolerance>, string[]][] = [
    ['NaN on one side', floats([NaN, 1], [1, 1]), {}, ['nan-positions', 'elements']],
    ['NaN on one side, not checked', floats([NaN, 1], [1, 1]), { skipNanCheck: true }, []],
    [
      'an error beside NaN that is not checked',
      floats([NaN, 2], [1, 1]),
      { skipNanCheck: true },
      ['elements'],
    ],
    [
      'an infinity beside NaN that is not checked',
      floats([NaN, Infinity], [1, 1]),
      { skipNanCheck: true },
      ['infinities', 'elements'],
    ],
    ['NaN on both sides', floats([NaN, 1], [NaN, 1]), {}, []],
    ['Infinity against finite', floats([Infinity, 1], [3, 1]), {}, ['infinities', 'elements']],
    [
      'finite against Infinity, with all wrong allowed',
      floats([3, 1], [Infinity, 1]),
      { allowedWrong: 1 },
      ['infinities'],
    ],
    ['Infinity against -Infinity', floats([Infinity, 1], [-Infinity, 1]), {}, ['infinities', 'elements']],
    ['Infinity against itself', floats([Infinity, 1], [Infinity, 1]), {}, []],
    ['zeros', floats([0, 0], [1e-9, 0]), {}, ['all-zero']],
    ['zeros, allowed', floats([0, 0], [1e-9, 0]), { allowAllZero: true }, []],
    ['zeros against zeros', floats([0, -0], [0, 0]), {}, []],
    ['zeros in the reference only', floats([1e-9, 0], [0, 0]), {}, []],
    ['a share that is allowed', floats([1, 2, 3, 9], [1, 2, 3, 4]), { allowedWrong: 0.25 }, []],
    ['a share that is not', floats([1, 2, 9, 9], [1, 2, 3, 4]), { allowedWrong: 0.25 }, ['elements']],
    ['float16 that would overflow', numbers('float16', [60000, 1], [40000, 1]), {}, ['elements']],
    ['bools', numbers('bool', [1, 0], [1, 1]), { allowedWrong: 1, intTol: 5 }, ['elements']],
    ['integers within', numbers('uint8', [0, 255], [1, 254]), {}, []],
    ['integers beyond', numbers('uint8', [0, 255], [255, 255]), { allowedWrong: 1 }, ['elements']],
    ['4-bit integers', numbers('int4', [-8, 7, 3], [7, 7, 3]), {}, ['elements']],
    ['2-bit integers', numbers('uint2', [3, 0, 1, 2, 3], [3, 0, 1, 2, 0]), {}, ['elements']],
    ['float8', numbers('float8e4m3fn', [1, 1.125], [1, 1]), {}, ['elements']],
    [
      'rtol and atol in place of fpMaxTol',
      floats([1e-8, 1.0005], [-1e-8, 1]),
      { rtol: 1e-3, atol: 1e-7 },
      [],
    ],
    ['beyond rtol', floats([1.0015], [1]), { rtol: 1e-3, atol: 1e-7 }, ['elements']],
    ['beyond atol at zero', floats([2e-7, 1], [0, 1]), { rtol: 1e-3, atol: 1e-7 }, ['elements']],
    ['cosine', floats([1, 1], [1, 0]), { fpMaxTol: 1, minCosine: 0.9 }, ['cosine']],
    ['SQNR', floats([1, 0.9], [1, 1]), { fpMaxTol: 1, minSqnr: 30 }, ['sqnr']],
    ['ULP', floats([1 + 2 ** -20], [1]), { maxUlp: 7 }, ['ulp']],
    ['ULP within', floats([1 + 2 ** -20], [1]), { maxUlp: 8 }, []],
    ['max abs', floats([1000.5], [1000]), { maxAbs: 0.1 }, ['max-abs']],
    ['top 1', floats([1, 1.001], [1.001, 1]), { minTop1: 1 }, ['top1']],
  ]
  test.each(cases)('%s', (_, { actual, expected }, bounds, reasons) => {
    const verdict = compareTensor(actual, expected, { ...DEFAULT_TOLERANCE, ...bounds })
    expect(kindsOf(verdict)).toEqual([reasons.length === 0 ? 'match' : 'mismatch', ...reasons])
  })

  test('an output of zeros says so as the original does', () => {
    const { actual, expected } = floats([0, 0], [1, 2])
    expect(compareTensor(actual, expected, DEFAULT_TOLERANCE)).toMatchObject({
      reasons: [
        { message: 'output is 0 always' },
        { message: '2 of 2 elements (100.00%) exceed fp_max_tol 0.01' },
      ],
    })
  })

  test('strings are equal or not, and never zero', () => {
    const [a, b] = [tensor('string', [2], ['x', 'y']), tensor('string', [2], ['p', 'q'])]
    expect(kindsOf(compareTensor(a, a, DEFAULT_TOLERANCE))).toEqual(['match'])
    expect(kindsOf(compareTensor(a, b, NAMED_TOLERANCES.int8))).toContain('elements')
    expect(kindsOf(compareTensor(a, b, DEFAULT_TOLERANCE))).toEqual(['mismatch', 'elements'])
  })

  test('complex numbers are judged by the length of their difference', () => {
    const e = tensor('complex64', [1], Float32Array.of(1000, 1e-4))
    const a = tensor('complex64', [1], Float32Array.of(1000, 2e-4))
    const turned = tensor('complex64', [1], Float32Array.of(-1000, 1e-4))
    const broken = tensor('complex64', [1], Float32Array.of(NaN, Infinity))
    expect(kindsOf(compareTensor(a, e, DEFAULT_TOLERANCE))).toEqual(['match'])
    expect(kindsOf(compareTensor(turned, e, DEFAULT_TOLERANCE))).toEqual(['mismatch', 'elements'])
    expect(compareTensor(turned, e, DEFAULT_TOLERANCE)).toMatchObject({
      stats: { cosine: expect.closeTo(-1, 9) },
    })
    expect(kindsOf(compareTensor(broken, e, DEFAULT_TOLERANCE))).toContain('nan-positions')
  })

  test('without elements there is nothing to differ', () => {
    const empty = tensor('float32', [0, 3], new Float32Array(0))
    expect(compareTensor(empty, empty, NAMED_TOLERANCES.int8)).toMatchObject({
      kind: 'match',
      stats: { count: 0, cosine: 1 },
    })
  })

  test.each<[string, DType, number[], string, string]>([
    ['dtype', 'float64', [2], 'float64[2]', 'float32[2]'],
    ['shape', 'float32', [1, 2], 'float32[1, 2]', 'float32[2]'],
  ])('another %s is incomparable', (_, dtype, shape, actual, expected) => {
    const t = fromFloat64(dtype as FixedSizeDType, shape, Float64Array.of(1, 2)) as Tensor
    const verdict = compareTensor(t, floats([1, 2], [1, 2]).expected, DEFAULT_TOLERANCE)
    expect(verdict).toEqual({ kind: 'incomparable', actual, expected })
  })
})

describe('outputs', () => {
  const { actual: off, expected: good } = floats([1, 9], [1, 2])

  test('match if all do', () => {
    const outputs = new Map([['y', good]])
    expect(compareOutputs(outputs, outputs, DEFAULT_TOLERANCE)).toMatchObject({
      kind: 'match',
      missing: [],
      unexpected: [],
    })
  })

  test('keep every verdict, with the tolerance of each', () => {
    const expected = new Map([
      ['y', good],
      ['z', good],
    ])
    const actual = new Map([
      ['z', off],
      ['y', off],
    ])
    const verdict = compareOutputs(actual, expected, (name) => ({
      ...DEFAULT_TOLERANCE,
      fpMaxTol: name === 'y' ? 1 : 0,
    }))
    expect([...verdict.outputs].map(([name, { kind }]) => [name, kind])).toEqual([
      ['y', 'match'],
      ['z', 'mismatch'],
    ])
    expect(verdict.kind).toBe('mismatch')
  })

  test('of other names are incomparable', () => {
    const verdict = compareOutputs(
      new Map([
        ['a', good],
        ['y', good],
      ]),
      new Map([
        ['y', good],
        ['b', good],
      ]),
      DEFAULT_TOLERANCE,
    )
    expect(verdict).toMatchObject({ kind: 'incomparable', missing: ['b'], unexpected: ['a'] })
    expect(verdict.outputs.get('y')?.kind).toBe('match')
  })
})

function kindsOf(verdict: Verdict): string[] {
  return [verdict.kind, ...(verdict.kind === 'mismatch' ? verdict.reasons.map(({ kind }) => kind) : [])]
}

function smallestOf(verdict: Verdict): number | undefined {
  return verdict.kind === 'incomparable' ? undefined : verdict.stats.smallestTolerance
}

function floats(actual: readonly number[], expected: readonly number[]): Pair {
  return numbers('float32', actual, expected)
}

function numbers(dtype: FixedSizeDType, actual: readonly number[], expected: readonly number[]): Pair {
  const [a, e] = [actual, expected].map(
    (values) => fromFloat64(dtype, [values.length], Float64Array.from(values)) as Tensor,
  )
  return { actual: a!, expected: e! }
}

function permuted(t: Tensor, places: readonly number[]): Tensor {
  const values = toFloat64(t)
  return fromFloat64(
    t.dtype as FixedSizeDType,
    t.shape,
    Float64Array.from(places, (place) => values[place]!),
  ) as Tensor
}
