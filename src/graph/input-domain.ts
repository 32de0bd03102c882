/**
 * What an input may hold, as data: the kinds of domains, and how several become one.
 *
 * A domain is a promise to the operators that read the input, with the reason for it in words
 * that can be shown: `indices of Gather "embed" into 30522 rows`.
 */
export type InputDomain = (
  | {
      /** Values from `low` up to but not including `high`. */
      readonly kind: 'range'
      readonly low: number
      readonly high: number
      /** Safe, but not known to be right: whatever says more goes before it. */
      readonly isGuess?: true
    }
  | {
      /** These elements in row order; a single one is for all. */
      readonly kind: 'constant'
      readonly values: readonly number[]
    }
  | {
      /** `start`, `start + 1`, … along an axis, the same in all others. */
      readonly kind: 'counting'
      readonly start: number
      readonly axis: number
    }
  | {
      /** Any of these, drawn at random. */
      readonly kind: 'choices'
      readonly values: readonly (number | string)[]
    }
) & { readonly because: string }

/** The stricter of two domains; ranges meet in the middle. The first counts where they contradict. */
export function narrow(a: InputDomain | undefined, b: InputDomain | undefined): InputDomain | undefined {
  if (a === undefined || b === undefined) return a ?? b
  if (isGuess(a)) return b
  if (isGuess(b)) return a
  if (a.kind === 'range' && b.kind === 'range') {
    const [low, high] = [Math.max(a.low, b.low), Math.min(a.high, b.high)]
    if (low >= high) return a
    if (low === a.low && high === a.high) return a
    return low === b.low && high === b.high ? b : { kind: 'range', low, high, because: joined(a, b) }
  }
  if (STRICTNESS[b.kind] <= STRICTNESS[a.kind]) return a
  return a.kind === 'range' && !fits(b, a) ? a : b
}

export function isGuess(domain: InputDomain): boolean {
  return domain.kind === 'range' && domain.isGuess === true
}

const STRICTNESS: Readonly<Record<InputDomain['kind'], number>> = {
  range: 0,
  choices: 1,
  counting: 2,
  constant: 3,
}

function fits(domain: InputDomain, { low, high }: { low: number; high: number }): boolean {
  if (domain.kind === 'counting') return domain.start >= low && domain.start < high
  if (domain.kind === 'range') return domain.low >= low && domain.high <= high
  return domain.values.every((value) => Number(value) >= low && Number(value) < high)
}

function joined(a: InputDomain, b: InputDomain): string {
  return a.because === b.because ? a.because : `${a.because}; ${b.because}`
}

/** The domain of x where `x + by` has this one; undefined where it has no such form. */
export function shifted(domain: InputDomain | undefined, by: number): InputDomain | undefined {
  if (domain === undefined || by === 0) return domain
  switch (domain.kind) {
    case 'range':
      return { ...domain, low: domain.low - by, high: domain.high - by }
    case 'counting':
      return { ...domain, start: domain.start - by }
    case 'constant':
      return { ...domain, values: domain.values.map((value) => value - by) }
    case 'choices':
      return undefined
  }
}
