/**
 * What operators make of the axes of their inputs, and demand of them: by operator.
 *
 * To add one: its name in SAME_SHAPE or BROADCAST, or a rule in AXIS_RULES (other domains as
 * `domain.Operator`). A rule that cannot tell returns undefined, and the trail ends there.
 */
import { concat, reduce, reduceOne, reshape, squeeze, unsqueeze } from './axis-moves.ts'
import { gemm, matMul, recurrent } from './axis-products.ts'
import { type Axes, type AxisRule, broadcast, normal } from './axis-step.ts'
import { convolution, globalPool, pad, window } from './axis-windows.ts'
import { Argument } from './input-arguments.ts'
import { Demands, productAxis } from './input-axes.ts'
import type { Value } from './resolve.ts'

/** One node: the axes of its outputs, and what it demands of those of its inputs. */
export class NodeStep {
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
    const rule = Object.hasOwn(AXIS_RULES, operator) ? AXIS_RULES[operator] : undefined
    return rule === undefined ? undefined : this.#apply(rule)
  }

  #apply(rule: AxisRule): readonly (Axes | undefined)[] | undefined {
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

const AXIS_RULES: Readonly<Record<string, AxisRule>> = {
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
  GridSample: ({ inputs: [data, grid], demands }) => {
    demands.equal(data?.[0], grid?.[0])
    return [data && grid && [...data.slice(0, 2), ...grid.slice(1, -1)]]
  },
  RoiAlign: ({ inputs: [, boxes, indices], demands }) => {
    demands.equal(boxes?.[0], indices?.[0])
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
