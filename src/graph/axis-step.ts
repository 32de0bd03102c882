/**
 * One node as the rules of axes see it: the axes of its inputs in, those of its outputs out.
 *
 * On the way a rule tells the demands what must be equal, large enough or divisible.
 */
import { Argument } from './input-arguments.ts'
import { type Axis, Demands } from './input-axes.ts'

export type Axes = readonly Axis[]

export interface AxisStep {
  readonly node: Argument
  readonly demands: Demands
  readonly inputs: readonly (Axes | undefined)[]
  /** An input as a list of sizes, where it is one. */
  readonly listOf: (slot: number) => Axes | undefined
}

export type AxisRule = (step: AxisStep) => readonly (Axes | undefined)[] | undefined

export function broadcast(operands: readonly Axes[], demands: Demands): Axes {
  const rank = operands.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: rank }, (_, at) => {
    const own = operands.map((axes) => (at - rank + axes.length < 0 ? 1 : axes[at - rank + axes.length]))
    const wide = own.filter((axis) => axis !== 1)
    const known = wide.filter((axis) => axis !== undefined)
    for (const axis of known.slice(1)) demands.equal(known[0], axis)
    return wide.length === 0 ? 1 : (known.find((axis) => typeof axis === 'number') ?? known[0])
  })
}

export function normal(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis
}
