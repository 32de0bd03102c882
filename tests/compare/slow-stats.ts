/**
 * The figures of a pair again, written from their definitions: every list in full, nothing shared
 * with the code under test but the decoding of tensors.
 */
import { type Tensor, toFloat64 } from '../../src/tensor/tensor.ts'

export interface SlowStats {
  readonly maxAbs: number
  readonly meanAbs: number
  readonly maxRel: number
  readonly meanRel: number
  readonly cosine: number
  readonly sqnr: number
  readonly wrong: number
  readonly nanDisagreements: number
  readonly infDisagreements: number
  readonly expectedAllZero: boolean
  readonly actualAllZero: boolean
  readonly smallest: number | undefined
  readonly worstIndexes: readonly number[]
}

/** For real dtypes whose values fit doubles; floats by fpMaxTol, integers by intTol. */
export function slowStats(
  actual: Tensor,
  expected: Tensor,
  { limit, epsilon, allowedWrong }: { limit: number; epsilon: number; allowedWrong: number },
): SlowStats {
  const isFloat = expected.dtype.includes('float')
  const pairs = [...toFloat64(expected)].map((e, index) => ({ index, e, a: toFloat64(actual)[index]! }))
  const finite = pairs
    .filter(({ e, a }) => Number.isFinite(e) && Number.isFinite(a))
    .map(({ index, e, a }) => {
      const abs = Math.abs(e - a)
      const rel = abs === 0 ? 0 : abs / (Math.abs(e) + Math.abs(a) + epsilon)
      return { index, e, a, abs, rel, bad: isFloat ? rel : abs }
    })
  const nans = pairs.filter(({ e, a }) => Number.isNaN(e) !== Number.isNaN(a))
  const infinities = pairs.filter(
    ({ e, a }) =>
      !Number.isNaN(e) && !Number.isNaN(a) && e !== a && !(Number.isFinite(e) && Number.isFinite(a)),
  )
  const ranked = [...nans, ...infinities]
    .map(({ index }) => ({ index, bad: Infinity }))
    .concat(finite.map(({ index, bad }) => ({ index, bad })))
    .toSorted((x, y) => (x.bad === y.bad ? x.index - y.index : y.bad > x.bad ? 1 : -1))
  const allowed = ranked.findLastIndex((_, i) => (i + 1) / pairs.length <= (isFloat ? allowedWrong : 0)) + 1
  const sum = (pick: (pair: (typeof finite)[number]) => number): number =>
    finite.map(pick).reduce((total, value) => total + value, 0)
  const [ee, aa, dd] = [sum(({ e }) => e * e), sum(({ a }) => a * a), sum(({ abs }) => abs * abs)]
  return {
    maxAbs: Math.max(0, ...finite.map(({ abs }) => abs)),
    meanAbs: finite.length === 0 ? 0 : sum(({ abs }) => abs) / finite.length,
    maxRel: Math.max(0, ...finite.map(({ rel }) => rel)),
    meanRel: finite.length === 0 ? 0 : sum(({ rel }) => rel) / finite.length,
    cosine:
      ee === 0 || aa === 0 ? Number(ee === aa) : sum(({ e, a }) => e * a) / Math.sqrt(ee) / Math.sqrt(aa),
    sqnr: dd === 0 ? Infinity : 10 * Math.log10(ee / dd),
    wrong: ranked.filter(({ bad }) => bad > limit).length,
    nanDisagreements: nans.length,
    infDisagreements: infinities.length,
    expectedAllZero: pairs.every(({ e }) => e === 0),
    actualAllZero: pairs.every(({ a }) => a === 0),
    smallest: nans.length + infinities.length > 0 ? undefined : (ranked[allowed]?.bad ?? 0),
    worstIndexes: ranked
      .filter(({ bad }) => bad > 0)
      .slice(0, 8)
      .map(({ index }) => index),
  }
}
