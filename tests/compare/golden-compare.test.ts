/**
 * The verdicts of the comparison this project succeeds, pair by pair.
 *
 * Where the original is wrong, ours is stated here with the reason; everywhere else they agree.
 */
import { describe, expect, test } from 'vitest'
import { compareTensor, type Verdict } from '../../src/compare/compare.ts'
import { parseTolerance } from '../../src/compare/parse-tolerance.ts'
import { NAMED_TOLERANCES } from '../../src/compare/tolerance.ts'
import { hasGolden, readGoldenJson, readGoldenTensors } from './read-golden.ts'

interface Golden {
  readonly pairs: Record<string, GoldenPair>
}

interface GoldenPair {
  readonly torq_config: Record<string, unknown>
  readonly torq: {
    readonly outcome: 'pass' | 'fail' | 'error'
    readonly max_rel: number | null
    readonly num_diffs: number | null
  }
  readonly numpy: readonly {
    readonly outcome: string
    readonly rtol: number
    readonly atol: number
    readonly equal_nan: boolean
    readonly mismatched: number | null
  }[]
}

const CORRECTED: Record<string, readonly [ours: Verdict['kind'], why: string]> = {
  fp32_unrelated_skip_check: ['mismatch', 'skip_nan_check skipped the whole judgement'],
  fp32_inf_opposite: ['mismatch', 'Inf / Inf is NaN, which is not > tolerance'],
  fp32_inf_vs_finite: ['mismatch', 'Inf / Inf is NaN, which is not > tolerance'],
  fp32_finite_vs_inf: ['mismatch', 'Inf / Inf is NaN, which is not > tolerance'],
  fp32_max_vs_inf: ['mismatch', 'Inf / Inf is NaN, which is not > tolerance'],
  fp32_overflow_diff: ['mismatch', 'the difference overflowed float32'],
  fp16_max_vs_inf: ['mismatch', 'Inf / Inf is NaN, which is not > tolerance'],
  fp16_scale_overflow: ['mismatch', '|e| + |a| overflowed float16, so that the relative error was 0'],
  fp16_vs_fp32: ['incomparable', 'dtypes were not compared'],
  int32_vs_int64: ['incomparable', 'dtypes were not compared'],
  shape_6_vs_1x6: ['incomparable', 'only sizes were compared'],
  shape_2x3_vs_3x2: ['incomparable', 'only sizes were compared, then it crashed'],
  shape_1x6_vs_6x1: ['incomparable', 'it was broadcast to 6x6'],
  size_differs: ['incomparable', 'it failed without saying why'],
  empty: ['match', 'it crashed on a tensor without elements'],
}

/** The original counts by fp_avg_tol where it prints, and by fp_max_tol where it judges. */
const OTHER_COUNT = new Set(['fp32_avg_loose_max_tight'])

const golden = readGoldenJson('golden-compare') as Golden | undefined
const pairs = Object.entries(golden?.pairs ?? {})

describe.skipIf(!hasGolden('golden-compare'))('golden pairs (skipped without ../shared)', () => {
  const tensors = golden ? readGoldenTensors('golden-compare', 'pairs.safetensors') : new Map()
  const compareNamed = (name: string, tolerance: unknown): Verdict =>
    compareTensor(
      tensors.get(`${name}.observed`)!,
      tensors.get(`${name}.expected`)!,
      parseTolerance(tolerance),
    )

  test.each(pairs)('%s', (name, { torq, torq_config: config }) => {
    const verdict = compareNamed(name, config)
    expect(verdict.kind).toBe(CORRECTED[name]?.[0] ?? (torq.outcome === 'pass' ? 'match' : 'mismatch'))
    if (verdict.kind === 'incomparable' || CORRECTED[name]) return
    if (torq.num_diffs !== null && !OTHER_COUNT.has(name)) expect(verdict.stats.wrong).toBe(torq.num_diffs)
    // Theirs is computed in the tensor's own dtype.
    if (Number.isFinite(torq.max_rel ?? NaN))
      expect(verdict.stats.maxRel).toBeCloseTo(torq.max_rel!, name.startsWith('fp16') ? 2 : 6)
  })

  test('every correction names a pair', () => {
    expect(pairs.map(([name]) => name)).toEqual(expect.arrayContaining(Object.keys(CORRECTED)))
  })

  test('64-bit integers are compared exactly', () => {
    expect(compareNamed('int64_big', { int_tol: 1 })).toMatchObject({ kind: 'match', stats: { maxAbs: 1 } })
    expect(compareNamed('int64_big', 'exact')).toMatchObject({ kind: 'mismatch', stats: { wrong: 1 } })
  })

  // numpy compares integers by rtol too, takes dtypes and shapes that broadcast, and computes in float16.
  const floats = pairs.filter(([name]) => /^(fp32|scalar)/.test(name))
  test.each(floats)('%s agrees with numpy at rtol and atol', (name, { numpy }) => {
    for (const { rtol, atol, outcome, mismatched, equal_nan: equalNan } of numpy) {
      const bounds = { ...NAMED_TOLERANCES.exact, rtol, atol, allowAllZero: true }
      const verdict = compareTensor(
        tensors.get(`${name}.observed`)!,
        tensors.get(`${name}.expected`)!,
        bounds,
      )
      if (!equalNan || verdict.kind === 'incomparable') continue
      expect.soft(verdict.kind, `rtol ${rtol} atol ${atol}`).toBe(outcome === 'pass' ? 'match' : 'mismatch')
      if (mismatched !== null && !/nan|inf/.test(name)) expect.soft(verdict.stats.wrong).toBe(mismatched)
    }
  })
})
