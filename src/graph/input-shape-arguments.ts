/**
 * Arguments that decide shapes: targets, axes, bounds and counts of Reshape, Slice, Pad and the like.
 *
 * What always holds: the values fit the sizes that are known around them, and the output gets its
 * declared shape where some choice gives it. Arguments of one operator agree with each other when
 * several of them are inputs, since each is derived from the same shapes by the same rule.
 */
import { type Argument, isFixed, type Sizes } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'

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

/** Blocks of one entry, in a picture that has as many of them as there are columns. */
export function imageShape(argument: Argument): InputDomain | undefined {
  const [out, count, columns] = [argument.outputShape(), argument.length, argument.size(0, 2)]
  const spatial = out?.slice(2)
  if (spatial !== undefined && isFixed(spatial) && spatial.length === count) {
    return list(argument, spatial, 'shape of the picture')
  }
  return count === undefined || columns === undefined
    ? undefined
    : list(argument, [...ones(count - 1), columns], 'shape of the picture')
}

export function blockShape(argument: Argument): InputDomain | undefined {
  const [out, count] = [argument.outputShape(), argument.length]
  const [rows, channels] = [argument.size(0, 1), out?.[1]]
  if (count === undefined) return undefined
  const image = argument.outputShape()?.slice(2)
  const blocks = channels === undefined || rows === undefined ? undefined : rows / channels
  const isSmall = blocks !== undefined && blocks > 0 && blocks <= MAX_BLOCK && count <= MAX_BLOCK_AXES
  const chosen = image && isSmall ? blockOf(argument, blocks, image, count) : undefined
  return list(argument, chosen ?? ones(count), 'shape of a block')
}

/** Factors of `blocks` that cut the picture into as many blocks as there are columns. */
function blockOf(
  argument: Argument,
  blocks: number,
  image: Sizes,
  count: number,
): readonly number[] | undefined {
  const columns = argument.size(0, 2)
  const [strides, dilations, pad] = [
    argument.ints('strides'),
    argument.ints('dilations'),
    argument.ints('pads'),
  ]
  const places = (block: readonly number[]): number =>
    block.reduce((all, size, at) => {
      const span = (dilations?.[at] ?? 1) * (size - 1) + 1
      const room = (image[at] ?? 1) + (pad?.[at] ?? 0) + (pad?.[at + count] ?? 0)
      return all * (Math.floor((room - span) / (strides?.[at] ?? 1)) + 1)
    }, 1)
  return factorings(blocks, count).find((block) => places(block) === columns)
}

/** Entries of a block, in as many axes as pictures have; every way to write one as a product is tried. */
const MAX_BLOCK = 65_536
const MAX_BLOCK_AXES = 4

function factorings(whole: number, count: number): number[][] {
  if (count === 1) return [[whole]]
  return counted(whole)
    .map((at) => at + 1)
    .filter((factor) => whole % factor === 0)
    .flatMap((factor) => factorings(whole / factor, count - 1).map((rest) => [factor].concat(rest)))
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

function list(argument: Argument, values: readonly number[], what: string): InputDomain {
  const shown = values.length === 1 ? values[0] : `[${values.join(', ')}]`
  return { kind: 'constant', values, because: `${what} of ${argument.name}: ${shown}` }
}

function declaredOutput(argument: Argument): readonly number[] | undefined {
  const shape = argument.outputShape()
  return shape !== undefined && isFixed(shape) ? shape : undefined
}

function ones(length: number): number[] {
  return Array.from({ length: Math.max(0, length) }, () => 1)
}

function counted(length: number): number[] {
  return Array.from({ length: Math.max(0, Math.floor(length)) }, (_, at) => at)
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all * size, 1)
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all + size, 0)
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
