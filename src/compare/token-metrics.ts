/**
 * How far two next-token distributions lie apart: logits of a token, reference and test -> metrics.
 *
 * Both rows are cut to the places of the reference's largest logits before the softmax. All is
 * computed in doubles, so probabilities that float32 would flush to 0 still have a ratio. What is
 * undefined stays so: NaN logits give NaN, and NaN fails every threshold.
 */
export interface TokenMetrics {
  /** -sum softmax(test) * log_softmax(reference). */
  readonly ce: number
  /** Mean of |softmax(reference) - softmax(test)|; `mean_diff` in thresholds. */
  readonly diffMean: number
  /** Mean of softmax(reference) / softmax(test) - 1. */
  readonly probMean: number
  /** Standard deviation of softmax(reference) / softmax(test), unbiased. */
  readonly probStd: number
}

export const TOP_TOKENS = 20

/** @param top how many of the reference's largest logits count; Infinity for all */
export function tokenMetrics(
  reference: ArrayLike<number>,
  test: ArrayLike<number>,
  top: number = TOP_TOKENS,
): TokenMetrics {
  const places = top < reference.length ? topIndices(reference, top) : undefined
  const logR = logSoftmax(places ? places.map((place) => reference[place]!) : reference)
  const logT = logSoftmax(places ? places.map((place) => test[place]!) : test)
  const ratios = logR.map((value, i) => Math.exp(value - logT[i]!))
  return {
    ce: -sum(logR.map((value, i) => Math.exp(logT[i]!) * value)),
    diffMean: mean(logR.map((value, i) => Math.abs(Math.exp(value) - Math.exp(logT[i]!)))),
    probMean: mean(ratios.map((ratio) => ratio - 1)),
    probStd: standardDeviation(ratios),
  }
}

/** The places of the largest values, the largest first; of equals the first. NaN is above all, as in torch. */
export function topIndices(values: ArrayLike<number>, top: number): number[] {
  const places: number[] = []
  for (let i = 0; i < values.length; i++) {
    if (places.length === top && !isAbove(values[i]!, values[places[top - 1]!]!)) continue
    if (places.length === top) places.pop()
    let at = places.length
    while (at > 0 && isAbove(values[i]!, values[places[at - 1]!]!)) at--
    places.splice(at, 0, i)
  }
  return places
}

function isAbove(a: number, b: number): boolean {
  return a > b || (a !== a && b === b)
}

/** The share of tokens whose metric is at the threshold or above, or NaN; 0 without tokens. */
export function failureRate(metrics: ArrayLike<number>, threshold: number): number {
  let failed = 0
  for (let i = 0; i < metrics.length; i++) if (!(metrics[i]! < threshold)) failed++
  return metrics.length === 0 ? 0 : failed / metrics.length
}

/** How many tokens come before the first end-of-sequence token, which are those that count. */
export function countBeforeEos(tokens: ArrayLike<number>, eos: readonly number[]): number {
  for (let i = 0; i < tokens.length; i++) if (eos.includes(tokens[i]!)) return i
  return tokens.length
}

function logSoftmax(logits: ArrayLike<number>): Float64Array {
  const row = Float64Array.from(logits)
  const max = row.reduce((a, b) => Math.max(a, b), -Infinity)
  const total = sum(row.map((logit) => Math.exp(logit - max)))
  return row.map((logit) => logit - max - Math.log(total))
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0)
}

function mean(values: Float64Array): number {
  return sum(values) / values.length
}

function standardDeviation(values: Float64Array): number {
  const center = mean(values)
  return Math.sqrt(sum(values.map((value) => (value - center) ** 2)) / (values.length - 1))
}
