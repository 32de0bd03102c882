/** Arguments that point into another input: indices, places to write to, classes, boxes, axes, counts. */
import { type Argument, isFixed } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'
import { MAX_LISTED, type Rule, constant, into, range } from './input-rule.ts'

/** Indices below the size of an axis of another input. */
export const indices =
  (data: number, axisOf: (argument: Argument) => number): Rule =>
  (argument) =>
    into(argument, argument.size(data, axisOf(argument)), 'indices')

/** Indices of tuples: below the smallest of the axes that they name. */
export const tuples = (argument: Argument): InputDomain | undefined => {
  const axes = tupleAxes(argument)
  return axes === undefined ? undefined : into(argument, Math.min(...axes), 'indices')
}

function tupleAxes(argument: Argument): readonly number[] | undefined {
  const skipped = argument.int('batch_dims') ?? 0
  const width = argument.shape()?.at(-1)
  if (width === undefined) return undefined
  const axes = argument.shape(0)?.slice(skipped, skipped + width)
  return axes !== undefined && axes.length === width && isFixed(axes) ? axes : undefined
}

/** Where two writes to one place have no order, each place is named once. */
export const distinctTuples: Rule = (argument) => {
  const [axes, count] = [tupleAxes(argument), argument.count]
  if (axes === undefined || axes.length === 0 || count === undefined) return tuples(argument)
  const [places, wanted] = [axes.reduce((product, size) => product * size, 1), count / axes.length]
  if (count > MAX_LISTED || wanted > places) return tuples(argument)
  const step = Math.max(1, Math.floor(places / Math.max(1, wanted)))
  const values = Array.from({ length: wanted }, (_, at) => unravel(at * step, axes)).flat()
  return { kind: 'constant', values, because: `distinct places of ${argument.name}` }
}

function unravel(position: number, sizes: readonly number[]): number[] {
  let rest = position
  return sizes
    .toReversed()
    .map((size) => {
      const index = rest % size
      rest = Math.floor(rest / size)
      return index
    })
    .toReversed()
}

export const distinctAlongAxis: Rule = (argument) => {
  const axis = argument.int('axis') ?? 0
  const [size, count] = [argument.size(0, axis), argument.size(argument.slot, axis)]
  if (size === undefined || count === undefined || count > size) return into(argument, size, 'indices')
  const rank = argument.shape()!.length
  const because = `distinct places of ${argument.name}`
  return { kind: 'counting', start: 0, axis: axis < 0 ? axis + rank : axis, because }
}

export const axisAttribute =
  (otherwise: number) =>
  (argument: Argument): number =>
    argument.int('axis') ?? otherwise

const firstAxis = (): number => 0

export const BATCH_INDICES: Rule = indices(0, firstAxis)

export const CLASSES: Rule = (argument) => into(argument, argument.size(0, 1), 'classes')

export const UNPOOL_INDICES: Rule = (argument) => {
  const [out, count] = [argument.outputShape(), argument.count]
  const declared = argument.numbers(2)
  const shape = out !== undefined && isFixed(out) ? out : declared
  if (count === undefined) return undefined
  const places = shape?.reduce((product, size) => product * size, 1) ?? count
  if (count > MAX_LISTED || places < count) return range(0, places, `indices of ${argument.name}`)
  const step = Math.max(1, Math.floor(places / count))
  const values = Array.from({ length: count }, (_, at) => at * step)
  return { kind: 'constant', values, because: `distinct places of ${argument.name}` }
}

/** Rows of (image, x1, y1, x2, y2) over the whole picture. */
export const ROIS_WITH_IMAGE: Rule = (argument) => {
  const [rows, height, width] = [argument.size(1, 0), argument.size(0, 2), argument.size(0, 3)]
  if (rows === undefined || rows > MAX_LISTED || height === undefined || width === undefined) return undefined
  const values = Array.from({ length: rows }, () => [0, 0, 0, width - 1, height - 1]).flat()
  return { kind: 'constant', values, because: `whole picture for ${argument.name}` }
}

/** Fewer than there are; as many as the output is declared to have. */
export const TOP_K: Rule = (argument) => {
  const axis = argument.int('axis') ?? -1
  const size = argument.size(0, axis)
  const wanted = argument.outputShape()?.at(axis) ?? (size === undefined ? 1 : Math.min(size, 3))
  return { kind: 'constant', values: [wanted], because: `${argument.name} takes ${wanted} of ${size ?? '?'}` }
}

export const AXIS_SCALAR: Rule = (argument) => {
  const rank = argument.shape(0)?.length
  return rank === undefined ? undefined : constant(Math.max(0, rank - 1), 'axis')(argument)
}
