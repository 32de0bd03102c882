/**
 * A percentile with linear interpolation between the two nearest ranks, as numpy's default has it.
 *
 * NaN for no values, and if one of them is NaN.
 */
export function percentile(values: ArrayLike<number>, percent: number): number {
  const sorted = Float64Array.from(values).toSorted()
  const rank = ((sorted.length - 1) * percent) / 100
  const below = sorted[Math.floor(rank)] ?? NaN
  const above = sorted[Math.ceil(rank)] ?? NaN
  // NaN sorts to the end.
  if (Number.isNaN(sorted.at(-1))) return NaN
  return below === above ? below : below + (above - below) * (rank - Math.floor(rank))
}
