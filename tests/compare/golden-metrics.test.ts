/** Metrics of tokens and layers against numbers computed with torch. */
import { describe, expect, test } from 'vitest'
import { l2Norm, layerMetrics, meanOf } from '../../src/compare/layer-metrics.ts'
import { percentile } from '../../src/compare/percentile.ts'
import {
  countBeforeEos,
  failureRate,
  type TokenMetrics,
  tokenMetrics,
  topIndices,
} from '../../src/compare/token-metrics.ts'
import { type Tensor, toFloat64 } from '../../src/tensor/tensor.ts'
import { hasGolden, readGoldenJson, readGoldenTensors } from './read-golden.ts'

type GoldenName = 'cross_entropy' | 'prob_mean' | 'prob_std' | 'diff_mean'
type RowNumbers = Record<GoldenName, readonly (number | object)[]>

interface Golden {
  readonly logits: Record<
    string,
    {
      readonly file: string
      readonly direct_float64: Record<GoldenName, number>
      readonly per_row: RowNumbers
      readonly top20_per_row: RowNumbers
      readonly top20_indices: readonly (readonly number[])[]
    }
  >
  readonly level1: {
    readonly file: string
    readonly eos_indexes: readonly number[]
    readonly metrics: Record<
      GoldenName,
      {
        readonly values: readonly (readonly [number, number, number])[]
        readonly percentile_99: number
        readonly threshold: number
        readonly failed_if_greater: readonly (readonly [number, number])[]
        readonly before_eos: readonly (readonly [number, number])[]
      }
    >
    readonly default_metric_no_topk: readonly (readonly [number, number, number])[]
  }
  readonly layers: {
    readonly cases: Record<
      string,
      { readonly thresholds: { readonly abs_diff_linalg_norm: number; readonly cos_sim_mean: number } }
    >
  }
}

const OURS: Record<GoldenName, keyof TokenMetrics> = {
  cross_entropy: 'ce',
  prob_mean: 'probMean',
  prob_std: 'probStd',
  diff_mean: 'diffMean',
}

const golden = readGoldenJson('golden-metrics') as Golden | undefined

describe.skipIf(!hasGolden('golden-metrics'))('golden metrics (skipped without ../shared)', () => {
  const logits = Object.entries(golden?.logits ?? {})

  test.each(logits)(
    '%s: the top 20 of each row',
    (name, { file, top20_per_row: perRow, top20_indices: places }) => {
      const { reference, test: target } = readRows(file)
      for (const [row, values] of reference.entries()) {
        expect(topIndices(values, 20)).toEqual(places[row])
        const ours = tokenMetrics(values, target[row]!)
        for (const key of goldenNames) expectNear(ours[OURS[key]], perRow[key][row]!, ...tolerance32(name))
      }
    },
  )

  // float32 flushes these probabilities to 0, so that torch's ratio is 0 / 0; in double they have one.
  const flushed = new Set(['b2_v320_underflow'])
  test.each(logits)('%s: all of each row', (name, { file, per_row: perRow }) => {
    const { reference, test: target } = readRows(file)
    for (const [row, values] of reference.entries()) {
      const ours = tokenMetrics(values, target[row]!, Infinity)
      for (const key of goldenNames) {
        if (flushed.has(name) && key.startsWith('prob')) expect(ours[OURS[key]]).toSatisfy(Number.isFinite)
        else expectNear(ours[OURS[key]], perRow[key][row]!, ...tolerance32(name))
      }
    }
  })

  test.each(logits)('%s: rows averaged equal torch in float64', (_, { file, direct_float64: direct }) => {
    const { reference, test: target } = readRows(file)
    const rows = reference.map((values, row) => tokenMetrics(values, target[row]!, Infinity))
    for (const key of ['cross_entropy', 'prob_mean', 'diff_mean'] as const) {
      expectNear(meanOfRows(rows.map((row) => row[OURS[key]])), direct[key], 1e-9)
    }
  })

  test('level 1: values, percentile, failures and positions before the end', () => {
    const { file, metrics, eos_indexes: ends, default_metric_no_topk: allTokens } = golden!.level1
    const { reference, test: target } = readRows(file)
    const all = reference.map((values, i) => tokenMetrics(values, target[i]!))
    for (const key of goldenNames) {
      const {
        values,
        percentile_99: p99,
        threshold,
        failed_if_greater: failed,
        before_eos: before,
      } = metrics[key]
      const ours = all.map((token) => token[OURS[key]])
      for (const [i, [, , value]] of values.entries()) expectNear(ours[i]!, value, 1e-4)
      expect(
        percentile(
          values.map(([, , value]) => value),
          99,
        ),
      ).toBeCloseTo(p99, 12)
      expect(failureRate(ours, threshold)).toBe(failed.length / values.length)
      expect(before).toEqual(ends.flatMap((end, sentence) => range(end).map((token) => [sentence, token])))
    }
    for (const [i, [, , value]] of allTokens.entries()) {
      expectNear(tokenMetrics(reference[i]!, target[i]!, Infinity).ce, value, 1e-4)
    }
  })

  const layers = Object.entries(golden?.layers.cases ?? {})
  const tensors = golden
    ? readGoldenTensors('golden-metrics', 'layers.safetensors')
    : new Map<string, Tensor>()
  test.each(layers)('layer %s', (name, { thresholds }) => {
    const ours = layerMetrics(tensors.get(`${name}.a`)!, tensors.get(`${name}.b`)!)
    const absDiff = toFloat64(tensors.get(`${name}.abs_diff`)!)
    const cosSim = toFloat64(tensors.get(`${name}.cos_sim`)!)
    expect(ours.cosSim).toHaveLength(cosSim.length)
    for (const [i, value] of absDiff.entries()) expectNear(ours.absDiff[i]!, value, 1e-6)
    for (const [i, value] of cosSim.entries()) expectNear(ours.cosSim[i]!, value, 1e-4, 1e-6)
    expectNear(l2Norm(ours.absDiff), thresholds.abs_diff_linalg_norm, 1e-6)
    expectNear(meanOf(ours.cosSim), thresholds.cos_sim_mean, 1e-4, 1e-6)
  })
})

describe('percentile', () => {
  test.each([
    [[1, 2, 3, 4], 50, 2.5],
    [[4, 1, 3, 2], 99, 3.97],
    [[7], 99, 7],
    [[1, 2], 0, 1],
    [[1, 2], 100, 2],
    [[1, Infinity], 100, Infinity],
    [[], 50, NaN],
    [[1, NaN], 1, NaN],
  ])('of %j at %d is %d', (values, percent, expected) => {
    expectNear(percentile(values, percent), expected, 1e-12)
  })
})

describe('tokens', () => {
  test('a token that is NaN or at the threshold fails', () => {
    expect(failureRate([1, 2, NaN, 3], 2)).toBe(0.75)
    expect(failureRate([], 2)).toBe(0)
  })

  test('tokens count up to the first end of the sequence', () => {
    expect(countBeforeEos([5, 6, 2, 7, 2], [2])).toBe(2)
    expect(countBeforeEos([5, 6], [2])).toBe(2)
  })

  test('of equal logits the first ranks first, and NaN above all', () => {
    expect(topIndices([1, 3, 3, 2], 3)).toEqual([1, 2, 3])
    expect(topIndices([1, NaN, 3], 2)).toEqual([1, 2])
    expect(topIndices([1, 2], 5)).toEqual([1, 0])
  })
})

const goldenNames = Object.keys(OURS) as GoldenName[]

/** How far torch in float32 is from itself in float64; its softmax of bfloat16 logits is bfloat16. */
function tolerance32(name: string): [rtol: number, atol: number] {
  if (name.includes('bf16')) return [0.02, 1e-3]
  return [name.includes('128256') || name.includes('underflow') ? 1e-3 : 1e-4, 1e-6]
}

function readRows(file: string): { reference: Float64Array[]; test: Float64Array[] } {
  const tensors = readGoldenTensors('golden-metrics', file)
  return { reference: rowsOf(tensors.get('reference')!), test: rowsOf(tensors.get('test')!) }
}

function rowsOf(t: Tensor): Float64Array[] {
  const values = toFloat64(t)
  const width = t.shape.at(-1)!
  return range(values.length / width).map((row) => values.subarray(row * width, (row + 1) * width))
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i)
}

function meanOfRows(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Entries that torch could not compute are objects and say nothing. */
function expectNear(ours: number, theirs: number | object, rtol: number, atol = 1e-7): void {
  if (typeof theirs !== 'number') return
  if (Number.isFinite(theirs))
    expect(Math.abs(ours - theirs)).toBeLessThanOrEqual(atol + rtol * Math.abs(theirs))
  else expect(ours).toBe(theirs)
}
