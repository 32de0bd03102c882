/**
 * Sizes of axes as far as they follow from open dimensions of the inputs.
 *
 * An axis is a number, an open dimension with what has happened to it on the way (windows of
 * convolutions, products of reshapes), or a sum of such. Demands that operators make of an axis are
 * taken back to the dimension: an exact size, a least size, a divisor, another dimension.
 */
export type Axis = number | OpenAxis | SumAxis | undefined

export interface OpenAxis {
  readonly kind: 'open'
  /** The dimension of an input. */
  readonly id: string
  readonly steps: readonly Step[]
}

export interface SumAxis {
  readonly kind: 'sum'
  readonly parts: readonly Exclude<Axis, undefined>[]
  /** Those of parts that are sums counted through. */
  readonly terms: number
}

export type Step =
  | { readonly kind: 'times'; readonly factor: number }
  /** floor((size + pads - kernel) / stride) + 1 */
  | { readonly kind: 'window'; readonly kernel: number; readonly stride: number; readonly pads: number }

export function openAxis(id: string): OpenAxis {
  return { kind: 'open', id, steps: [] }
}

export function after(axis: Axis, step: Step): Axis {
  if (typeof axis === 'number') return forward(axis, step)
  if (axis?.kind !== 'open' || axis.steps.length >= MAX_STEPS) return undefined
  return { ...axis, steps: [...axis.steps, step] }
}

/** Deeper networks than there are; each step is a copy of those before. */
const MAX_STEPS = 1000

export function sumAxis(parts: readonly Axis[]): Axis {
  if (!parts.every((part) => part !== undefined)) return undefined
  if (parts.every((part) => typeof part === 'number')) return parts.reduce((sum, part) => sum + part, 0)
  const terms = parts.reduce<number>((all, part) => all + termsOf(part), 0)
  return terms > MAX_TERMS ? undefined : { kind: 'sum', parts, terms }
}

function termsOf(axis: Exclude<Axis, undefined>): number {
  return typeof axis === 'object' && axis.kind === 'sum' ? axis.terms : 1
}

/** A value that is joined to itself sixty times would have more than can be counted. */
const MAX_TERMS = 1024

/** The product of axes; undefined when more than one is open. */
export function productAxis(parts: readonly Axis[]): Axis {
  const open = parts.filter((part) => typeof part !== 'number')
  const factor = parts.reduce<number>((all, part) => (typeof part === 'number' ? all * part : all), 1)
  if (open.length === 0) return factor
  if (open.length > 1) return undefined
  return factor === 1 ? open[0] : after(open[0], { kind: 'times', factor })
}

export function sizeOfAxis(axis: Axis, sizeOf: (id: string) => number | undefined): number | undefined {
  if (axis === undefined || typeof axis === 'number') return axis
  if (axis.kind === 'sum') {
    const sizes = axis.parts.map((part) => sizeOfAxis(part, sizeOf))
    return sizes.every((size) => size !== undefined) ? sizes.reduce((sum, size) => sum + size!, 0) : undefined
  }
  let size = sizeOf(axis.id)
  for (const step of axis.steps) size = size === undefined ? undefined : forward(size, step)
  return size
}

function forward(size: number, step: Step): number {
  if (step.kind === 'times') return size * step.factor
  return Math.floor((size + step.pads - step.kernel) / step.stride) + 1
}

/** What operators ask of the open dimensions. */
export class Demands {
  readonly #exact = new Map<string, number>()
  readonly #least = new Map<string, number>()
  readonly #divisor = new Map<string, number>()
  readonly #sums = new Map<string, SumAxis>()
  readonly #parents = new Map<string, string>()

  /** Dimensions that must be equal have one representative. */
  find(id: string): string {
    let root = id
    for (let up = this.#parents.get(root); up !== undefined; up = this.#parents.get(root)) root = up
    for (let at = id; at !== root;) {
      const up = this.#parents.get(at)!
      this.#parents.set(at, root)
      at = up
    }
    return root
  }

  exactOf(id: string): number | undefined {
    return this.#exact.get(this.find(id))
  }

  sumOf(id: string): SumAxis | undefined {
    return this.#sums.get(this.find(id))
  }

  /**
   * A size, enlarged where windows ask for more: then to a power of two with room for several
   * windows, since layers that follow have windows of their own.
   */
  enlarged(id: string, size: number): number {
    const root = this.find(id)
    const [least, divisor] = [this.#least.get(root) ?? 0, this.#divisor.get(root) ?? 1]
    const roomy = least > size ? 2 ** Math.ceil(Math.log2(least * ROOM)) : size
    return Math.ceil(roomy / divisor) * divisor
  }

  equal(a: Axis, b: Axis): void {
    if (a === undefined || b === undefined) return
    if (typeof a === 'number') {
      if (typeof b !== 'number') this.exactly(b, a)
    } else if (typeof b === 'number') this.exactly(a, b)
    else if (a.kind === 'open' && b.kind === 'open') this.#join(a, b)
    else if (a.kind === 'open' && b.kind === 'sum') this.#define(a, b)
    else if (a.kind === 'sum' && b.kind === 'open') this.#define(b, a)
  }

  exactly(axis: Axis, size: number): void {
    if (typeof axis !== 'object' || axis.kind !== 'open') return
    const wanted = back(axis, size, exactBefore)
    const root = this.find(axis.id)
    if (wanted !== undefined && wanted > 0 && !this.#exact.has(root)) this.#exact.set(root, wanted)
  }

  atLeast(axis: Axis, size: number): void {
    if (typeof axis !== 'object' || axis.kind !== 'open') return
    const wanted = back(axis, size, leastBefore)
    const root = this.find(axis.id)
    if (wanted !== undefined) this.#least.set(root, Math.max(wanted, this.#least.get(root) ?? 0))
  }

  multipleOf(axis: Axis, divisor: number): void {
    if (typeof axis !== 'object' || axis.kind !== 'open' || divisor <= 1) return
    const factor = axis.steps.reduce(
      (all, step) => (step.kind === 'times' ? all * step.factor : Number.NaN),
      1,
    )
    if (Number.isNaN(factor)) return
    const own = divisor / commonDivisor(divisor, factor)
    const root = this.find(axis.id)
    const known = this.#divisor.get(root) ?? 1
    const both = (known * own) / commonDivisor(known, own)
    if (both <= MAX_DIVISOR) this.#divisor.set(root, both)
  }

  #join(a: OpenAxis, b: OpenAxis): void {
    const [x, y] = [this.find(a.id), this.find(b.id)]
    if (x === y || a.steps.length > 0 || b.steps.length > 0) return
    this.#parents.set(y, x)
    for (const map of [this.#exact, this.#least, this.#divisor] as Map<string, number>[]) {
      const [own, other] = [map.get(x), map.get(y)]
      if (own === undefined && other !== undefined) map.set(x, other)
      else if (map === this.#least && other !== undefined) map.set(x, Math.max(own!, other))
    }
    const sum = this.#sums.get(y)
    if (sum !== undefined && !this.#sums.has(x)) this.#sums.set(x, sum)
  }

  /** A sum that holds the dimension itself says nothing about it. */
  #define({ id, steps }: OpenAxis, sum: SumAxis): void {
    const root = this.find(id)
    if (steps.length > 0 || this.#sums.has(root) || this.#mentions(sum, root)) return
    this.#sums.set(root, sum)
  }

  /** Also through the definitions of others; what takes long to follow counts as mentioned. */
  #mentions(sum: SumAxis, root: string): boolean {
    const seen = new Set<string>()
    const open: Exclude<Axis, undefined>[] = [sum]
    for (let axis = open.pop(); axis !== undefined; axis = open.pop()) {
      if (typeof axis === 'number') continue
      if (axis.kind === 'sum') {
        for (const part of axis.parts) open.push(part)
        continue
      }
      const other = this.find(axis.id)
      if (other === root || seen.size > MAX_TERMS) return true
      const definition = seen.has(other) ? undefined : this.#sums.get(other)
      seen.add(other)
      if (definition !== undefined) open.push(definition)
    }
    return false
  }
}

/** How many times the least size. */
const ROOM = 2

/** Larger common multiples come from guesses that contradict each other. */
const MAX_DIVISOR = 4096

function back(
  { steps }: OpenAxis,
  size: number,
  before: (size: number, step: Step) => number | undefined,
): number | undefined {
  let wanted: number | undefined = size
  for (const step of steps.toReversed()) wanted = wanted === undefined ? undefined : before(wanted, step)
  return wanted
}

/** Of several sizes that give this one, the largest: no entry is left over. */
function exactBefore(size: number, step: Step): number | undefined {
  if (step.kind === 'times') return size % step.factor === 0 ? size / step.factor : undefined
  return size * step.stride - 1 + step.kernel - step.pads
}

function leastBefore(size: number, step: Step): number {
  if (step.kind === 'times') return Math.ceil(size / step.factor)
  return (size - 1) * step.stride + step.kernel - step.pads
}

export function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}
