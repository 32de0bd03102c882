/**
 * The operators of shape arithmetic over short integer tensors, some of whose entries may be unknown.
 *
 * Pure, and exact where they answer: integer overflow wraps and division truncates as the
 * runtime's do. Whatever is not certain is undefined.
 */
import type { AttributeValue } from '../onnx/attributes.ts'
import type { Range } from '../onnx/model-index.ts'
import type { ValueType } from '../onnx/value-type.ts'

export interface Ints {
  readonly dtype: 'int64' | 'int32' | 'bool'
  readonly shape: readonly number[]
  readonly items: readonly (bigint | undefined)[]
}

export interface ShapeOpContext {
  /** What is known of each input. */
  readonly inputs: readonly (Ints | undefined)[]
  /** Whether an input is there at all. */
  readonly given: readonly boolean[]
  readonly firstType: ValueType | undefined
  readonly attributes: () => ReadonlyMap<string, AttributeValue>
  readonly tensorAttribute: (range: Range) => Ints | undefined
}

/** No real tensor has more dimensions; broadcasting costs rank times size. */
export const MAX_RANK = 32
/** Of Min and Max. */
const MAX_OPERANDS = 64

type ShapeOp = (context: ShapeOpContext) => Ints | undefined

export const SHAPE_OPS: ReadonlyMap<string, ShapeOp> = new Map<string, ShapeOp>([
  ['Shape', shapeOp],
  ['Size', sizeOp],
  ['Identity', ({ inputs }) => inputs[0]],
  ['Cast', castOp],
  ['Gather', gatherOp],
  ['Slice', sliceOp],
  ['Concat', concatOp],
  ['Unsqueeze', unsqueezeOp],
  ['Squeeze', squeezeOp],
  ['Reshape', reshapeOp],
  ['Expand', expandOp],
  ['Range', rangeOp],
  ['ConstantOfShape', constantOfShapeOp],
  ['Where', whereOp],
  ['Neg', unary((a) => -a)],
  ['Abs', unary((a) => (a < 0n ? -a : a))],
  ['Not', unary((a) => (a === 0n ? 1n : 0n))],
  ['Add', binary((a, b) => a + b)],
  ['Sub', binary((a, b) => a - b)],
  ['Mul', binary((a, b) => a * b)],
  ['Div', binary((a, b) => (b === 0n ? undefined : a / b))],
  ['Min', variadic((a, b) => (a < b ? a : b))],
  ['Max', variadic((a, b) => (a > b ? a : b))],
  ['Equal', binary((a, b) => truth(a === b), 'bool')],
  ['Less', binary((a, b) => truth(a < b), 'bool')],
  ['Greater', binary((a, b) => truth(a > b), 'bool')],
  ['LessOrEqual', binary((a, b) => truth(a <= b), 'bool')],
  ['GreaterOrEqual', binary((a, b) => truth(a >= b), 'bool')],
  ['And', binary((a, b) => a & b, 'bool')],
  ['Or', binary((a, b) => a | b, 'bool')],
  ['ReduceProd', reduce((a, b) => a * b, 1n)],
  ['ReduceSum', reduce((a, b) => a + b, 0n)],
])

function shapeOp({ firstType, attributes }: ShapeOpContext): Ints | undefined {
  if (firstType?.kind !== 'tensor' || firstType.shape === undefined) return undefined
  if (firstType.shape.length > MAX_RANK) return undefined
  const rank = firstType.shape.length
  const start = clampAxis(Number(intOf(attributes(), 'start') ?? 0n), rank)
  const end = clampAxis(Number(intOf(attributes(), 'end') ?? BigInt(rank)), rank)
  const items = firstType.shape
    .slice(start, end)
    .map((dim) => (typeof dim === 'number' ? BigInt(dim) : undefined))
  return { dtype: 'int64', shape: [items.length], items }
}

function sizeOp({ firstType }: ShapeOpContext): Ints | undefined {
  if (firstType?.kind !== 'tensor' || firstType.shape === undefined) return undefined
  let size: bigint | undefined = 1n
  for (const dim of firstType.shape)
    size = typeof dim === 'number' && size !== undefined ? size * BigInt(dim) : undefined
  return { dtype: 'int64', shape: [], items: [size] }
}

const CASTS = new Map<bigint, Ints['dtype']>([
  [7n, 'int64'],
  [6n, 'int32'],
  [9n, 'bool'],
])

function castOp({ inputs: [data], attributes }: ShapeOpContext): Ints | undefined {
  const dtype = CASTS.get(intOf(attributes(), 'to') ?? 0n)
  if (data === undefined || dtype === undefined) return undefined
  const cast = (item: bigint): bigint => (dtype === 'bool' ? truth(item !== 0n) : wrap(dtype, item))
  return {
    dtype,
    shape: data.shape,
    items: data.items.map((item) => (item === undefined ? undefined : cast(item))),
  }
}

function gatherOp({ inputs: [data, indices], attributes }: ShapeOpContext): Ints | undefined {
  if (data?.shape.length !== 1 || indices === undefined) return undefined
  if (!isFirstAxis(intOf(attributes(), 'axis') ?? 0n)) return undefined
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

function sliceOp({ inputs, given, attributes }: ShapeOpContext): Ints | undefined {
  const data = inputs[0]
  if (data?.shape.length !== 1) return undefined
  const argument = (slot: number, name: string): readonly (bigint | undefined)[] | undefined | 'absent' =>
    given[slot] ? inputs[slot]?.items : (intsOf(attributes(), name) ?? 'absent')
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

function concatOp({ inputs, attributes }: ShapeOpContext): Ints | undefined {
  if (!isFirstAxis(intOf(attributes(), 'axis') ?? 0n)) return undefined
  if (inputs.length === 0 || inputs.length > MAX_MADE) return undefined
  if (!inputs.every((part) => part !== undefined && part.shape.length === 1)) return undefined
  if (inputs.reduce((sum, part) => sum + part!.items.length, 0) > MAX_MADE) return undefined
  const items = inputs.flatMap((part) => part!.items)
  return { dtype: inputs[0]!.dtype, shape: [items.length], items }
}

function unsqueezeOp(context: ShapeOpContext): Ints | undefined {
  const data = context.inputs[0]
  const axes = axesOf(context)
  if (data === undefined || axes === undefined || axes === 'absent') return undefined
  const rank = data.shape.length + axes.length
  const at = new Set(axes.map((axis) => (axis < 0 ? axis + rank : axis)))
  const rest = [...data.shape]
  const shape = Array.from({ length: rank }, (_, axis) => (at.has(axis) ? 1 : rest.shift()))
  return shape.every((dim) => dim !== undefined) ? { ...data, shape: shape as number[] } : undefined
}

function squeezeOp(context: ShapeOpContext): Ints | undefined {
  const data = context.inputs[0]
  const axes = axesOf(context)
  if (data === undefined || axes === undefined) return undefined
  const rank = data.shape.length
  const at = axes === 'absent' ? undefined : new Set(axes.map((axis) => (axis < 0 ? axis + rank : axis)))
  return { ...data, shape: data.shape.filter((dim, axis) => !(at === undefined ? dim === 1 : at.has(axis))) }
}

function reshapeOp({ inputs: [data, target], attributes }: ShapeOpContext): Ints | undefined {
  const wanted = target?.items ?? intsOf(attributes(), 'shape')
  if (data === undefined || wanted === undefined || !wanted.every((dim) => dim !== undefined))
    return undefined
  if (intOf(attributes(), 'allowzero') === 1n) return undefined
  const shape = wanted.map((dim, axis) => (dim === 0n ? (data.shape[axis] ?? 0) : Number(dim)))
  const fixed = shape.reduce((product, dim) => (dim === -1 ? product : product * dim), 1)
  const filled = shape.map((dim) => (dim === -1 ? data.items.length / fixed : dim))
  return filled.reduce((product, dim) => product * dim, 1) === data.items.length
    ? { ...data, shape: filled }
    : undefined
}

function expandOp({ inputs: [data, target] }: ShapeOpContext): Ints | undefined {
  if (data === undefined || target === undefined || !target.items.every((dim) => dim !== undefined))
    return undefined
  const shape = broadcastShape([data.shape, target.items.map(Number)])
  if (shape === undefined) return undefined
  const items = broadcastIndex(data.shape, shape).map((at) => data.items[at])
  return { dtype: data.dtype, shape, items }
}

function rangeOp({ inputs }: ShapeOpContext): Ints | undefined {
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

/** Range, Expand and ConstantOfShape make lists as long as they are told to. */
const MAX_MADE = 1024

function constantOfShapeOp({
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

function whereOp({ inputs: [condition, a, b] }: ShapeOpContext): Ints | undefined {
  if (condition === undefined || a === undefined || b === undefined) return undefined
  const shape = broadcastShape([condition.shape, a.shape, b.shape])
  if (shape === undefined) return undefined
  const [atCondition, atA, atB] = [condition, a, b].map((ints) => broadcastIndex(ints.shape, shape))
  const items = atCondition!.map((at, position) => {
    const chosen = condition.items[at]
    if (chosen === undefined) return undefined
    return chosen === 0n ? b.items[atB![position]!] : a.items[atA![position]!]
  })
  return { dtype: a.dtype, shape, items }
}

function unary(apply: (a: bigint) => bigint): ShapeOp {
  return ({ inputs: [data] }) => {
    if (data === undefined) return undefined
    const { dtype, shape } = data
    return {
      dtype,
      shape,
      items: data.items.map((item) => (item === undefined ? undefined : wrap(dtype, apply(item)))),
    }
  }
}

function binary(apply: (a: bigint, b: bigint) => bigint | undefined, result?: 'bool'): ShapeOp {
  return ({ inputs: [a, b] }) =>
    a === undefined || b === undefined ? undefined : combine(a, b, apply, result)
}

function variadic(apply: (a: bigint, b: bigint) => bigint): ShapeOp {
  return ({ inputs }) => {
    if (inputs.length > MAX_OPERANDS) return undefined
    let all = inputs[0]
    for (const next of inputs.slice(1)) {
      all = all === undefined || next === undefined ? undefined : combine(all, next, apply)
    }
    return all
  }
}

function combine(
  a: Ints,
  b: Ints,
  apply: (a: bigint, b: bigint) => bigint | undefined,
  result: Ints['dtype'] = a.dtype,
): Ints | undefined {
  const shape = broadcastShape([a.shape, b.shape])
  if (shape === undefined) return undefined
  const atB = broadcastIndex(b.shape, shape)
  const items = broadcastIndex(a.shape, shape).map((at, position) => {
    const [left, right] = [a.items[at], b.items[atB[position]!]]
    const item = left === undefined || right === undefined ? undefined : apply(left, right)
    return item === undefined ? undefined : wrap(result, item)
  })
  return { dtype: result, shape, items }
}

/** Over all entries of a list; other axes are data, not shapes. */
function reduce(apply: (a: bigint, b: bigint) => bigint, start: bigint): ShapeOp {
  return (context) => {
    const data = context.inputs[0]
    const axes = axesOf(context)
    if (data === undefined || data.shape.length !== 1 || axes === undefined) return undefined
    if (axes !== 'absent' && !(axes.length === 1 && isFirstAxis(BigInt(axes[0]!)))) return undefined
    if (axes === 'absent' && intOf(context.attributes(), 'noop_with_empty_axes') === 1n) return undefined
    let total: bigint | undefined = start
    for (const item of data.items)
      total = total === undefined || item === undefined ? undefined : apply(total, item)
    const keep = (intOf(context.attributes(), 'keepdims') ?? 1n) !== 0n
    return {
      dtype: data.dtype,
      shape: keep ? [1] : [],
      items: [total === undefined ? undefined : wrap(data.dtype, total)],
    }
  }
}

/** Axes are an attribute in older opsets and the second input in newer ones. */
function axesOf({ inputs, given, attributes }: ShapeOpContext): readonly number[] | undefined | 'absent' {
  const axes = given[1] ? inputs[1]?.items : (intsOf(attributes(), 'axes') ?? 'absent')
  if (axes === undefined || axes === 'absent') return axes
  return axes.length <= MAX_RANK && axes.every((axis) => axis !== undefined) ? axes.map(Number) : undefined
}

/** The common shape of broadcast operands; undefined if they do not fit or it is long. */
function broadcastShape(shapes: readonly (readonly number[])[]): readonly number[] | undefined {
  const rank = Math.max(...shapes.map((shape) => shape.length))
  const result: number[] = []
  for (let axis = 0; axis < rank; axis++) {
    const dims = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1).filter((dim) => dim !== 1)
    if (dims.some((dim) => dim !== dims[0])) return undefined
    result.push(dims[0] ?? 1)
  }
  return result.reduce((product, dim) => product * dim, 1) <= MAX_MADE ? result : undefined
}

/** For each entry of the broadcast shape, the entry of the operand that it shows. */
function broadcastIndex(operand: readonly number[], shape: readonly number[]): number[] {
  const count = shape.reduce((product, dim) => product * dim, 1)
  return Array.from({ length: count }, (_, position) => {
    let [rest, stride, at] = [position, 1, 0]
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const dim = operand[axis - shape.length + operand.length] ?? 1
      const index = rest % shape[axis]!
      rest = Math.floor(rest / shape[axis]!)
      at += dim === 1 ? 0 : index * stride
      stride *= dim
    }
    return at
  })
}

function wrap(dtype: Ints['dtype'], item: bigint): bigint {
  return dtype === 'int64' ? BigInt.asIntN(64, item) : dtype === 'int32' ? BigInt.asIntN(32, item) : item
}

function truth(condition: boolean): bigint {
  return condition ? 1n : 0n
}

function isFirstAxis(axis: bigint): boolean {
  return axis === 0n || axis === -1n
}

function clampAxis(axis: number, rank: number): number {
  return Math.max(0, Math.min(rank, axis < 0 ? axis + rank : axis))
}

function intOf(attributes: ReadonlyMap<string, AttributeValue>, name: string): bigint | undefined {
  const value = attributes.get(name)
  return value?.kind === 'int' ? value.value : undefined
}

function intsOf(
  attributes: ReadonlyMap<string, AttributeValue>,
  name: string,
): readonly bigint[] | undefined {
  const value = attributes.get(name)
  return value?.kind === 'ints' ? value.value : undefined
}
