/**
 * Rounding as nodes: a value and the storage of a chip -> the ONNX nodes that round it.
 *
 * Rounding is to nearest, ties to even, in every storage; the value keeps its dtype.
 *
 * | storage | nodes |
 * | --- | --- |
 * | float32 | Cast down and up, for float64 only |
 * | float16 | Cast down and up; beyond 65504 it is infinite. float64 goes by way of float32 |
 * | bfloat16 | Cast down and up; before opset 13, which has no such Cast, arithmetic in float64 that gives the same but for the sign of zero |
 * | int8 | QuantizeLinear and DequantizeLinear: one symmetric scale a tensor, so that the largest magnitude is 127 |
 *
 * The scale of int8 comes from the range that the reference run saw; without one (weights, values
 * in bodies of control flow, no reference) from the tensor itself, by nodes that run with the
 * model, so that no weight is read here. Numbers beyond the range saturate; there is no NaN.
 *
 * onnxruntime leaves pairs of Casts between float32 nodes alone when optimisation is off. Around
 * float16 nodes, which it runs in float32, it drops them all; there the value goes through a
 * sequence of one tensor, which it does not look through.
 */
import type { MessageWriter } from '../../bytes/wire-writer.ts'
import { type DType, onnxFromDtype } from '../../tensor/dtype.ts'
import { type Tensor, tensor } from '../../tensor/tensor.ts'
import type { SimStorage } from './chip.ts'
import { MICROSOFT, newNode } from './new-node.ts'
import type { FloatDType } from './stored-values.ts'

export interface SimRange {
  readonly min: number
  readonly max: number
}

/** What the nodes need from the model around them. */
export interface RoundingContext {
  readonly opset: number
  /** Whether the model computes in float16 itself. */
  readonly hasHalf: boolean
  /** A name that nothing has. */
  readonly freshName: (wish: string) => string
  /** The name of an initializer that holds a tensor; the same one for the same wish. */
  readonly constant: (wish: string, value: () => Tensor) => string
}

export interface RoundingRequest {
  readonly dtype: FloatDType
  readonly from: string
  readonly to: string
  readonly range?: SimRange | undefined
}

export function roundingNodes(
  storage: SimStorage,
  { dtype, from, to, range }: RoundingRequest,
  context: RoundingContext,
): MessageWriter[] {
  return chain(from, to, stepsOf(storage, dtype, range, context), context)
}

/** One dtype to another, as one node. */
export function castNode(from: string, to: string, dtype: DType): MessageWriter {
  return newNode('Cast', [from], [to], { to: onnxFromDtype(dtype) })
}

/** From here on a Cast knows bfloat16, and a sequence exists. */
const [OPSET_OF_BFLOAT16, OPSET_OF_SEQUENCE] = [13, 11]

type Step = (from: string, to: string) => MessageWriter[]

function stepsOf(
  storage: SimStorage,
  dtype: FloatDType,
  range: SimRange | undefined,
  context: RoundingContext,
): Step[] {
  switch (storage) {
    case 'float32':
      return [cast('float32'), cast(dtype)]
    case 'float16':
      return dtype === 'float16' ? hold(context) : [cast('float16'), ...hold(context), cast(dtype)]
    case 'bfloat16':
      if (context.opset >= OPSET_OF_BFLOAT16) return [cast('bfloat16'), cast(dtype)]
      return inFloat32(dtype, bfloat16Arithmetic(context))
    case 'int8':
      return inFloat32(dtype, [quantise(range, context)])
  }
}

/** At least one node, so that `to` exists even where there is nothing to do. */
function chain(from: string, to: string, steps: readonly Step[], context: RoundingContext): MessageWriter[] {
  if (steps.length === 0) return [newNode('Identity', [from], [to])]
  const names = steps.map((_, at) => (at === steps.length - 1 ? to : context.freshName(`${to}__step`)))
  return steps.flatMap((step, at) => step(at === 0 ? from : names[at - 1]!, names[at]!))
}

function cast(dtype: DType): Step {
  return (from, to) => [castNode(from, to, dtype)]
}

function inFloat32(dtype: FloatDType, steps: readonly Step[]): Step[] {
  return dtype === 'float32' ? [...steps] : [cast('float32'), ...steps, cast(dtype)]
}

/** Makes onnxruntime keep a float16 as such. */
function hold({ opset, hasHalf, freshName, constant }: RoundingContext): Step[] {
  if (!hasHalf || opset < OPSET_OF_SEQUENCE) return []
  return [
    (from, to) => {
      const sequence = freshName(`${to}__held`)
      const first = constant('sim__first', () => tensor('int64', [], BigInt64Array.of(0n)))
      return [
        newNode('SequenceConstruct', [from], [sequence]),
        newNode('SequenceAt', [sequence, first], [to]),
      ]
    },
  ]
}

/**
 * float32 -> bfloat16 -> float32 by arithmetic. Clip without bounds makes infinities the largest
 * float32, which rounds back to infinity. Adding and subtracting a large number rounds subnormals
 * to multiples of 2^-133; what is larger comes back unchanged by the Cast. Then Veltkamp's
 * splitting keeps 8 of the 53 bits of a double.
 */
function bfloat16Arithmetic({ freshName, constant }: RoundingContext): Step[] {
  const double = (wish: string, value: number): string =>
    constant(wish, () => tensor('float64', [], Float64Array.of(value)))
  const subnormal = double('sim__subnormal', 1.5 * 2 ** (52 - 133))
  const splitter = double('sim__splitter', 2 ** (53 - 8) + 1)
  return [
    (from, to) => [newNode('Clip', [from], [to])],
    cast('float64'),
    binary('Add', subnormal),
    binary('Sub', subnormal),
    cast('float32'),
    cast('float64'),
    (from, to) => {
      const [scaled, low] = [freshName(`${to}__scaled`), freshName(`${to}__low`)]
      return [
        newNode('Mul', [from, splitter], [scaled]),
        newNode('Sub', [scaled, from], [low]),
        newNode('Sub', [scaled, low], [to]),
      ]
    },
    cast('float32'),
  ]
}

function binary(op: string, other: string): Step {
  return (from, to) => [newNode(op, [from, other], [to])]
}

const LEVELS = 127
const MAX_FLOAT32 = (2 - 2 ** -23) * 2 ** 127
/** Keeps the scale of zeros a normal number. */
const MIN_MAGNITUDE = LEVELS * 2 ** -126

function quantise(range: SimRange | undefined, context: RoundingContext): Step {
  return (from, to) => {
    const { freshName, constant } = context
    const zero = constant('sim__zero_point', () => tensor('int8', [], Int8Array.of(0)))
    const quantised = freshName(`${to}__int8`)
    const { scale, nodes } = isUsable(range)
      ? { scale: constant(`${to}__scale`, () => scalar(scaleOf(range))), nodes: [] }
      : ownScale(from, to, context)
    return [
      ...nodes,
      newNode('QuantizeLinear', [from, scale, zero], [quantised], {}, MICROSOFT),
      newNode('DequantizeLinear', [quantised, scale, zero], [to], {}, MICROSOFT),
    ]
  }
}

function isUsable(range: SimRange | undefined): range is SimRange {
  return range !== undefined && !Number.isNaN(range.min) && !Number.isNaN(range.max)
}

function scaleOf({ min, max }: SimRange): number {
  const magnitude = Math.max(Math.abs(min), Math.abs(max), MIN_MAGNITUDE)
  return Math.min(magnitude, MAX_FLOAT32) / LEVELS
}

/** The scale of a tensor by what is in it, be it empty. Works in every opset that onnxruntime runs. */
function ownScale(
  from: string,
  to: string,
  { freshName, constant }: RoundingContext,
): { scale: string; nodes: MessageWriter[] } {
  const least = constant('sim__least', () => tensor('float32', [1, 1], Float32Array.of(MIN_MAGNITUDE)))
  const most = constant('sim__most', () => scalar(MAX_FLOAT32))
  const perLevel = constant('sim__per_level', () => scalar(1 / LEVELS))
  const [size, flat, all, largest, bounded, scale] = [
    'size',
    'flat',
    'all',
    'largest',
    'bounded',
    'scale',
  ].map((name) => freshName(`${to}__${name}`)) as [string, string, string, string, string, string]
  const nodes = [
    newNode('Abs', [from], [size]),
    newNode('Flatten', [size], [flat], { axis: 0 }),
    newNode('Concat', [flat, least], [all], { axis: 1 }),
    newNode('ReduceMax', [all], [largest], { keepdims: 0 }),
    newNode('Min', [largest, most], [bounded]),
    newNode('Mul', [bounded, perLevel], [scale]),
  ]
  return { scale, nodes }
}

function scalar(value: number): Tensor {
  return tensor('float32', [], Float32Array.of(value))
}
