/**
 * The N largest of a stream of numbers, with the place each came from.
 *
 * A heap in two typed arrays with its smallest entry on top: a number that is not among the
 * largest so far costs one comparison with `floor`, and nothing is allocated after the start.
 */
export interface PlacedValue {
  readonly value: number
  readonly place: number
}

export class LargestValues {
  /** What a number must exceed to be kept. Zeros and NaN never are. */
  floor = 0
  readonly #values: Float64Array
  readonly #places: Float64Array
  #size = 0

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity)
    this.#places = new Float64Array(capacity)
  }

  /** Keeps a number above `floor`; the caller has compared. */
  add(value: number, place: number): void {
    if (this.#size < this.#values.length) this.#rise(this.#size++, value, place)
    else this.#sink(value, place)
    if (this.#size === this.#values.length) this.floor = this.#values[0]!
  }

  /** What was kept, the largest first, and the first place first among equals. */
  sorted(): PlacedValue[] {
    const kept = Array.from({ length: this.#size }, (_, i) => ({
      value: this.#values[i]!,
      place: this.#places[i]!,
    }))
    return kept.toSorted((a, b) => (a.value === b.value ? a.place - b.place : b.value - a.value))
  }

  /** The number at a rank, 0 being the largest; 0 where fewer were kept. */
  atRank(rank: number): number {
    if (rank >= this.#size) return 0
    return this.#values.subarray(0, this.#size).toSorted()[this.#size - 1 - rank]!
  }

  #rise(from: number, value: number, place: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#goesBefore(value, place, parent)) break
      this.#move(parent, at)
      at = parent
    }
    this.#put(at, value, place)
  }

  #sink(value: number, place: number): void {
    const size = this.#size
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      const right = child + 1
      const smaller = right < size && this.#isBefore(right, child) ? right : child
      if (this.#goesBefore(value, place, smaller)) break
      this.#move(smaller, at)
      at = smaller
    }
    this.#put(at, value, place)
  }

  /** Whether an entry is nearer to the top; of equals the later place, so that the first ones stay. */
  #goesBefore(value: number, place: number, other: number): boolean {
    const otherValue = this.#values[other]!
    return value === otherValue ? place > this.#places[other]! : value < otherValue
  }

  #isBefore(at: number, other: number): boolean {
    return this.#goesBefore(this.#values[at]!, this.#places[at]!, other)
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#values[from]!, this.#places[from]!)
  }

  #put(at: number, value: number, place: number): void {
    this.#values[at] = value
    this.#places[at] = place
  }
}
