/** Arguments that name axes, or say something for each of them: of Slice, Pad, Squeeze and reductions. */
import type { Argument, Sizes } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'
import { counted, list } from './input-list.ts'

export function sliceStarts(argument: Argument): InputDomain | undefined {
  const steps = argument.numbers(4)
  const axes = slicedAxes(argument)
  return (
    axes &&
    list(
      argument,
      axes.map((axis, at) => ((steps?.[at] ?? 1) < 0 ? (argument.size(0, axis) ?? 1) - 1 : 0)),
      'starts',
    )
  )
}

export function sliceEnds(argument: Argument): InputDomain | undefined {
  const [steps, starts, axes] = [argument.numbers(4), argument.numbers(1), slicedAxes(argument)]
  if (axes === undefined) return undefined
  const ends = axes.map((axis, at) => {
    const [step, size] = [steps?.[at] ?? 1, argument.size(0, axis) ?? 1]
    if (step < 0) return -size - 1
    const start = normal(starts?.[at] ?? 0, size)
    const wanted = argument.outputShape()?.at(axis)
    return wanted === undefined ? size : Math.min(size, start + wanted * step)
  })
  return list(argument, ends, 'ends')
}

export function sliceAxes(argument: Argument): InputDomain | undefined {
  const count = argument.length ?? argument.lengthOf(1)
  return count === undefined ? undefined : list(argument, counted(count), 'axes')
}

export function sliceSteps(argument: Argument): InputDomain | undefined {
  return list(argument, [1], 'steps')
}

function slicedAxes(argument: Argument): readonly number[] | undefined {
  const known = argument.numbers(3)
  if (known !== undefined) return known
  return argument.length === undefined ? undefined : counted(argument.length)
}

/** Whatever the output has more than the input goes to the end. */
export function pads(argument: Argument): InputDomain | undefined {
  const [data, count] = [argument.shape(0), argument.length]
  if (count === undefined) return undefined
  const axes = argument.numbers(3) ?? counted(count / 2)
  const out = argument.outputShape()
  const after = axes.map((axis) => {
    const [before, wanted] = [data?.at(axis), out?.at(axis)]
    return before === undefined || wanted === undefined ? 0 : wanted - before
  })
  const largest =
    argument.text('mode') === 'reflect' ? (axis: number) => (data?.at(axis) ?? 1) - 1 : undefined
  const end = after.map((size, at) => (largest === undefined ? size : Math.min(size, largest(axes[at]!))))
  return list(argument, [...end.map((size, at) => after[at]! - size), ...end], 'pads')
}

export function leadingAxes(argument: Argument): InputDomain | undefined {
  return argument.length === undefined ? undefined : list(argument, counted(argument.length), 'axes')
}

/** Axes of size 1. */
export function squeezedAxes(argument: Argument): InputDomain | undefined {
  const [data, out] = [argument.shape(0), argument.outputShape()]
  const count =
    argument.length ?? (data === undefined || out === undefined ? undefined : data.length - out.length)
  if (data === undefined || count === undefined) return undefined
  const single = counted(data.length).filter((axis) => data[axis] === 1 || data[axis] === undefined)
  const chosen = choose(single, count, (axes) => agrees(without(data, axes), out))
  return chosen && list(argument, chosen, 'axes')
}

export function insertedAxes(argument: Argument): InputDomain | undefined {
  const [data, out] = [argument.shape(0), argument.outputShape()]
  const count =
    argument.length ?? (data === undefined || out === undefined ? undefined : out.length - data.length)
  if (count === undefined) return undefined
  if (data === undefined || out === undefined) return list(argument, counted(count), 'axes')
  const single = counted(out.length).filter((axis) => out[axis] === 1 || out[axis] === undefined)
  const chosen = choose(single, count, (axes) => agrees(without(out, axes), data))
  return list(argument, chosen ?? counted(count), 'axes')
}

/** Axes that the output has lost, or has reduced to 1. */
export function reducedAxes(argument: Argument): InputDomain | undefined {
  const [data, out, count] = [argument.shape(0), argument.outputShape(), argument.length]
  if (count === undefined) return undefined
  if (data === undefined || count > data.length) return list(argument, counted(count), 'axes')
  const keeps = (argument.int('keepdims') ?? 1) !== 0
  const reduced = (axes: readonly number[]): Sizes =>
    keeps ? data.map((size, axis) => (axes.includes(axis) ? 1 : size)) : without(data, axes)
  const chosen = choose(counted(data.length), count, (axes) => agrees(reduced(axes), out))
  return list(argument, chosen ?? counted(count), 'axes')
}

function normal(at: number, size: number): number {
  return Math.max(0, at < 0 ? at + size : at)
}

function without(shape: Sizes, axes: readonly number[]): Sizes {
  return shape.filter((_, axis) => !axes.includes(axis))
}

/** Whether two shapes can be the same. */
function agrees(a: Sizes, b: Sizes | undefined): boolean {
  if (b === undefined) return true
  return (
    a.length === b.length &&
    a.every((size, at) => size === undefined || b[at] === undefined || size === b[at])
  )
}

/** The first combination of `count` items that is right; ranks are small, where they are not it gives up. */
function choose(
  items: readonly number[],
  count: number,
  isRight: (chosen: readonly number[]) => boolean,
): readonly number[] | undefined {
  let tries = 0
  const chosen: number[] = []
  const extend = (from: number): boolean => {
    if (++tries > MAX_TRIES) return false
    if (chosen.length === count) return isRight(chosen)
    for (let at = from; at <= items.length - (count - chosen.length); at++) {
      chosen.push(items[at]!)
      if (extend(at + 1)) return true
      chosen.pop()
      if (tries > MAX_TRIES) return false
    }
    return false
  }
  return extend(0) ? chosen : undefined
}

/** All combinations of the axes of 12; more axes than real tensors have. */
const MAX_TRIES = 5_000
