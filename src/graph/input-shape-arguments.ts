/**
 * Arguments that are sizes: targets, counts and lengths of Reshape, Resize, Split and the like.
 *
 * What always holds: the values fit the sizes that are known around them, and the output gets its
 * declared shape where some choice gives it. Arguments of one operator agree with each other when
 * several of them are inputs, since each is derived from the same shapes by the same rule.
 */
import { type Argument, isFixed } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'
import { counted, declaredOutput, list, ones } from './input-list.ts'

export function reshapeTarget(argument: Argument): InputDomain | undefined {
  const [data, length] = [argument.shape(0), argument.length]
  const declared = declaredOutput(argument)
  if (declared !== undefined && declared.length === (length ?? declared.length)) {
    return list(argument, declared, 'target')
  }
  if (data === undefined || length === undefined || !isFixed(data)) return undefined
  if (length === 0) return list(argument, [], 'target')
  if (length >= data.length) return list(argument, [...ones(length - data.length), ...data], 'target')
  const merged = data.slice(0, data.length - length + 1)
  return list(argument, [product(merged), ...data.slice(data.length - length + 1)], 'target')
}

export function expandTarget(argument: Argument): InputDomain | undefined {
  const [data, length] = [argument.shape(0), argument.length]
  const wanted = declaredOutput(argument) ?? data
  if (wanted === undefined || length === undefined || !isFixed(wanted)) return undefined
  const fill = Math.max(0, length - wanted.length)
  return list(argument, [...ones(fill), ...wanted.slice(wanted.length - (length - fill))], 'target')
}

export function repeats(argument: Argument): InputDomain | undefined {
  const [data, out, length] = [argument.shape(0), argument.outputShape(), argument.length]
  if (length === undefined) return undefined
  const values = Array.from({ length }, (_, axis) => quotient(out?.[axis], data?.[axis]) ?? 1)
  return list(argument, values, 'repetitions')
}

function quotient(whole: number | undefined, part: number | undefined): number | undefined {
  if (whole === undefined || part === undefined || part === 0) return undefined
  return whole % part === 0 ? whole / part : undefined
}

export function filledShape(argument: Argument): InputDomain | undefined {
  const [declared, length] = [declaredOutput(argument), argument.length]
  if (declared !== undefined && declared.length === (length ?? declared.length)) {
    return list(argument, declared, 'shape')
  }
  // A single entry stands for all, where the number of axes is not known.
  return list(
    argument,
    Array.from({ length: length ?? 1 }, () => 2),
    'shape',
  )
}

/** Range counts from 0 by 1, for as long as its output is declared. */
export function rangeStart(argument: Argument): InputDomain {
  return list(argument, [0], 'start')
}

const RANGE_LENGTH = 5

export function rangeLimit(argument: Argument): InputDomain {
  const [start, delta] = [argument.numbers(0)?.[0] ?? 0, argument.numbers(2)?.[0] ?? 1]
  return list(argument, [start + (argument.outputShape()?.[0] ?? RANGE_LENGTH) * delta], 'limit')
}

export function rangeDelta(argument: Argument): InputDomain {
  const [start, limit] = [argument.numbers(0)?.[0] ?? 0, argument.numbers(1)?.[0]]
  return list(argument, [limit !== undefined && limit < start ? -1 : 1], 'step')
}

/** By the declared output, else twice as large in all but the first two axes. */
export function resizeScales(argument: Argument): InputDomain | undefined {
  const [data, count] = [argument.shape(0), argument.length]
  if (count === undefined || count === 0) return undefined
  const [axes, out] = [resizedAxes(argument, count), argument.outputShape()]
  const values = axes.map((axis) => {
    const [before, after] = [data?.at(axis), out?.at(axis)]
    if (before !== undefined && after !== undefined && before > 0) return scaleFor(before, after)
    return axis < 2 && axes.length > 2 ? 1 : 2
  })
  return list(argument, values, 'scales')
}

/** The output has floor(size * scale) entries: half an entry more survives rounding. */
function scaleFor(before: number, after: number): number {
  return after % before === 0 || before % after === 0 ? after / before : (after + 0.5) / before
}

export function resizeSizes(argument: Argument): InputDomain | undefined {
  const [data, count] = [argument.shape(0), argument.length]
  if (count === undefined || count === 0) return undefined
  const [axes, out] = [resizedAxes(argument, count), argument.outputShape()]
  const values = axes.map((axis) => {
    const before = data?.at(axis) ?? 1
    return out?.at(axis) ?? (axis < 2 && axes.length > 2 ? before : 2 * before)
  })
  return list(argument, values, 'sizes')
}

function resizedAxes(argument: Argument, count: number): readonly number[] {
  return argument.ints('axes') ?? counted(count)
}

/** Parts that sum up to the axis, as even as can be. */
export function splitSizes(argument: Argument): InputDomain | undefined {
  const axis = argument.int('axis') ?? 0
  const [size, rank, count] = [argument.size(0, axis), argument.shape()?.length, argument.length]
  if (size === undefined || count === undefined || count === 0) return undefined
  if (rank === 0) return list(argument, [Math.max(1, Math.ceil(size / 2))], 'size of parts')
  const declared = argument.node.outputs.map((_, slot) => argument.outputShape(slot)?.at(axis))
  if (declared.length === count && isFixed(declared) && sum(declared) === size) {
    return list(argument, declared, 'sizes of parts')
  }
  const parts = Array.from({ length: count }, (_, at) => Math.floor((size + at) / count))
  return list(argument, parts.toReversed(), 'sizes of parts')
}

export function oneHotDepth(argument: Argument): InputDomain {
  const depth = argument.outputShape()?.at(argument.int('axis') ?? -1) ?? ONE_HOT_DEPTH
  return list(argument, [depth], 'depth')
}

const ONE_HOT_DEPTH = 8

export function oneHotIndices(argument: Argument): InputDomain {
  const depth =
    argument.numbers(1)?.[0] ?? argument.outputShape()?.at(argument.int('axis') ?? -1) ?? ONE_HOT_DEPTH
  return { kind: 'range', low: 0, high: depth, because: `indices of ${argument.name} below ${depth}` }
}

export function croppedSizes(argument: Argument): InputDomain | undefined {
  const count = argument.length
  if (count === undefined) return undefined
  const axes = argument.ints('axes') ?? counted(count)
  const [data, out] = [argument.shape(0), argument.outputShape()]
  return list(
    argument,
    axes.map((axis) => out?.at(axis) ?? data?.at(axis) ?? 1),
    'sizes',
  )
}

/** N, C, H, W (or N, C, D, H, W) for the transforms that there are. */
export function gridSize(argument: Argument): InputDomain | undefined {
  const [batch, count, out] = [argument.size(0, 0), argument.length, argument.outputShape()]
  if (batch === undefined || count === undefined || count < 4) return undefined
  const spatial = Array.from({ length: count - 2 }, (_, at) => out?.[at + 1] ?? 4)
  return list(argument, [batch, 1, ...spatial], 'size')
}

export function unpoolShape(argument: Argument): InputDomain | undefined {
  const [declared, data, count] = [declaredOutput(argument), argument.shape(0), argument.length]
  if (declared !== undefined) return list(argument, declared, 'shape')
  if (data === undefined || count === undefined || !isFixed(data)) return undefined
  return list(
    argument,
    data.map((size, axis) => (axis < 2 ? size : 2 * size)),
    'shape',
  )
}

export function transformLength(argument: Argument): InputDomain | undefined {
  const axis = argument.numbers(2)?.[0] ?? argument.int('axis') ?? 1
  const size = argument.size(0, axis)
  return size === undefined ? undefined : list(argument, [size], 'length')
}

export function frameStep(argument: Argument): InputDomain | undefined {
  const length = argument.size(0, 1)
  return length === undefined ? undefined : list(argument, [Math.max(1, Math.floor(length / 16))], 'step')
}

export function frameLength(argument: Argument): InputDomain | undefined {
  const length = argument.size(2, 0) ?? Math.max(1, Math.floor((argument.size(0, 1) ?? 16) / 8))
  return list(argument, [length], 'length of a frame')
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all * size, 1)
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all + size, 0)
}
