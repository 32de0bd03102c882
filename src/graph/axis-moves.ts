/** Axes that are merged, split, added, dropped or joined: Reshape, Squeeze, Concat, reductions. */
import { type Axes, type AxisStep, normal } from './axis-step.ts'
import { Argument } from './input-arguments.ts'
import { type Axis, after, commonDivisor, productAxis, sumAxis } from './input-axes.ts'

export function reshape(step: AxisStep): readonly (Axes | undefined)[] | undefined {
  const { demands, listOf, node } = step
  const data = step.inputs[0]
  const target = listOf(1) ?? node.ints('shape')
  if (data === undefined || target === undefined) return undefined
  const kept = (size: Axis, at: number): boolean => size === 0 || isSameOpen(size, data[at])
  const rest = productAxis(data.filter((_, at) => !kept(target[at], at)))
  const others = target.filter((size, at) => size !== -1 && !kept(size, at))
  const fixed = productAxis(others)
  if (target.includes(-1)) {
    if (typeof fixed === 'number') demands.multipleOf(rest, fixed)
  } else demands.equal(rest, fixed)
  return [
    target.map((size, at) => {
      if (kept(size, at)) return data[at]
      return size === -1 ? (typeof fixed === 'number' ? quotientAxis(rest, fixed) : undefined) : size
    }),
  ]
}

function isSameOpen(a: Axis, b: Axis): boolean {
  return typeof a === 'object' && typeof b === 'object' && a.kind === 'open' && b.kind === 'open'
    ? a.id === b.id && a.steps.length === b.steps.length
    : false
}

function quotientAxis(axis: Axis, divisor: number): Axis {
  if (divisor === 1) return axis
  if (typeof axis === 'number') return axis % divisor === 0 ? axis / divisor : undefined
  const last = axis?.kind === 'open' ? axis.steps.at(-1) : undefined
  if (axis?.kind !== 'open' || last?.kind !== 'times') return undefined
  const factor = last.factor / commonDivisor(last.factor, divisor)
  if (last.factor % divisor !== 0) return undefined
  const rest = { ...axis, steps: axis.steps.slice(0, -1) }
  return factor === 1 ? rest : after(rest, { kind: 'times', factor: last.factor / divisor })
}

export function unsqueeze({ inputs: [data], node }: AxisStep): readonly (Axes | undefined)[] | undefined {
  const axes = node.numbers(1) ?? node.ints('axes')
  if (data === undefined || axes === undefined) return undefined
  const rank = data.length + axes.length
  const inserted = new Set(axes.map((axis) => normal(axis, rank)))
  const rest = [...data]
  return [Array.from({ length: rank }, (_, axis) => (inserted.has(axis) ? 1 : rest.shift()))]
}

export function squeeze({
  inputs: [data],
  node,
  demands,
}: AxisStep): readonly (Axes | undefined)[] | undefined {
  const axes = node.numbers(1) ?? node.ints('axes')
  if (data === undefined || axes === undefined) return undefined
  const removed = new Set(axes.map((axis) => normal(axis, data.length)))
  for (const axis of removed) demands.exactly(data[axis], 1)
  return [data.filter((_, axis) => !removed.has(axis))]
}

export function concat({ inputs, node, demands }: AxisStep): readonly (Axes | undefined)[] | undefined {
  if (!inputs.every((axes) => axes !== undefined) || inputs.length === 0) return undefined
  const [first] = inputs
  if (inputs.some((axes) => axes.length !== first!.length)) return undefined
  const joint = normal(node.int('axis') ?? 0, first!.length)
  return [
    first!.map((size, at) => {
      if (at === joint) return sumAxis(inputs.map((axes) => axes[at]))
      for (const axes of inputs) demands.equal(size, axes[at])
      return inputs.map((axes) => axes[at]).find((axis) => axis !== undefined)
    }),
  ]
}

export function reduce(step: AxisStep): readonly (Axes | undefined)[] | undefined {
  const {
    inputs: [data, list],
    node,
    demands,
  } = step
  const axes = node.has(1) ? node.numbers(1) : (node.ints('axes') ?? [])
  // A list of as many axes as one likes: one, which every shape but a scalar's has.
  if (axes === undefined) demands.equal(list?.[0], 1)
  if (data === undefined || axes === undefined) return undefined
  if (axes.length === 0 && node.int('noop_with_empty_axes') === 1) return [data]
  return [reduced(data, axes.length === 0 ? data.map((_, axis) => axis) : axes, node)]
}

export function reduceOne({ inputs: [data], node }: AxisStep): readonly (Axes | undefined)[] | undefined {
  return [data && reduced(data, [node.int('axis') ?? 0], node)]
}

function reduced(data: Axes, axes: readonly number[], node: Argument): Axes {
  const gone = new Set(axes.map((axis) => normal(axis, data.length)))
  const keeps = (node.int('keepdims') ?? 1) !== 0
  return keeps
    ? data.map((size, axis) => (gone.has(axis) ? 1 : size))
    : data.filter((_, axis) => !gone.has(axis))
}
