/**
 * What a graph demands of the open dimensions of its inputs: weights, windows, partners.
 *
 * One walk over the nodes in order, through bodies too, with the axes of each value as far as they
 * are known. No shape inference: operators that are not listed end the trail, and what types say of
 * their outputs starts it again.
 */
import type { Tensor } from '../tensor/tensor.ts'
import { isConstant } from '../onnx/constant.ts'
import type { Dim } from '../onnx/value-type.ts'
import { foldShapes } from './fold-shapes.ts'
import type { TypeTable } from './infer-types.ts'
import { Argument } from './input-arguments.ts'
import { after, type Axis, commonDivisor, Demands, openAxis, productAxis, sumAxis } from './input-axes.ts'
import { topologicalOrder } from './order.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

type Axes = readonly Axis[]

/** The dimension of an input: its symbol, or its place where it has none. */
export function dimId(input: string, axis: number, dim: Dim): string {
  return typeof dim === 'string' ? `symbol ${dim}` : `axis ${axis} of ${input}`
}

export function demandsOf(graph: ScopedGraph, types: TypeTable): Demands {
  const trail = new Trail(graph, types)
  trail.graph(graph)
  return trail.demands
}

/** Shapes of values that types leave open, as far as they follow; open dimensions are undefined. */
export function followedShapes(graph: ScopedGraph, types: TypeTable): Map<Value, (number | undefined)[]> {
  const trail = new Trail(graph, types)
  trail.graph(graph)
  return new Map(
    [...trail.axes].map(([value, axes]) => [
      value,
      axes.map((axis) => (typeof axis === 'number' ? axis : undefined)),
    ]),
  )
}

class Trail {
  readonly demands = new Demands()
  readonly #types: TypeTable
  readonly #folded: ReadonlyMap<Value, Tensor>
  readonly axes = new Map<Value, Axes>()
  /** Short lists of sizes, as shape arithmetic makes them. */
  readonly #lists = new Map<Value, Axes>()
  readonly #symbols = new Set<string>()

  constructor(graph: ScopedGraph, types: TypeTable) {
    this.#types = types
    this.#folded = foldShapes(graph, types)
    for (const value of graph.inputs) {
      const type = types.get(value)
      if (type?.kind !== 'tensor' || type.shape === undefined) continue
      for (const dim of type.shape) if (typeof dim === 'string') this.#symbols.add(dim)
      this.axes.set(
        value,
        type.shape.map((dim, axis) =>
          typeof dim === 'number' ? dim : openAxis(dimId(value.written, axis, dim)),
        ),
      )
    }
  }

  graph(graph: ScopedGraph): void {
    for (const node of topologicalOrder(graph)) {
      if (isConstant(node.entry)) continue
      this.#link(node)
      for (const body of node.subgraphs) this.graph(body)
      const made = node.entry.opType === 'If' ? this.#branch(node) : this.#step(node)
      for (const [slot, value] of node.outputs.entries()) {
        if (value !== undefined) this.#set(value, made?.[slot])
      }
    }
  }

  #step(node: GraphNode): readonly (Axes | undefined)[] | undefined {
    const argument = new Argument(node, 0, this.#types, this.#folded)
    const listOf = (slot: number): Axes | undefined => this.#listOf(argument, slot)
    const list = listMade(argument, listOf, (value) => this.#axesOf(value))
    const output = node.outputs[0]
    if (list !== undefined && output !== undefined) this.#lists.set(output, list)
    return new NodeStep(argument, this.demands, (value) => this.#axesOf(value), listOf).outputs()
  }

  #listOf(argument: Argument, slot: number): Axes | undefined {
    const value = argument.node.inputs[slot]
    const list = value === undefined ? undefined : this.#lists.get(value)
    return list ?? argument.numbers(slot)
  }

  /** What the first branch with a trail gives. */
  #branch(node: GraphNode): readonly (Axes | undefined)[] {
    const bodies = node.subgraphs.toSorted((a, b) => Number(isThen(b)) - Number(isThen(a)))
    const made: (Axes | undefined)[] = []
    for (const { outputs } of bodies) {
      for (const [slot, value] of outputs.entries()) made[slot] ??= this.#axesOf(value)
    }
    return made
  }

  #link(node: GraphNode): void {
    if (node.entry.opType !== 'Loop') return
    for (const body of node.subgraphs) {
      for (const [slot, formal] of body.inputs.entries()) {
        const outer = slot < 2 ? undefined : node.inputs[slot]
        const axes = outer === undefined ? undefined : this.#axesOf(outer)
        if (axes !== undefined) this.axes.set(formal, axes)
      }
    }
  }

  #set(value: Value, made: Axes | undefined): void {
    const declared = this.#declared(value)
    if (made !== undefined && declared !== undefined && made.length === declared.length) {
      for (const [at, axis] of declared.entries()) this.demands.equal(made[at], axis)
      this.axes.set(
        value,
        made.map((axis, at) => axis ?? declared[at]),
      )
    } else if (made !== undefined || declared !== undefined) this.axes.set(value, (made ?? declared)!)
  }

  #axesOf(value: Value): Axes | undefined {
    const known = this.axes.get(value)
    if (known !== undefined) return known
    const declared = this.#declared(value)
    if (declared !== undefined) this.axes.set(value, declared)
    return declared
  }

  #declared(value: Value): Axes | undefined {
    const type = this.#types.get(value)
    if (type?.kind !== 'tensor') return undefined
    return type.shape?.map((dim) => {
      if (typeof dim === 'number') return dim
      return typeof dim === 'string' && this.#symbols.has(dim) ? openAxis(dimId('', 0, dim)) : undefined
    })
  }
}

function isThen({ owner }: ScopedGraph): boolean {
  return owner?.attribute === 'then_branch'
}

/** One node: the axes of its outputs, and what it demands of those of its inputs. */
class NodeStep {
  readonly #node: Argument
  readonly #demands: Demands
  readonly #axesOf: (value: Value) => Axes | undefined

  readonly #listOf: (slot: number) => Axes | undefined

  constructor(
    node: Argument,
    demands: Demands,
    axesOf: (value: Value) => Axes | undefined,
    listOf: (slot: number) => Axes | undefined,
  ) {
    this.#node = node
    this.#listOf = listOf
    this.#demands = demands
    this.#axesOf = axesOf
  }

  outputs(): readonly (Axes | undefined)[] | undefined {
    const { operator } = this.#node
    if (SAME_SHAPE.has(operator)) return this.#sameShape()
    if (BROADCAST.has(operator)) return [this.#broadcast()]
    const rule = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined
    return rule === undefined ? undefined : this.#apply(rule)
  }

  #apply(rule: Operator): readonly (Axes | undefined)[] | undefined {
    const inputs = this.#node.node.inputs.map((value) =>
      value === undefined ? undefined : this.#axesOf(value),
    )
    return rule({ node: this.#node, demands: this.#demands, inputs, listOf: this.#listOf })
  }

  #sameShape(): readonly (Axes | undefined)[] {
    const axes = this.#input(0)
    const channels = CHANNEL_AXIS[this.#node.operator]
    const weights = this.#input(1)
    if (channels !== undefined && axes !== undefined && weights?.length === 1) {
      this.#demands.equal(axes.at(channels), weights[0])
    }
    return [axes]
  }

  #input(slot: number): Axes | undefined {
    const value = this.#node.node.inputs[slot]
    return value === undefined ? undefined : this.#axesOf(value)
  }

  #broadcast(): Axes | undefined {
    const operands = [...new Set(this.#node.node.inputs)].flatMap((value) =>
      value === undefined ? [] : [this.#axesOf(value)],
    )
    if (!operands.every((axes) => axes !== undefined)) return undefined
    return broadcast(operands, this.#demands)
  }
}

function broadcast(operands: readonly Axes[], demands: Demands): Axes {
  const rank = operands.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: rank }, (_, at) => {
    const own = operands.map((axes) => (at - rank + axes.length < 0 ? 1 : axes[at - rank + axes.length]))
    const wide = own.filter((axis) => axis !== 1)
    const known = wide.filter((axis) => axis !== undefined)
    for (const axis of known.slice(1)) demands.equal(known[0], axis)
    return wide.length === 0 ? 1 : (known.find((axis) => typeof axis === 'number') ?? known[0])
  })
}

const SAME_SHAPE = new Set(
  `Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Dropout Elu Erf Exp Floor Gelu HardSigmoid
   HardSwish Identity LeakyRelu Log LogSoftmax LpNormalization LRN MeanVarianceNormalization Mish Neg Not
   Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
   BatchNormalization InstanceNormalization GroupNormalization LayerNormalization RMSNormalization
   SimplifiedLayerNormalization QuantizeLinear DequantizeLinear CumSum ReverseSequence Trilu CastLike
   com.microsoft.FastGelu com.microsoft.Gelu com.microsoft.QuickGelu com.microsoft.BiasGelu
   com.microsoft.QuantizeLinear com.microsoft.DequantizeLinear ImageScaler`
    .split(/\s+/)
    .filter((name) => name !== ''),
)

/** Where a list of weights has one entry per channel. */
const CHANNEL_AXIS: Readonly<Record<string, number>> = {
  BatchNormalization: 1,
  InstanceNormalization: 1,
  LayerNormalization: -1,
  RMSNormalization: -1,
  SimplifiedLayerNormalization: -1,
}

const BROADCAST = new Set(
  `Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul
   Or Pow PRelu Sub Sum Where Xor`.split(/\s+/),
)

interface Step {
  readonly node: Argument
  readonly demands: Demands
  readonly inputs: readonly (Axes | undefined)[]
  /** An input as a list of sizes, where it is one. */
  readonly listOf: (slot: number) => Axes | undefined
}

type Operator = (step: Step) => readonly (Axes | undefined)[] | undefined

const OPERATORS: Readonly<Record<string, Operator>> = {
  MatMul: matMul,
  MatMulInteger: matMul,
  'com.microsoft.FusedMatMul': (step) =>
    step.node.int('transA') || step.node.int('transB') ? undefined : matMul(step),
  Gemm: gemm,
  Conv: convolution,
  ConvInteger: convolution,
  MaxPool: (step) => [window(step, step.inputs[0], step.node.ints('kernel_shape') ?? [])],
  AveragePool: (step) => [window(step, step.inputs[0], step.node.ints('kernel_shape') ?? [])],
  LpPool: (step) => [window(step, step.inputs[0], step.node.ints('kernel_shape') ?? [])],
  ConvTranspose: ({ inputs: [data, weights], demands }) => {
    demands.equal(data?.[1], weights?.[0])
    return undefined
  },
  GlobalAveragePool: globalPool,
  GlobalMaxPool: globalPool,
  Transpose: ({ inputs: [data], node }) => {
    const order = node.ints('perm')
    return [data && (order?.map((axis) => data[axis]) ?? data.toReversed())]
  },
  Unsqueeze: unsqueeze,
  Squeeze: squeeze,
  Flatten: ({ inputs: [data], node }) => {
    if (data === undefined) return undefined
    const axis = node.int('axis') ?? 1
    const at = axis < 0 ? axis + data.length : axis
    return [[productAxis(data.slice(0, at)), productAxis(data.slice(at))]]
  },
  Reshape: reshape,
  Concat: concat,
  Split: ({ inputs: [data], node }) => {
    const axis = node.int('axis') ?? 0
    return node.node.outputs.map((_, slot) =>
      data?.map((size, at) => (at === normal(axis, data.length) ? node.outputShape(slot)?.[at] : size)),
    )
  },
  Gather: ({ inputs: [data, indices], node }) => {
    if (data === undefined || indices === undefined) return undefined
    const axis = normal(node.int('axis') ?? 0, data.length)
    return [[...data.slice(0, axis), ...indices, ...data.slice(axis + 1)]]
  },
  Slice: ({ inputs: [data], node }) => {
    const axes = node.numbers(3) ?? node.ints('axes')
    if (data === undefined || axes === undefined) return undefined
    const sliced = new Set(axes.map((axis) => normal(axis, data.length)))
    return [data.map((size, at) => (sliced.has(at) ? undefined : size))]
  },
  Pad: pad,
  ...Object.fromEntries(
    ['Sum', 'Mean', 'Max', 'Min', 'Prod', 'L1', 'L2', 'SumSquare', 'LogSum', 'LogSumExp'].map((kind) => [
      `Reduce${kind}`,
      reduce,
    ]),
  ),
  ArgMax: reduceOne,
  ArgMin: reduceOne,
  LSTM: recurrent,
  GRU: recurrent,
  RNN: recurrent,
  'com.microsoft.EmbedLayerNormalization': ({ inputs: [ids, types, words, positions], demands }) => {
    if (ids === undefined) return undefined
    for (const [at, axis] of ids.entries()) demands.equal(axis, types?.[at])
    return positions === undefined ? undefined : [[...ids, words?.[1]]]
  },
  'com.microsoft.SkipLayerNormalization': ({ inputs: [data, skip], demands }) => [
    data && skip && data.length === skip.length ? broadcast([data, skip], demands) : data,
  ],
}

function matMul({ inputs: [a, b], demands }: Step): readonly (Axes | undefined)[] | undefined {
  if (a === undefined || b === undefined || a.length === 0 || b.length === 0) return undefined
  demands.equal(a.at(-1), b.length === 1 ? b[0] : b.at(-2))
  if (a.length === 1 || b.length === 1) return undefined
  return [[...broadcast([a.slice(0, -2), b.slice(0, -2)], demands), a.at(-2), b.at(-1)]]
}

function gemm({ inputs: [a, b], demands, node }: Step): readonly (Axes | undefined)[] | undefined {
  if (a?.length !== 2 || b?.length !== 2) return undefined
  const [rows, inner] = node.int('transA') === 1 ? [a[1], a[0]] : [a[0], a[1]]
  const [partner, columns] = node.int('transB') === 1 ? [b[1], b[0]] : [b[0], b[1]]
  demands.equal(inner, partner)
  return [[rows, columns]]
}

function convolution(step: Step): readonly (Axes | undefined)[] | undefined {
  const { inputs, demands, node } = step
  const [data, weights] = inputs
  if (data === undefined || weights === undefined) return undefined
  const group = node.int('group') ?? 1
  const perGroup = weights[1]
  if (typeof perGroup === 'number') demands.equal(data[1], perGroup * group)
  const kernel =
    node.ints('kernel_shape') ?? weights.slice(2).map((size) => (typeof size === 'number' ? size : 1))
  const out = window(step, data, kernel)
  return [out && [out[0], weights[0], ...out.slice(2)]]
}

/** Every window must fit at least once. */
function window(
  { demands, node }: Step,
  data: Axes | undefined,
  kernel: readonly number[],
): Axes | undefined {
  if (data === undefined || data.length !== kernel.length + 2) return undefined
  const [strides, dilations, pads] = [node.ints('strides'), node.ints('dilations'), node.ints('pads')]
  const auto = node.text('auto_pad') ?? 'NOTSET'
  return data.map((size, axis) => {
    if (axis < 2) return size
    const at = axis - 2
    const stride = strides?.[at] ?? 1
    if (auto.startsWith('SAME')) return after(size, { kind: 'window', kernel: 1, stride, pads: 0 })
    const span = (kernel[at]! - 1) * (dilations?.[at] ?? 1) + 1
    const padding = auto === 'VALID' ? 0 : (pads?.[at] ?? 0) + (pads?.[at + kernel.length] ?? 0)
    demands.atLeast(size, span - padding)
    return node.int('ceil_mode') === 1
      ? undefined
      : after(size, { kind: 'window', kernel: span, stride, pads: padding })
  })
}

/** Reflections are shorter than what they reflect. */
function pad({ inputs: [data], node, demands }: Step): readonly (Axes | undefined)[] | undefined {
  const pads = node.numbers(1) ?? node.ints('pads') ?? torchPads(node)
  const axes = node.numbers(3)
  if (data === undefined || pads === undefined || pads.length !== 2 * (axes?.length ?? data.length))
    return undefined
  const isReflection = node.text('mode') === 'reflect'
  return [
    data.map((size, axis) => {
      const at = axes === undefined ? axis : axes.findIndex((other) => normal(other, data.length) === axis)
      if (at === -1) return size
      const [start, end] = [pads[at]!, pads[at + pads.length / 2]!]
      if (isReflection) demands.atLeast(size, Math.max(start, end) + 1)
      return start + end === 0
        ? size
        : after(size, { kind: 'window', kernel: 1, stride: 1, pads: start + end })
    }),
  ]
}

/**
 * torch lists pads from the last axis on, start and end in turn, and its exporter turns the list
 * around in the graph: Reshape to pairs, Slice backwards, Transpose, Reshape, Cast.
 */
function torchPads(argument: Argument): readonly number[] | undefined {
  let value = argument.node.inputs[1]
  const way: string[] = []
  while (value?.origin.kind === 'node' && way.length < TORCH_WAY.length) {
    way.push(value.origin.node.entry.opType)
    value = value.origin.node.inputs[0]
  }
  const pairs = value === undefined || way.join() !== TORCH_WAY.join() ? undefined : argument.numbersOf(value)
  if (pairs === undefined) return undefined
  const starts = pairs.filter((_, at) => at % 2 === 0).toReversed()
  const ends = pairs.filter((_, at) => at % 2 === 1).toReversed()
  return [...starts, ...ends]
}

const TORCH_WAY = ['Cast', 'Reshape', 'Transpose', 'Slice', 'Reshape']

function reduce({ inputs: [data], node }: Step): readonly (Axes | undefined)[] | undefined {
  const axes = node.has(1) ? node.numbers(1) : (node.ints('axes') ?? [])
  if (data === undefined || axes === undefined) return undefined
  if (axes.length === 0 && node.int('noop_with_empty_axes') === 1) return [data]
  return [reduced(data, axes.length === 0 ? data.map((_, axis) => axis) : axes, node)]
}

function reduceOne({ inputs: [data], node }: Step): readonly (Axes | undefined)[] | undefined {
  return [data && reduced(data, [node.int('axis') ?? 0], node)]
}

function reduced(data: Axes, axes: readonly number[], node: Argument): Axes {
  const gone = new Set(axes.map((axis) => normal(axis, data.length)))
  const keeps = (node.int('keepdims') ?? 1) !== 0
  return keeps
    ? data.map((size, axis) => (gone.has(axis) ? 1 : size))
    : data.filter((_, axis) => !gone.has(axis))
}

function globalPool({ inputs: [data] }: Step): readonly (Axes | undefined)[] {
  return [data?.map((size, axis) => (axis < 2 ? size : 1))]
}

function unsqueeze({ inputs: [data], node }: Step): readonly (Axes | undefined)[] | undefined {
  const axes = node.numbers(1) ?? node.ints('axes')
  if (data === undefined || axes === undefined) return undefined
  const rank = data.length + axes.length
  const inserted = new Set(axes.map((axis) => normal(axis, rank)))
  const rest = [...data]
  return [Array.from({ length: rank }, (_, axis) => (inserted.has(axis) ? 1 : rest.shift()))]
}

function squeeze({ inputs: [data], node, demands }: Step): readonly (Axes | undefined)[] | undefined {
  const axes = node.numbers(1) ?? node.ints('axes')
  if (data === undefined || axes === undefined) return undefined
  const removed = new Set(axes.map((axis) => normal(axis, data.length)))
  for (const axis of removed) demands.exactly(data[axis], 1)
  return [data.filter((_, axis) => !removed.has(axis))]
}

function reshape(step: Step): readonly (Axes | undefined)[] | undefined {
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

function concat({ inputs, node, demands }: Step): readonly (Axes | undefined)[] | undefined {
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

/** X, W, R, B, sequence_lens, initial_h, initial_c. */
function recurrent({ inputs, node, demands }: Step): readonly (Axes | undefined)[] | undefined {
  const [data, weights, again] = inputs
  const isBatchFirst = node.int('layout') === 1
  demands.equal(data?.[2], weights?.[2])
  const [time, batch] = isBatchFirst ? [data?.[1], data?.[0]] : [data?.[0], data?.[1]]
  for (const state of [inputs[5], inputs[6]]) {
    if (state?.length !== 3) continue
    demands.equal(isBatchFirst ? state[0] : state[1], batch)
    demands.equal(isBatchFirst ? state[1] : state[0], weights?.[0])
    demands.equal(state[2], again?.[2])
  }
  demands.equal(inputs[4]?.[0], batch)
  return isBatchFirst ? undefined : [data && [time, weights?.[0], batch, again?.[2]]]
}

/** Longer lists are data, not sizes. */
const MAX_LIST = 1024

/** The list of sizes that a node of shape arithmetic gives. */
function listMade(
  node: Argument,
  listOf: (slot: number) => Axes | undefined,
  axesOf: (value: Value) => Axes | undefined,
): Axes | undefined {
  const data = node.node.inputs[0]
  switch (node.operator) {
    case 'Shape': {
      const axes = data && axesOf(data)
      return axes?.slice(node.int('start') ?? 0, node.int('end') ?? axes.length)
    }
    case 'Cast':
    case 'Identity':
    case 'Unsqueeze':
    case 'Squeeze':
      return listOf(0)
    case 'Gather': {
      const list = listOf(0)
      return list && node.numbers(1)?.map((at) => list.at(at))
    }
    case 'Slice': {
      const [start, end, step] = [1, 2, 4].map((slot) => node.numbers(slot)?.[0])
      if (start === undefined || end === undefined || (step ?? 1) !== 1) return undefined
      return listOf(0)?.slice(start, end)
    }
    case 'Concat': {
      const lists = node.node.inputs.map((_, slot) => listOf(slot))
      if (!lists.every((list) => list !== undefined)) return undefined
      return lists.reduce((sum, { length }) => sum + length, 0) > MAX_LIST ? undefined : lists.flat()
    }
    case 'Mul':
    case 'Add': {
      const [a, b] = [listOf(0), listOf(1)]
      if (a?.length !== 1 || b?.length !== 1) return undefined
      return [node.operator === 'Mul' ? productAxis([a[0], b[0]]) : sumAxis([a[0], b[0]])]
    }
    default:
      return undefined
  }
}

function normal(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis
}
