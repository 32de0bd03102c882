/** Shape arithmetic that makes lists of sizes, picks from them and gives them other shapes. */
import { attributeOf } from '../onnx/attributes.ts'
import { type Ints, MAX_MADE, MAX_RANK, type ShapeOpContext, axesOf, isFirstAxis } from './shape-op.ts'

export function shapeOp({ firstType, attributes }: ShapeOpContext): Ints | undefined {
  if (firstType?.kind !== 'tensor' || firstType.shape === undefined) return undefined
  if (firstType.shape.length > MAX_RANK) return undefined
  const rank = firstType.shape.length
  const start = clampAxis(Number(attributeOf(attributes(), 'start', 'int') ?? 0n), rank)
  const end = clampAxis(Number(attributeOf(attributes(), 'end', 'int') ?? BigInt(rank)), rank)
  const items = firstType.shape
    .slice(start, end)
    .map((dim) => (typeof dim === 'number' ? BigInt(dim) : undefined))
  return { dtype: 'int64', shape: [items.length], items }
}

export function sizeOp({ firstType }: ShapeOpContext): Ints | undefined {
  if (firstType?.kind !== 'tensor' || firstType.shape === undefined) return undefined
  let size: bigint | undefined = 1n
  for (const dim of firstType.shape)
    size = typeof dim === 'number' && size !== undefined ? size * BigInt(dim) : undefined
  return { dtype: 'int64', shape: [], items: [size] }
}

export function gatherOp({ inputs: [data, indices], attributes }: ShapeOpContext): Ints | undefined {
  if (data?.shape.length !== 1 || indices === undefined) return undefined
  if (!isFirstAxis(attributeOf(attributes(), 'axis', 'int') ?? 0n)) return undefined
  const size = data.items.length
  const items: (bigint | undefined)[] = []
  for (const index of indices.items) {
    if (index === undefined) return undefined
    const at = Number(index) < 0 ? Number(index) + size : Number(index)
    if (at < 0 || at >= size) return undefined
    items.push(data.items[at])
  }
  return { dtype: data.dtype, shape: indices.shape, items }
}

export function sliceOp({ inputs, given, attributes }: ShapeOpContext): Ints | undefined {
  const data = inputs[0]
  if (data?.shape.length !== 1) return undefined
  const argument = (slot: number, name: string): readonly (bigint | undefined)[] | undefined | 'absent' =>
    given[slot] ? inputs[slot]?.items : (attributeOf(attributes(), name, 'ints') ?? 'absent')
  const [starts, ends, axes, steps] = [
    argument(1, 'starts'),
    argument(2, 'ends'),
    argument(3, 'axes'),
    argument(4, 'steps'),
  ]
  const step = steps === 'absent' ? 1n : steps?.[0]
  const axis = axes === 'absent' ? 0n : axes?.[0]
  if (starts === 'absent' || ends === 'absent' || axis === undefined || !isFirstAxis(axis)) return undefined
  const [start, end] = [starts?.[0], ends?.[0]]
  if (start === undefined || end === undefined || step === undefined || step === 0n) return undefined
  // Runtimes disagree on a start before the beginning when walking backwards.
  if (step < 0n && start < -BigInt(data.items.length)) return undefined
  const items = sliceItems(data.items, start, end, step)
  return { dtype: data.dtype, shape: [items.length], items }
}

function sliceItems<T>(items: readonly T[], start: bigint, end: bigint, step: bigint): T[] {
  const size = BigInt(items.length)
  const [low, high] = step > 0n ? [0n, size] : [-1n, size - 1n]
  const clamp = (at: bigint): bigint => {
    const absolute = at < 0n ? at + size : at
    return absolute < low ? low : absolute > high ? high : absolute
  }
  const picked: T[] = []
  const stop = clamp(end)
  for (let at = clamp(start); step > 0n ? at < stop : at > stop; at += step) picked.push(items[Number(at)]!)
  return picked
}

export function concatOp({ inputs, attributes }: ShapeOpContext): Ints | undefined {
  if (!isFirstAxis(attributeOf(attributes(), 'axis', 'int') ?? 0n)) return undefined
  if (inputs.length === 0 || inputs.length > MAX_MADE) return undefined
  if (!inputs.every((part) => part !== undefined && part.shape.length === 1)) return undefined
  if (inputs.reduce((sum, part) => sum + part!.items.length, 0) > MAX_MADE) return undefined
  const items = inputs.flatMap((part) => part!.items)
  return { dtype: inputs[0]!.dtype, shape: [items.length], items }
}

export function unsqueezeOp(context: ShapeOpContext): Ints | undefined {
  const data = context.inputs[0]
  const axes = axesOf(context)
  if (data === undefined || axes === undefined || axes === 'absent') return undefined
  const rank = data.shape.length + axes.length
  const at = new Set(axes.map((axis) => (axis < 0 ? axis + rank : axis)))
  const rest = [...data.shape]
  const shape = Array.from({ length: rank }, (_, axis) => (at.has(axis) ? 1 : rest.shift()))
  return shape.every((dim) => dim !== undefined) ? { ...data, shape: shape as number[] } : undefined
}

export function squeezeOp(context: ShapeOpContext): Ints | undefined {
  const data = context.inputs[0]
  const axes = axesOf(context)
  if (data === undefined || axes === undefined) return undefined
  const rank = data.shape.length
  const at = axes === 'absent' ? undefined : new Set(axes.map((axis) => (axis < 0 ? axis + rank : axis)))
  return { ...data, shape: data.shape.filter((dim, axis) => !(at === undefined ? dim === 1 : at.has(axis))) }
}

export function reshapeOp({ inputs: [data, target], attributes }: ShapeOpContext): Ints | undefined {
  const wanted = target?.items ?? attributeOf(attributes(), 'shape', 'ints')
  if (data === undefined || wanted === undefined || !wanted.every((dim) => dim !== undefined))
    return undefined
  if (attributeOf(attributes(), 'allowzero', 'int') === 1n) return undefined
  const shape = wanted.map((dim, axis) => (dim === 0n ? (data.shape[axis] ?? 0) : Number(dim)))
  const fixed = shape.reduce((product, dim) => (dim === -1 ? product : product * dim), 1)
  const filled = shape.map((dim) => (dim === -1 ? data.items.length / fixed : dim))
  return filled.reduce((product, dim) => product * dim, 1) === data.items.length
    ? { ...data, shape: filled }
    : undefined
}

export function rangeOp({ inputs }: ShapeOpContext): Ints | undefined {
  const [start, limit, delta] = inputs.map((input) => input?.items[0])
  const dtype = inputs[0]?.dtype
  if (
    start === undefined ||
    limit === undefined ||
    delta === undefined ||
    delta === 0n ||
    dtype === undefined
  )
    return undefined
  if ((limit - start) / delta > MAX_MADE) return undefined
  const items: bigint[] = []
  for (let at = start; delta > 0n ? at < limit : at > limit; at += delta) items.push(at)
  return { dtype, shape: [items.length], items }
}

export function constantOfShapeOp({
  inputs: [target],
  attributes,
  tensorAttribute,
}: ShapeOpContext): Ints | undefined {
  const value = attributes().get('value')
  const fill = value?.kind === 'tensor' ? tensorAttribute(value.range) : undefined
  if (fill === undefined || target === undefined || !target.items.every((dim) => dim !== undefined))
    return undefined
  const shape = target.items.map(Number)
  const count = shape.reduce((product, dim) => product * dim, 1)
  if (count < 0 || count > MAX_MADE) return undefined
  return { dtype: fill.dtype, shape, items: Array.from({ length: count }, () => fill.items[0]) }
}

function clampAxis(axis: number, rank: number): number {
  return Math.max(0, Math.min(rank, axis < 0 ? axis + rank : axis))
}
