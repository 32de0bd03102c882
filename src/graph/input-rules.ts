/**
 * What operators ask of their arguments: (operator, slot) -> a domain.
 *
 * To add one: an entry in RULES under the operator's name (other domains as `domain.Operator`) and
 * the slot of the argument. A rule that cannot tell returns undefined.
 *
 * Arguments that decide shapes take what the declared output asks for, where that is known, and
 * else the plainest values that are valid: the shape as it is, whole slices, one repetition.
 */
import { bitsPerElement, type DType } from '../tensor/dtype.ts'
import { type Argument, isFixed } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'
import * as shapes from './input-shape-arguments.ts'

type Rule = (argument: Argument) => InputDomain | undefined

/** The domain that the operator asks for at this argument; undefined when anything goes. */
export function demandOf(argument: Argument): InputDomain | undefined {
  return Object.hasOwn(RULES, argument.operator)
    ? RULES[argument.operator]![argument.slot]?.(argument)
    : undefined
}

export function range(low: number, high: number, because: string): InputDomain {
  return { kind: 'range', low, high, because }
}

const constant =
  (value: number, what: string): Rule =>
  ({ name }) => ({ kind: 'constant', values: [value], because: `${what} of ${name}` })

const between =
  (low: number, high: number, what: string): Rule =>
  ({ name }) =>
    range(low, high, `${what} of ${name}`)

const floatsBetween =
  (low: number, high: number, what: string): Rule =>
  (argument) =>
    isFloat(argument.dtype) ? between(low, high, what)(argument) : undefined

function isFloat(dtype: DType | undefined): boolean {
  return dtype !== undefined && /float/.test(dtype)
}

/** Indices below the size of an axis of another input. */
const indices =
  (data: number, axisOf: (argument: Argument) => number): Rule =>
  (argument) =>
    into(argument, argument.size(data, axisOf(argument)), 'indices')

function into({ name }: Argument, size: number | undefined, what: string): InputDomain | undefined {
  if (size === undefined || size === 0) return undefined
  return range(0, size, `${what} of ${name} into ${size} ${size === 1 ? 'row' : 'rows'}`)
}

/** Indices of tuples: below the smallest of the axes that they name. */
const tuples = (argument: Argument): InputDomain | undefined => {
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
const distinctTuples: Rule = (argument) => {
  const [axes, count] = [tupleAxes(argument), argument.count]
  if (axes === undefined || axes.length === 0 || count === undefined) return tuples(argument)
  const [places, wanted] = [axes.reduce((product, size) => product * size, 1), count / axes.length]
  if (count > MAX_LISTED || wanted > places) return tuples(argument)
  const step = Math.max(1, Math.floor(places / Math.max(1, wanted)))
  const values = Array.from({ length: wanted }, (_, at) => unravel(at * step, axes)).flat()
  return { kind: 'constant', values, because: `distinct places of ${argument.name}` }
}

/** Longer lists of indices are drawn, not listed. */
const MAX_LISTED = 65_536

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

const distinctAlongAxis: Rule = (argument) => {
  const axis = argument.int('axis') ?? 0
  const [size, count] = [argument.size(0, axis), argument.size(argument.slot, axis)]
  if (size === undefined || count === undefined || count > size) return into(argument, size, 'indices')
  const rank = argument.shape()!.length
  const because = `distinct places of ${argument.name}`
  return { kind: 'counting', start: 0, axis: axis < 0 ? axis + rank : axis, because }
}

const axisAttribute =
  (otherwise: number) =>
  (argument: Argument): number =>
    argument.int('axis') ?? otherwise

const firstAxis = (): number => 0

const NON_ZERO: Rule = ({ dtype, name }) =>
  isFloat(dtype)
    ? range(0.5, 40, `divisor of ${name}, away from 0`)
    : range(1, 40, `divisor of ${name}, not 0`)

const POSITIVE: Rule = floatsBetween(0.01, 40, 'positive argument')
const SCALE: Rule = floatsBetween(0.01, 1, 'positive scale')
const VARIANCE: Rule = floatsBetween(0.1, 4, 'variance')
const UNIT: Rule = floatsBetween(-0.99, 0.99, 'argument')
const PROBABILITY: Rule = between(0, 1, 'probability')
const MASK: Rule = constant(1, 'mask')
const TRUE: Rule = constant(1, 'condition')

/** e to the power of 40 is no float16, and of 10 is. */
const EXPONENT: Rule = floatsBetween(-10, 10, 'exponent')

const BASE: Rule = ({ dtype, name }) =>
  isFloat(dtype) ? range(0.5, 4, `base of ${name}`) : range(1, 4, `base of ${name}`)

const POWER: Rule = ({ dtype, name }) =>
  isFloat(dtype) ? range(-3, 3, `power of ${name}`) : range(0, 4, `power of ${name}`)

/** All values that the dtype has. */
const QUANTISED: Rule = ({ dtype, name }) => {
  if (dtype === undefined || !/^u?int(?:2|4|8|16)$/.test(dtype)) return undefined
  const bits = bitsPerElement(dtype)
  const low = dtype.startsWith('u') ? 0 : -(2 ** (bits - 1))
  return range(low, low + 2 ** bits, `quantised values of ${name}`)
}

const ZERO_POINT: Rule = (argument) => {
  const { dtype, name } = argument
  if (dtype === 'int32' || /float8|float4/.test(dtype ?? '')) return constant(0, 'zero point')(argument)
  if (dtype === undefined || !/^u?int(?:2|4|8|16)$/.test(dtype)) return undefined
  const bits = bitsPerElement(dtype)
  const low = dtype.startsWith('u') ? 2 ** (bits - 2) : -(2 ** (bits - 2))
  return range(low, low + 2 ** (bits - 1), `zero point of ${name}`)
}

/** Every sequence as long as the time axis. */
const lengths =
  (data: number, axis: (argument: Argument) => number): Rule =>
  (argument) => {
    const size = argument.size(data, axis(argument))
    return size === undefined
      ? undefined
      : { kind: 'constant', values: [size], because: `sequences of ${argument.name} have ${size} steps` }
  }

const recurrent: readonly (Rule | undefined)[] = Array.from({ length: 5 }, (_, slot) =>
  slot === 4 ? lengths(0, (argument) => (argument.int('layout') === 1 ? 1 : 0)) : undefined,
)

/** Fewer than there are; as many as the output is declared to have. */
const TOP_K: Rule = (argument) => {
  const axis = argument.int('axis') ?? -1
  const size = argument.size(0, axis)
  const wanted = argument.outputShape()?.at(axis) ?? (size === undefined ? 1 : Math.min(size, 3))
  return { kind: 'constant', values: [wanted], because: `${argument.name} takes ${wanted} of ${size ?? '?'}` }
}

const AXIS_SCALAR: Rule = (argument) => {
  const rank = argument.shape(0)?.length
  return rank === undefined ? undefined : constant(Math.max(0, rank - 1), 'axis')(argument)
}

const SHIFT: Rule = (argument) =>
  argument.dtype === undefined || isFloat(argument.dtype)
    ? undefined
    : between(0, bitsPerElement(argument.dtype), 'shift')(argument)

/** Rows of (image, x1, y1, x2, y2) over the whole picture. */
const ROIS_WITH_IMAGE: Rule = (argument) => {
  const [rows, height, width] = [argument.size(1, 0), argument.size(0, 2), argument.size(0, 3)]
  if (rows === undefined || rows > MAX_LISTED || height === undefined || width === undefined) return undefined
  const values = Array.from({ length: rows }, () => [0, 0, 0, width - 1, height - 1]).flat()
  return { kind: 'constant', values, because: `whole picture for ${argument.name}` }
}

const BATCH_INDICES: Rule = indices(0, firstAxis)

/** Text that reads as a number. */
const NUMERIC_TEXT: Rule = (argument) => {
  if (argument.dtype !== 'string' || argument.int('to') === STRING_CODE) return undefined
  const values = isFloatCode(argument.int('to')) ? ['0.5', '1', '-2.25', '3e1'] : ['0', '1', '2', '30']
  return { kind: 'choices', values, because: `text that ${argument.name} reads as numbers` }
}

const STRING_CODE = 8

function isFloatCode(code: number | undefined): boolean {
  return code === 1 || code === 10 || code === 11 || code === 16
}

const KEYS: Rule = (argument) => {
  const values =
    argument.texts('keys_strings') ?? argument.texts('cats_strings') ?? argument.texts('string_vocabulary')
  const known = values ?? argument.ints('keys_int64s') ?? argument.ints('cats_int64s')
  const isText = argument.dtype === 'string'
  if (known === undefined || known.length === 0 || isText !== (values !== undefined)) return undefined
  return { kind: 'choices', values: known.slice(0, MAX_KEYS), because: `keys of ${argument.name}` }
}

/** Some keys are as good as all of them. */
const MAX_KEYS = 64

/** Of an operand that a formula turns into a mask: `1 - mask`. */
const MASK_COMPLEMENT: Rule = (argument) => {
  const ones = argument.numbers(0)
  return ones?.length === 1 && ones[0] === 1 && argument.slot === 1
    ? { kind: 'constant', values: [1], because: `mask that ${argument.name} inverts` }
    : undefined
}

const UNPOOL_INDICES: Rule = (argument) => {
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

/** Token ids, then kinds of tokens; the tables are the third, fourth and fifth input. */
const EMBED: readonly (Rule | undefined)[] = [
  (argument) => into(argument, argument.size(2, 0), 'token ids'),
  (argument) => into(argument, argument.size(4, 0), 'token types'),
  undefined,
  undefined,
  undefined,
  undefined,
  undefined,
  MASK,
  (argument) => counting(argument, argument.size(3, 0)),
]

function counting(argument: Argument, rows: number | undefined): InputDomain | undefined {
  const shape = argument.shape()
  const length = shape?.at(-1)
  if (shape === undefined || length === undefined || (rows !== undefined && length > rows)) {
    return into(argument, rows, 'positions')
  }
  return { kind: 'counting', start: 0, axis: shape.length - 1, because: `positions of ${argument.name}` }
}

/** One length per row, or a mask per token. */
const MASK_INDEX: Rule = (argument) => {
  const [shape, batch, length] = [argument.shape(), argument.size(0, 0), argument.size(0, 1)]
  if (shape?.length !== 1 || length === undefined || shape[0] !== batch) return MASK(argument)
  return { kind: 'constant', values: [length], because: `sequences of ${argument.name} have ${length} steps` }
}

const ROTARY_POSITIONS =
  (positions: number, table: number): Rule =>
  (argument) => {
    const rows = argument.size(table, 0)
    return argument.shape(positions)?.length === 1
      ? { kind: 'constant', values: [0], because: `first position of ${argument.name}` }
      : counting(argument, rows)
  }

const KEY_LENGTHS: Rule = (argument) => {
  const [fresh, past] = [argument.size(0, 1), argument.has(3) ? argument.size(3, 2) : 0]
  if (fresh === undefined || past === undefined) return undefined
  return { kind: 'constant', values: [fresh + past - 1], because: `last key of ${argument.name}` }
}

const TOTAL_LENGTH: Rule = (argument) => {
  const [fresh, past] = [argument.size(0, 1), argument.has(3) ? argument.size(3, 2) : 0]
  if (fresh === undefined || past === undefined) return undefined
  return { kind: 'constant', values: [fresh + past], because: `keys of ${argument.name}` }
}

const PAST_LENGTH_LIMIT: Rule = (argument) => {
  const [room, fresh] = [argument.size(0, -2), argument.size(1, -2)]
  if (room === undefined || fresh === undefined || fresh > room) return undefined
  return range(0, room - fresh + 1, `where ${argument.name} writes ${fresh} of ${room} rows`)
}

const NO_PADDING: Rule = (argument) => {
  const keys = argument.size(1, -2)
  return keys === undefined
    ? undefined
    : { kind: 'constant', values: [keys], because: `all ${keys} keys of ${argument.name}` }
}

const CLASSES: Rule = (argument) => into(argument, argument.size(0, 1), 'classes')

const scales = (slots: Readonly<Record<number, Rule>>): readonly (Rule | undefined)[] =>
  Array.from({ length: 10 }, (_, slot) => slots[slot])

const REDUCE_AXES: readonly (Rule | undefined)[] = [undefined, shapes.reducedAxes]

const RULES: Readonly<Record<string, readonly (Rule | undefined)[]>> = {
  // indices
  Gather: [undefined, indices(0, axisAttribute(0))],
  GatherElements: [undefined, indices(0, axisAttribute(0))],
  GatherND: [undefined, tuples],
  ScatterElements: [undefined, distinctAlongAxis],
  Scatter: [undefined, distinctAlongAxis],
  ScatterND: [undefined, distinctTuples],
  TensorScatter: [undefined, undefined, PAST_LENGTH_LIMIT],
  MaxUnpool: [undefined, UNPOOL_INDICES, shapes.unpoolShape],
  RoiAlign: [undefined, undefined, BATCH_INDICES],
  MaxRoiPool: [undefined, ROIS_WITH_IMAGE],
  NegativeLogLikelihoodLoss: [undefined, CLASSES],
  SoftmaxCrossEntropyLoss: [undefined, CLASSES],
  'ai.onnx.ml.ArrayFeatureExtractor': [undefined, indices(0, () => -1)],
  SequenceAt: [undefined, constant(0, 'position')],
  SequenceErase: [undefined, constant(0, 'position')],
  SequenceInsert: [undefined, undefined, constant(0, 'position')],
  OneHot: [shapes.oneHotIndices, shapes.oneHotDepth],
  'com.microsoft.EmbedLayerNormalization': EMBED,
  'com.microsoft.GatherND': [undefined, tuples],
  'com.microsoft.GatherBlockQuantized': [undefined, indices(0, axisAttribute(0))],

  // sequences, attention
  LSTM: recurrent,
  GRU: recurrent,
  RNN: recurrent,
  ReverseSequence: [undefined, lengths(0, (argument) => argument.int('time_axis') ?? 0)],
  Attention: scales({ 3: MASK, 6: NO_PADDING }),
  RotaryEmbedding: [undefined, UNIT, UNIT, ROTARY_POSITIONS(3, 1)],
  'com.microsoft.Attention': scales({ 3: MASK_INDEX }),
  'com.microsoft.QAttention': scales({ 3: SCALE, 4: SCALE, 5: MASK_INDEX, 6: ZERO_POINT, 7: ZERO_POINT }),
  'com.microsoft.MultiHeadAttention': scales({ 4: MASK }),
  'com.microsoft.RotaryEmbedding': [undefined, ROTARY_POSITIONS(1, 2), UNIT, UNIT],
  'com.microsoft.GroupQueryAttention': scales({ 5: KEY_LENGTHS, 6: TOTAL_LENGTH, 7: UNIT, 8: UNIT }),

  // domains of functions
  Log: [POSITIVE],
  Sqrt: [floatsBetween(0, 40, 'argument')],
  Reciprocal: [NON_ZERO],
  Div: [undefined, NON_ZERO],
  Mod: [undefined, NON_ZERO],
  Pow: [BASE, POWER],
  Exp: [EXPONENT],
  Sinh: [EXPONENT],
  Cosh: [EXPONENT],
  ReduceLogSum: [POSITIVE, shapes.reducedAxes],
  ReduceLogSumExp: [EXPONENT, shapes.reducedAxes],
  ReduceProd: [floatsBetween(0.5, 2, 'factor'), shapes.reducedAxes],
  Acos: [UNIT],
  Asin: [UNIT],
  Atanh: [UNIT],
  Acosh: [floatsBetween(1, 40, 'argument')],
  Tan: [floatsBetween(-1.5, 1.5, 'argument')],
  BitShift: [undefined, SHIFT],
  Sub: [undefined, MASK_COMPLEMENT],
  BatchNormalization: [undefined, undefined, undefined, undefined, VARIANCE],
  Bernoulli: [PROBABILITY],
  Multinomial: [floatsBetween(-4, 0, 'log-probability')],
  Dropout: [undefined, constant(0.5, 'ratio'), constant(0, 'training mode')],
  GridSample: [undefined, floatsBetween(-1, 1, 'grid')],

  // quantisation
  QuantizeLinear: [undefined, SCALE, ZERO_POINT],
  DequantizeLinear: [QUANTISED, SCALE, ZERO_POINT],
  QLinearConv: scales({ 1: SCALE, 2: ZERO_POINT, 4: SCALE, 5: ZERO_POINT, 6: SCALE, 7: ZERO_POINT }),
  QLinearMatMul: scales({ 1: SCALE, 2: ZERO_POINT, 4: SCALE, 5: ZERO_POINT, 6: SCALE, 7: ZERO_POINT }),
  ConvInteger: [QUANTISED, QUANTISED, ZERO_POINT, ZERO_POINT],
  MatMulInteger: [QUANTISED, QUANTISED, ZERO_POINT, ZERO_POINT],
  'com.microsoft.QuantizeLinear': [undefined, SCALE, ZERO_POINT],
  'com.microsoft.DequantizeLinear': [QUANTISED, SCALE, ZERO_POINT],
  'com.microsoft.QLinearAdd': scales({
    1: SCALE,
    2: ZERO_POINT,
    4: SCALE,
    5: ZERO_POINT,
    6: SCALE,
    7: ZERO_POINT,
  }),
  'com.microsoft.QLinearMul': scales({
    1: SCALE,
    2: ZERO_POINT,
    4: SCALE,
    5: ZERO_POINT,
    6: SCALE,
    7: ZERO_POINT,
  }),
  'com.microsoft.MatMulNBits': [undefined, undefined, SCALE],
  'com.microsoft.DynamicQuantizeMatMul': [undefined, undefined, SCALE, ZERO_POINT],
  'com.microsoft.MatMulIntegerToFloat': scales({ 2: SCALE, 3: SCALE, 4: ZERO_POINT, 5: ZERO_POINT }),

  // control flow
  If: [TRUE],
  Loop: [constant(3, 'trip count'), TRUE],

  // shapes, axes, counts
  Reshape: [undefined, shapes.reshapeTarget],
  Expand: [undefined, shapes.expandTarget],
  Tile: [undefined, shapes.repeats],
  ConstantOfShape: [shapes.filledShape],
  Range: [shapes.rangeStart, shapes.rangeLimit, shapes.rangeDelta],
  Slice: [undefined, shapes.sliceStarts, shapes.sliceEnds, shapes.sliceAxes, shapes.sliceSteps],
  Pad: [undefined, shapes.pads, undefined, shapes.leadingAxes],
  Resize: [undefined, between(0, 1, 'region'), shapes.resizeScales, shapes.resizeSizes],
  Upsample: [undefined, shapes.resizeScales],
  TopK: [undefined, TOP_K],
  Split: [undefined, shapes.splitSizes],
  SplitToSequence: [undefined, shapes.splitSizes],
  Squeeze: [undefined, shapes.squeezedAxes],
  Unsqueeze: [undefined, shapes.insertedAxes],
  CumSum: [undefined, AXIS_SCALAR],
  CenterCropPad: [undefined, shapes.croppedSizes],
  AffineGrid: [undefined, shapes.gridSize],
  Col2Im: [undefined, shapes.imageShape, shapes.blockShape],
  Trilu: [undefined, constant(0, 'diagonal')],
  NonMaxSuppression: [
    between(0, 1, 'boxes'),
    between(0, 1, 'scores'),
    constant(3, 'boxes per class'),
    constant(0.5, 'overlap'),
    constant(0, 'smallest score'),
  ],
  DFT: [undefined, shapes.transformLength, constant(1, 'axis')],
  STFT: [undefined, shapes.frameStep, undefined, shapes.frameLength],
  HannWindow: [constant(10, 'size')],
  HammingWindow: [constant(10, 'size')],
  BlackmanWindow: [constant(10, 'size')],
  MelWeightMatrix: [
    constant(8, 'bins'),
    constant(16, 'transform length'),
    constant(8192, 'sample rate'),
    constant(0, 'lowest frequency'),
    constant(4096, 'highest frequency'),
  ],
  ...Object.fromEntries(
    ['Sum', 'Mean', 'Max', 'Min', 'L1', 'L2', 'SumSquare'].map((kind) => [`Reduce${kind}`, REDUCE_AXES]),
  ),

  // text and tables
  Cast: [NUMERIC_TEXT],
  'ai.onnx.ml.LabelEncoder': [KEYS],
  'ai.onnx.ml.OneHotEncoder': [KEYS],
  'ai.onnx.ml.CategoryMapper': [KEYS],
}
