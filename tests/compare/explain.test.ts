import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareOutputs } from '../../src/compare/compare-outputs.ts'
import { compareTensor } from '../../src/compare/compare.ts'
import { explainOutputs, explainVerdict, summarizeVerdict } from '../../src/compare/explain.ts'
import { parseTolerance } from '../../src/compare/parse-tolerance.ts'
import { DEFAULT_TOLERANCE } from '../../src/compare/tolerance.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'

const expected = float32([2, 4], [1, 2, 3, 4, 5, 6, 7, 8])
const actual = float32([2, 4], [1, 2, 3.5, 4, 5, 6, 7.0001, -8])

describe('a mismatch', () => {
  test('shows reasons, threshold, figures and the worst elements', () => {
    const verdict = compareTensor(actual, expected, DEFAULT_TOLERANCE)
    const lines = explainVerdict(verdict, {
      name: 'y',
      origin: 'thresholds.json: op Softmax on webgpu',
      histogram: true,
    })
    expect(lines.join('\n')).toMatchInlineSnapshot(`
      "y: mismatch of float32[2, 4]
        - 2 of 8 elements (25.00%) exceed fp_max_tol 0.01
      threshold fp_max_tol 0.01 from thresholds.json: op Softmax on webgpu
      wrong: 2 of 8 elements (25.00%); smallest fp_max_tol that would pass: 1
        metric                value    bound
        max abs error            16
        mean abs error      2.06251
        max rel error             1  <= 0.01
        mean rel error     0.134616   (0.01)
        cosine             0.376914
        SQNR dB           -0.990337
        max ULP          2181038080
        top-1 agreement         0.5
      worst elements
        index   expected      actual          abs            rel
        [1, 3]         8          -8           16              1
        [0, 2]         3         3.5          0.5      0.0769231
        [1, 2]         7  7.00010014  0.000100136  0.00000715251
      absolute errors
        equal         5  #########################
        1e-4 to 1e-3  1  #####
        1e-3 to 1e-2  0
        1e-2 to 1e-1  0
        1e-1 to 1e0   1  #####
        1e0 to 1e1    0
        1e1 to 1e2    1  #####"
    `)
  })

  test('in one line', () => {
    expect(
      summarizeVerdict(compareTensor(actual, expected, DEFAULT_TOLERANCE), { name: 'y' }),
    ).toMatchInlineSnapshot(
      `"y: mismatch, 2 of 8 elements (25.00%) exceed fp_max_tol 0.01; max abs 16, max rel 1, cosine 0.376914"`,
    )
  })

  test('with other rules shows their bounds', () => {
    const tolerance = parseTolerance('rtol=0.001,atol=1e-5,min_cosine=0.99,max_abs=1,allowed_wrong=0.1')
    expect(explainVerdict(compareTensor(actual, expected, tolerance)).join('\n')).toMatchInlineSnapshot(`
      "mismatch of float32[2, 4]
        - 2 of 8 elements (25.00%) exceed rtol 0.001 with atol 0.00001
        - cosine similarity 0.3769136 is below the bound 0.99
        - largest absolute error 16 is above the bound 1
      threshold rtol 0.001 with atol 0.00001, allowed_wrong 0.1 of 8, min_cosine 0.99, max_abs 1
      wrong: 2 of 8 elements (25.00%); together would pass: rtol 2, min_cosine 0.376913, max_abs 16
        metric                value    bound
        max abs error            16     <= 1
        mean abs error      2.06251
        max rel error             1
        mean rel error     0.134616
        cosine             0.376914  >= 0.99
        SQNR dB           -0.990337
        max ULP          2181038080
        top-1 agreement         0.5
      worst elements
        index   expected      actual          abs            rel
        [1, 3]         8          -8           16              1
        [0, 2]         3         3.5          0.5      0.0769231
        [1, 2]         7  7.00010014  0.000100136  0.00000715251"
    `)
  })

  test('of NaN, integers and strings', () => {
    const nan = compareTensor(float32([2], [NaN, Infinity]), float32([2], [1, 2]), DEFAULT_TOLERANCE)
    const ints = compareTensor(
      tensor('int64', [2], BigInt64Array.of(5n, 9007199254740993n)),
      tensor('int64', [2], BigInt64Array.of(2n, 9007199254740999n)),
      DEFAULT_TOLERANCE,
    )
    const texts = compareTensor(
      tensor('string', [1], ['a\nb']),
      tensor('string', [1], ['x'.repeat(60)]),
      DEFAULT_TOLERANCE,
    )
    const pages = [nan, ints, texts].map((verdict) => explainVerdict(verdict).join('\n'))
    expect(pages.join('\n\n')).toMatchInlineSnapshot(`
      "mismatch of float32[2]
        - NaN stands on one side only in 1 of 2 elements (50.00%)
        - an infinity stands against another value in 1 of 2 elements (50.00%)
        - 2 of 2 elements (100.00%) exceed fp_max_tol 0.01
      threshold fp_max_tol 0.01
      wrong: 2 of 2 elements (100.00%); smallest fp_max_tol that would pass: none
      figures of 0 of 2 elements (0.00%), the finite ones
        metric               value    bound
        max abs error            0
        mean abs error           0
        max rel error            0  <= 0.01
        mean rel error           0   (0.01)
        cosine                   1
        SQNR dB           Infinity
        max ULP                  0
        top-1 agreement          1
        NaN on one side          1        0
        infinity differs         1        0
      worst elements
        index  expected    actual       abs  rel
        [0]           1       NaN       NaN  NaN
        [1]           2  Infinity  Infinity  NaN

      mismatch of int64[2]
        - 2 of 2 elements (100.00%) exceed int_tol 1
      threshold int_tol 1
      wrong: 2 of 2 elements (100.00%); smallest int_tol that would pass: 6
        metric              value  bound
        max abs error           6   <= 1
        mean abs error        4.5
        max rel error    0.428571
        mean rel error   0.214286
        cosine                  1
        SQNR dB            302.56
        top-1 agreement         1
      worst elements
        index          expected            actual  abs          rel
        [1]    9007199254740999  9007199254740993    6  3.33067e-16
        [0]                   2                 5    3     0.428571

      mismatch of string[1]
        - 1 of 1 element (100.00%) differ
      threshold equal
      wrong: 1 of 1 element (100.00%)
      worst elements
        index                                    expected  actual
        [0]    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"  "a\\nb""
    `)
  })
})

test('the smallest tolerance as printed passes', () => {
  for (const off of [1.00123456789, 1.1, 1.987654321, 1e-9, 12345.678901]) {
    const [a, e] = [float32([1], [off]), float32([1], [1])]
    const text = explainVerdict(compareTensor(a, e, DEFAULT_TOLERANCE)).join('\n')
    const smallest = /would pass: (\S+)/.exec(text)![1]!
    expect(compareTensor(a, e, parseTolerance(smallest)).kind, smallest).toBe('match')
    expect(compareTensor(a, e, parseTolerance(Number(smallest) * (1 - 2e-5))).kind, smallest).toBe('mismatch')
  }
})

describe('the limits that decided are named, and no others', () => {
  const off = float32([4], [1, 2, 3, 4.4])
  const on = float32([4], [1, 2, 3, 4])
  const zeros = float32([4], [0, 0, 0, 0])
  const infinite = float32([4], [1, 2, 3, Infinity])
  const share = 'wrong: 0 of 4 elements (0.00%)'
  test.each<[string, Tensor, string, string]>([
    [
      'fp_max_tol=1,min_cosine=0.9999',
      off,
      'threshold min_cosine 0.9999',
      `${share}; largest min_cosine that would pass: 0.99888`,
    ],
    [
      'fp_max_tol=1,min_sqnr=30',
      off,
      'threshold min_sqnr 30',
      `${share}; largest min_sqnr that would pass: 22.73`,
    ],
    [
      'fp_max_tol=1,max_ulp=10',
      off,
      'threshold max_ulp 10',
      `${share}; smallest max_ulp that would pass: 838861`,
    ],
    [
      'fp_max_tol=1,max_abs=0.1',
      off,
      'threshold max_abs 0.1',
      `${share}; smallest max_abs that would pass: 0.400001`,
    ],
    [
      'fp_max_tol=1,min_top1=1',
      float32([4], [5, 2, 3, 4]),
      'threshold min_top1 1',
      `${share}; largest min_top1 that would pass: 0`,
    ],
    [
      'rtol=0.01,atol=0.001,max_abs=0.1,min_cosine=0.5',
      off,
      'threshold rtol 0.01 with atol 0.001, max_abs 0.1',
      'wrong: 1 of 4 elements (25.00%); together would pass: rtol 0.0997501, max_abs 0.400001',
    ],
    [
      'atol=0.3',
      off,
      'threshold atol 0.3',
      'wrong: 1 of 4 elements (25.00%); smallest atol that would pass: 0.400001',
    ],
    ['fp_max_tol=1', zeros, 'threshold allow_all_zero false', share],
    [
      'default',
      zeros,
      'threshold fp_max_tol 0.01',
      'wrong: 4 of 4 elements (100.00%); smallest fp_max_tol that would pass: none',
    ],
    [
      'allowed_wrong=0.5',
      infinite,
      'threshold equal infinities, whatever the tolerance',
      'wrong: 1 of 4 elements (25.00%)',
    ],
    [
      'rtol=0.5,atol=0.001,min_cosine=0.5',
      off,
      'threshold rtol 0.5 with atol 0.001, min_cosine 0.5',
      `${share}; smallest rtol that would pass: 0.0997501`,
    ],
  ])('%s', (written, result, threshold, wrong) => {
    const verdict = compareTensor(result, on, parseTolerance(written))
    const lines = explainVerdict(verdict).filter((line) => /^(threshold|wrong)/.test(line))
    expect(lines).toEqual([threshold, wrong])
    const isOfTolerance = !threshold.includes('whatever')
    expect(explainVerdict(verdict, { origin: 't.json' })).toContain(
      isOfTolerance ? `${threshold} from t.json` : threshold,
    )
  })

  test('and as printed they pass', () => {
    const value = fc.float({ min: -100, max: 100, noNaN: true })
    const tight = { rtol: 1e-4, atol: 1e-5, min_cosine: 0.9999, min_sqnr: 60, max_abs: 1e-4, min_top1: 1 }
    fc.assert(
      fc.property(fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 6 }), (pairs) => {
        const [a, e] = [0, 1].map((side) =>
          float32(
            [pairs.length],
            pairs.map((pair) => pair[side]!),
          ),
        )
        const verdict = compareTensor(a!, e!, parseTolerance(tight))
        const text = explainVerdict(verdict).join('\n')
        const [, one, oneValue] = /(?:smallest|largest) (\S+) that would pass: (\S+)/.exec(text) ?? []
        const [, all = `${one} ${oneValue}`] = /together would pass: (.*)/.exec(text) ?? []
        fc.pre(verdict.kind === 'mismatch' && !/none|undefined/.test(all))
        const fields = all.split(', ').map((limit) => limit.split(' ') as [string, string])
        const loose = Object.fromEntries(fields.map(([name, limit]) => [name, Number(limit)]))
        expect(compareTensor(a!, e!, parseTolerance({ ...tight, ...loose })).kind, all).toBe('match')
      }),
    )
  })
})

test('no line ends in a space, whatever the verdict', () => {
  for (const t of [actual, expected, float32([1], [1])]) {
    const lines = explainVerdict(compareTensor(t, expected, DEFAULT_TOLERANCE), { histogram: true })
    for (const line of lines) expect(line).toBe(line.trimEnd())
  }
})

test('outputs: those that match take a line, names that differ are told', () => {
  const verdict = compareOutputs(
    new Map([
      ['y', expected],
      ['extra', expected],
      ['z', float32([1], [1])],
    ]),
    new Map([
      ['y', expected],
      ['gone', expected],
      ['z', expected],
    ]),
    DEFAULT_TOLERANCE,
  )
  expect(explainOutputs(verdict)).toEqual([
    'gone: the result has no such output',
    'extra: the reference has no such output',
    'y: match, max abs 0, max rel 0, cosine 1',
    'z: incomparable, actual is float32[1], expected is float32[2, 4]',
  ])
  const same = new Map([['y', expected]])
  expect(explainOutputs(compareOutputs(same, same, DEFAULT_TOLERANCE))).toEqual([
    'y: match, max abs 0, max rel 0, cosine 1',
  ])
})

function float32(shape: readonly number[], values: readonly number[]): Tensor {
  return tensor('float32', shape, Float32Array.from(values))
}
