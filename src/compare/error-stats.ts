/**
 * Error figures of a pair of tensors: (actual, expected, tolerance) -> ErrorStats, in one pass.
 *
 * The pair has one dtype and one shape; the caller has checked. All figures are computed in
 * doubles, so nothing overflows that the dtype itself holds. Errors, similarity and ULPs are taken
 * over elements that are finite on both sides; where NaN or infinities disagree, the element has
 * its own count and is wrong at every tolerance. Elements that are both NaN, or the same infinity,
 * are equal. An empty pair is equal in every figure.
 */
import type { Tensor } from '../tensor/tensor.ts'
import { elementCount } from '../tensor/tensor.ts'
import {
  countErrors,
  type DecadeCounts,
  type ErrorHistogram,
  histogramFromCounts,
  newDecadeCounts,
} from './error-histogram.ts'
import { allowedCount, type ErrorRule, errorRule } from './error-rule.ts'
import { LargestValues } from './largest-values.ts'
import { BLOCK_SIZE, newBlock, type PairBlock, type PairReader, pairReader } from './pair-blocks.ts'
import type { Tolerance } from './tolerance.ts'
import { type Agreement, TopAgreement } from './top-k-agreement.ts'
import { type WorstElement, worstElements } from './worst-elements.ts'

export interface ErrorStats {
  readonly count: number
  /** Elements that are finite on both sides, which the errors, the cosine and the SQNR are taken over. */
  readonly finite: number
  readonly maxAbs: number
  readonly meanAbs: number
  /** Relative error: |e-a| / (|e|+|a|+epsilon), between 0 and 1. */
  readonly maxRel: number
  readonly meanRel: number
  /** 1 if both are all zero, 0 if one is; NaN if the squares of float64 values overflow. */
  readonly cosine: number
  /** 10 log10(sum e^2 / sum (e-a)^2) in dB: Infinity if equal, -Infinity for errors against zeros. */
  readonly sqnr: number
  /** In floats of the tensor's own dtype; undefined for dtypes that are no real floats. */
  readonly maxUlp: number | undefined
  readonly top1: number | undefined
  readonly top5: number | undefined
  /** What judged the elements, and at which limit. */
  readonly rule: ErrorRule
  /** Elements that exceed the limit, those with NaN or infinity on one side included. */
  readonly wrong: number
  /** How many may, by the rule's share. */
  readonly allowedWrong: number
  /** Elements that are NaN on one side only; not part of `wrong` if the NaN check is skipped. */
  readonly nanDisagreements: number
  /** Elements where an infinity stands against anything but itself and NaN. */
  readonly infDisagreements: number
  readonly expectedAllZero: boolean
  readonly actualAllZero: boolean
  /** The elements with the largest badness, at most eight, the worst first. */
  readonly worst: readonly WorstElement[]
  readonly histogram: ErrorHistogram
  /** The smallest limit at which the rule would pass; undefined if none does. */
  readonly smallestTolerance: number | undefined
}

const WORST = 8

export function errorStats(actual: Tensor, expected: Tensor, tolerance: Tolerance): ErrorStats {
  const count = elementCount(expected.shape)
  const rule = errorRule(expected.dtype, tolerance)
  const allowed = allowedCount(rule, count)
  const largest = new LargestValues(Math.min(count, Math.max(WORST, allowed + 1)))
  const reader = pairReader(actual, expected)
  const totals = newTotals()
  const agreement = addBlocks({ totals, largest, rule, tolerance }, reader, expected, count)

  return {
    count,
    ...meansOf(totals, count),
    cosine: cosineOf(totals),
    sqnr: sqnrOf(totals),
    maxUlp: reader.hasUlps ? totals.maxUlp : undefined,
    ...agreement,
    rule,
    wrong: totals.wrong,
    allowedWrong: allowed,
    nanDisagreements: totals.nanDisagreements,
    infDisagreements: totals.infDisagreements,
    expectedAllZero: totals.expectedZeros - totals.takenOut === count,
    actualAllZero: totals.actualZeros - totals.takenOut === count,
    worst: worstElements(actual, expected, largest.sorted().slice(0, WORST), tolerance),
    histogram: histogramOf(totals),
    smallestTolerance: smallestTolerance(totals, largest, rule, allowed, tolerance),
  }
}

interface Pass {
  readonly totals: Totals
  readonly largest: LargestValues
  readonly rule: ErrorRule
  readonly tolerance: Tolerance
}

function addBlocks(pass: Pass, reader: PairReader, expected: Tensor, count: number): Agreement {
  const block = newBlock(count)
  const scratch = new Float64Array(block.distance.length)
  const ranks = newAgreement(expected)
  for (let from = 0; from < count; from += BLOCK_SIZE) {
    const size = Math.min(BLOCK_SIZE, count - from)
    reader.fill(block, from, size)
    ranks?.add(block, size)
    if (!addMoments(pass.totals, block, size)) {
      takeOutUnusual(pass, block, from, size)
      addMoments(pass.totals, block, size, 'infinite sums too')
    }
    addErrors(pass, block, scratch, from, size)
    countErrors(pass.totals.decades, block.distance, size)
  }
  return ranks?.result() ?? { top1: undefined, top5: undefined }
}

function newAgreement({ dtype, shape }: Tensor): TopAgreement | undefined {
  const rowLength = shape.at(-1) ?? 1
  const hasOrder = dtype !== 'bool' && dtype !== 'string' && !dtype.startsWith('complex')
  return hasOrder && rowLength > 1 ? new TopAgreement(rowLength) : undefined
}

/** Judges the elements that sums cannot take, and leaves zeros in their places. */
function takeOutUnusual(pass: Pass, block: PairBlock, from: number, size: number): void {
  const { expected, actual, distance, product, ulps } = block
  for (let i = 0; i < size; i++) {
    if (Math.abs(expected[i]!) + Math.abs(actual[i]!) < Infinity) continue
    judgeUnusual(pass, block, i, from + i)
    expected[i] = actual[i] = distance[i] = product[i] = ulps[i] = 0
  }
}

/** NaN, infinities, and float64 values so large that their sum overflows. */
function judgeUnusual(pass: Pass, block: PairBlock, i: number, place: number): void {
  const { totals, largest, tolerance } = pass
  const [e, a] = [Math.abs(block.expected[i]!), Math.abs(block.actual[i]!)]
  totals.takenOut++
  if (e === 0) totals.expectedZeros++
  if (a === 0) totals.actualZeros++
  if (e < Infinity && a < Infinity) return addHuge(pass, block, i, place)
  if (block.distance[i] === 0 || (e !== e && a !== a)) return
  const isNan = e !== e || a !== a
  totals[isNan ? 'nanDisagreements' : 'infDisagreements']++
  if (isNan && tolerance.skipNanCheck) return
  totals.wrong++
  if (largest.floor < Infinity) largest.add(Infinity, place)
}

/**
 * Finite values around the largest double: halves of them add up without overflow. Where the
 * distance overflows, the values have two signs, and their magnitudes add up to it.
 */
function addHuge(
  { totals, largest, rule, tolerance }: Pass,
  block: PairBlock,
  i: number,
  place: number,
): void {
  const [e, a] = [Math.abs(block.expected[i]!) / 2, Math.abs(block.actual[i]!) / 2]
  const d = block.distance[i] === Infinity ? e + a : block.distance[i]! / 2
  const rel = d / (e + a)
  const needed = rule.kind === 'rtol' ? excess(d - (tolerance.atol ?? 0) / 2, e) : 2 * d
  const badness = rule.kind === 'fpMaxTol' ? rel : needed
  totals.huge++
  totals.sumAbs += 2 * d
  totals.sumRel += rel
  totals.expectedSquares += Infinity
  totals.actualSquares += Infinity
  totals.errorSquares += d === 0 ? 0 : Infinity
  totals.maxAbs = Math.max(totals.maxAbs, 2 * d)
  totals.maxRel = Math.max(totals.maxRel, rel)
  totals.maxUlp = Math.max(totals.maxUlp, block.ulps[i]!)
  if (badness > rule.limit) totals.wrong++
  if (badness > largest.floor) largest.add(badness, place)
  if (d > 0) totals.hugeErrors++
}

/**
 * Adds the block's sums, or nothing if they are not finite, and says whether it did.
 *
 * This loop and the next are apart, and their sums are local variables, for speed: joined, or with
 * sums in fields, they take twice as long.
 */
function addMoments(
  totals: Totals,
  { expected, actual, product }: PairBlock,
  size: number,
  also?: 'infinite sums too',
): boolean {
  let [expectedSquares, actualSquares, products] = [0, 0, 0]
  let [expectedZeros, actualZeros] = [0, 0]
  for (let i = 0; i < size; i++) {
    const e = expected[i]!
    const a = actual[i]!
    expectedSquares += e * e
    actualSquares += a * a
    products += product[i]!
    if (e === 0) expectedZeros++
    if (a === 0) actualZeros++
  }
  if (!(expectedSquares + actualSquares < Infinity) && also === undefined) return false
  totals.expectedSquares += expectedSquares
  totals.actualSquares += actualSquares
  totals.products += products
  totals.expectedZeros += expectedZeros
  totals.actualZeros += actualZeros
  return true
}

function addErrors(pass: Pass, block: PairBlock, rels: Float64Array, from: number, size: number): void {
  const { totals, rule, tolerance } = pass
  const { expected, actual, distance, ulps } = block
  const { epsilon } = tolerance
  let [sumAbs, sumRel, errorSquares] = [0, 0, 0]
  let [maxAbs, maxRel, maxUlp] = [0, 0, 0]
  for (let i = 0; i < size; i++) {
    const d = distance[i]!
    const rel = d === 0 ? 0 : d / (Math.abs(expected[i]!) + Math.abs(actual[i]!) + epsilon)
    rels[i] = rel
    sumAbs += d
    sumRel += rel
    errorSquares += d * d
    if (d > maxAbs) maxAbs = d
    if (rel > maxRel) maxRel = rel
    if (ulps[i]! > maxUlp) maxUlp = ulps[i]!
  }
  totals.sumAbs += sumAbs
  totals.sumRel += sumRel
  totals.errorSquares += errorSquares
  totals.maxAbs = Math.max(totals.maxAbs, maxAbs)
  totals.maxRel = Math.max(totals.maxRel, maxRel)
  totals.maxUlp = Math.max(totals.maxUlp, maxUlp)

  if (rule.kind === 'fpMaxTol') return judge(pass, rels, maxRel, from, size)
  if (rule.kind !== 'rtol') return judge(pass, distance, maxAbs, from, size)
  judge(pass, excesses(block, tolerance, rels, size), Infinity, from, size)
}

function excesses(
  { distance, expected }: PairBlock,
  { atol = 0 }: Tolerance,
  out: Float64Array,
  size: number,
): Float64Array {
  for (let i = 0; i < size; i++) out[i] = excess(distance[i]! - atol, Math.abs(expected[i]!))
  return out
}

/** How far an error beyond `atol` reaches in units of the expected value: the rtol it needs. */
function excess(beyond: number, expected: number): number {
  return beyond <= 0 ? 0 : beyond / expected
}

/** Counts what exceeds the limit and keeps the largest; a block without either is not looked at. */
function judge(
  { totals, largest, rule }: Pass,
  badness: Float64Array,
  max: number,
  from: number,
  size: number,
): void {
  const { limit } = rule
  if (max <= limit && max <= largest.floor) return
  let wrong = 0
  let floor = largest.floor
  for (let i = 0; i < size; i++) {
    const bad = badness[i]!
    if (bad > limit) wrong++
    if (bad > floor) {
      largest.add(bad, from + i)
      floor = largest.floor
    }
  }
  totals.wrong += wrong
}

interface Totals {
  sumAbs: number
  maxAbs: number
  sumRel: number
  maxRel: number
  expectedSquares: number
  actualSquares: number
  errorSquares: number
  products: number
  maxUlp: number
  wrong: number
  nanDisagreements: number
  infDisagreements: number
  /** These two count the zeros that stand for what was taken out, too. */
  expectedZeros: number
  actualZeros: number
  /** Elements that `takeOutUnusual` took out, and those of them that are finite, and those with an error. */
  takenOut: number
  huge: number
  hugeErrors: number
  readonly decades: DecadeCounts
}

function newTotals(): Totals {
  return {
    sumAbs: 0,
    maxAbs: 0,
    sumRel: 0,
    maxRel: 0,
    expectedSquares: 0,
    actualSquares: 0,
    errorSquares: 0,
    products: 0,
    maxUlp: 0,
    wrong: 0,
    nanDisagreements: 0,
    infDisagreements: 0,
    expectedZeros: 0,
    actualZeros: 0,
    takenOut: 0,
    huge: 0,
    hugeErrors: 0,
    decades: newDecadeCounts(),
  }
}

function meansOf(
  { takenOut, huge, sumAbs, sumRel, maxAbs, maxRel }: Totals,
  count: number,
): Pick<ErrorStats, 'finite' | 'maxAbs' | 'meanAbs' | 'maxRel' | 'meanRel'> {
  const finite = count - takenOut + huge
  const divisor = Math.max(finite, 1)
  return { finite, maxAbs, meanAbs: sumAbs / divisor, maxRel, meanRel: sumRel / divisor }
}

function cosineOf({ products, expectedSquares, actualSquares }: Totals): number {
  if (expectedSquares === 0 || actualSquares === 0) return expectedSquares === actualSquares ? 1 : 0
  const cosine = products / (Math.sqrt(expectedSquares) * Math.sqrt(actualSquares))
  return Math.min(Math.max(cosine, -1), 1)
}

function sqnrOf({ expectedSquares, errorSquares }: Totals): number {
  if (errorSquares === 0) return Infinity
  return 10 * Math.log10(expectedSquares / errorSquares)
}

function smallestTolerance(
  { nanDisagreements, infDisagreements }: Totals,
  largest: LargestValues,
  rule: ErrorRule,
  allowed: number,
  { skipNanCheck }: Tolerance,
): number | undefined {
  if (infDisagreements > 0 || (nanDisagreements > 0 && !skipNanCheck)) return undefined
  const smallest = largest.atRank(allowed)
  if (smallest === Infinity || (rule.kind === 'equal' && smallest > 0)) return undefined
  return smallest
}

/** What was taken out stands in the counts as exact. */
function histogramOf({ decades, hugeErrors, nanDisagreements, infDisagreements }: Totals): ErrorHistogram {
  return histogramFromCounts(decades, {
    huge: hugeErrors,
    undefinedErrors: nanDisagreements + infDisagreements,
  })
}
