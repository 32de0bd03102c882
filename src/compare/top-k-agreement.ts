/**
 * Top-k agreement over the last axis: blocks of a pair -> how often the actual row ranks highest
 * what the expected row ranks highest.
 *
 * An entry of the expected top k agrees if its actual value is not below the k-th largest actual
 * value; so a tie in the actual row, which rounding makes easily, is no disagreement. NaN never ranks.
 * It works on the blocks that the other figures are taken from, so the data is read once.
 */
import type { PairBlock } from './pair-blocks.ts'

export interface Agreement {
  /** Share of rows whose largest element is the same; undefined without a row of two elements. */
  readonly top1: number | undefined
  /** Share of the expected five largest that are among the actual five; undefined for rows up to five. */
  readonly top5: number | undefined
}

const K = 5

export class TopAgreement {
  readonly #rowLength: number
  readonly #k: number
  /** Expected values, descending, and the actual values at their places. */
  readonly #expected: Float64Array = new Float64Array(K)
  readonly #paired: Float64Array = new Float64Array(K)
  /** Actual values, descending. */
  readonly #actual: Float64Array = new Float64Array(K)
  #column = 0
  #rows = 0
  #agreeing1 = 0
  #agreeing5 = 0

  constructor(rowLength: number) {
    this.#rowLength = rowLength
    this.#k = rowLength > K ? K : 1
    this.#startRow()
  }

  add(block: PairBlock, count: number): void {
    for (let from = 0; from < count;) {
      const to = Math.min(count, from + this.#rowLength - this.#column)
      this.#addPiece(block, from, to)
      this.#column += to - from
      from = to
      if (this.#column === this.#rowLength) this.#endRow()
    }
  }

  result(): Agreement {
    if (this.#rows === 0) return { top1: undefined, top5: undefined }
    return {
      top1: this.#agreeing1 / this.#rows,
      top5: this.#k === K ? this.#agreeing5 / (this.#rows * K) : undefined,
    }
  }

  #addPiece({ expected, actual }: PairBlock, from: number, to: number): void {
    const last = this.#k - 1
    const [tops, wanted, paired] = [this.#actual, this.#expected, this.#paired]
    let floor = tops[last]!
    let wantedFloor = wanted[last]!
    for (let i = from; i < to; i++) {
      const a = actual[i]!
      const e = expected[i]!
      if (a > floor) {
        makeRoom(tops, tops, last, a)
        floor = tops[last]!
      }
      if (e > wantedFloor) {
        paired[makeRoom(wanted, paired, last, e)] = a
        wantedFloor = wanted[last]!
      }
    }
  }

  #startRow(): void {
    this.#column = 0
    this.#expected.fill(-Infinity)
    this.#paired.fill(-Infinity)
    this.#actual.fill(-Infinity)
  }

  #endRow(): void {
    this.#rows++
    if (this.#paired[0]! >= this.#actual[0]!) this.#agreeing1++
    for (let i = 0; i < this.#k; i++) if (this.#paired[i]! >= this.#actual[this.#k - 1]!) this.#agreeing5++
    this.#startRow()
  }
}

/** Puts a value into a descending list, moves the companions of the list along, and says where it is. */
function makeRoom(descending: Float64Array, companions: Float64Array, last: number, value: number): number {
  let at = last
  for (; at > 0 && descending[at - 1]! < value; at--) {
    descending[at] = descending[at - 1]!
    companions[at] = companions[at - 1]!
  }
  descending[at] = value
  return at
}
