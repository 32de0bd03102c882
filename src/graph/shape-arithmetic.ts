/** Shape arithmetic entry by entry, with broadcasting; overflow wraps as the runtime's does. */
import { attributeOf } from '../onnx/attributes.ts'
import { type Ints, MAX_MADE, type ShapeOp, type ShapeOpContext, axesOf, isFirstAxis } from './shape-op.ts'

export function castOp({ inputs: [data], attributes }: ShapeOpContext): Ints | undefined {
  const dtype = CASTS.get(attributeOf(attributes(), 'to', 'int') ?? 0n)
  if (data === undefined || dtype === undefined) return undefined
  const cast = (item: bigint): bigint => (dtype === 'bool' ? truth(item !== 0n) : wrap(dtype, item))
  return {
    dtype,
    shape: data.shape,
    items: data.items.map((item) => (item === undefined ? undefined : cast(item))),
  }
}

const CASTS = new Map<bigint, Ints['dtype']>([
  [7n, 'int64'],
  [6n, 'int32'],
  [9n, 'bool'],
])

export function expandOp({ inputs: [data, target] }: ShapeOpContext): Ints | undefined {
  if (data === undefined || target === undefined || !target.items.every((dim) => dim !== undefined))
    return undefined
  const shape = broadcastShape([data.shape, target.items.map(Number)])
  if (shape === undefined) return undefined
  const items = broadcastIndex(data.shape, shape).map((at) => data.items[at])
  return { dtype: data.dtype, shape, items }
}

export function whereOp({ inputs: [condition, a, b] }: ShapeOpContext): Ints | undefined {
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

export function unary(apply: (a: bigint) => bigint): ShapeOp {
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

export function binary(apply: (a: bigint, b: bigint) => bigint | undefined, result?: 'bool'): ShapeOp {
  return ({ inputs: [a, b] }) =>
    a === undefined || b === undefined ? undefined : combine(a, b, apply, result)
}

export function variadic(apply: (a: bigint, b: bigint) => bigint): ShapeOp {
  return ({ inputs }) => {
    if (inputs.length > MAX_OPERANDS) return undefined
    let all = inputs[0]
    for (const next of inputs.slice(1)) {
      all = all === undefined || next === undefined ? undefined : combine(all, next, apply)
    }
    return all
  }
}

/** Of Min and Max. */
const MAX_OPERANDS = 64

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
export function reduce(apply: (a: bigint, b: bigint) => bigint, start: bigint): ShapeOp {
  return (context) => {
    const data = context.inputs[0]
    const axes = axesOf(context)
    if (data === undefined || data.shape.length !== 1 || axes === undefined) return undefined
    if (axes !== 'absent' && !(axes.length === 1 && isFirstAxis(BigInt(axes[0]!)))) return undefined
    if (axes === 'absent' && attributeOf(context.attributes(), 'noop_with_empty_axes', 'int') === 1n)
      return undefined
    let total: bigint | undefined = start
    for (const item of data.items)
      total = total === undefined || item === undefined ? undefined : apply(total, item)
    const keep = (attributeOf(context.attributes(), 'keepdims', 'int') ?? 1n) !== 0n
    return {
      dtype: data.dtype,
      shape: keep ? [1] : [],
      items: [total === undefined ? undefined : wrap(data.dtype, total)],
    }
  }
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

export function truth(condition: boolean): bigint {
  return condition ? 1n : 0n
}
