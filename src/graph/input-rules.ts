/**
 * What operators ask of their arguments: (operator, slot) -> a domain.
 *
 * To add one: an entry in RULES under the operator's name (other domains as `domain.Operator`) and
 * the slot of the argument. A rule that cannot tell returns undefined.
 *
 * Arguments that decide shapes take what the declared output asks for, where that is known, and
 * else the plainest values that are valid: the shape as it is, whole slices, one repetition.
 */
import type { Argument } from './input-arguments.ts'
import * as axes from './input-axis-arguments.ts'
import * as blocks from './input-block-arguments.ts'
import type { InputDomain } from './input-domain.ts'
import {
  AXIS_SCALAR,
  BATCH_INDICES,
  CLASSES,
  ROIS_WITH_IMAGE,
  TOP_K,
  UNPOOL_INDICES,
  axisAttribute,
  distinctAlongAxis,
  distinctTuples,
  indices,
  tuples,
} from './input-index-arguments.ts'
import {
  BASE,
  EXPONENT,
  NON_ZERO,
  POSITIVE,
  POWER,
  PROBABILITY,
  QUANTISED,
  SCALE,
  SHIFT,
  UNIT,
  VARIANCE,
  ZERO_POINT,
} from './input-number-arguments.ts'
import { type Rule, between, constant, floatsBetween } from './input-rule.ts'
import {
  EMBED,
  KEY_LENGTHS,
  MASK,
  MASK_COMPLEMENT,
  MASK_INDEX,
  NO_PADDING,
  PAST_LENGTH_LIMIT,
  ROTARY_POSITIONS,
  TOTAL_LENGTH,
  lengths,
  recurrent,
} from './input-sequence-arguments.ts'
import * as shapes from './input-shape-arguments.ts'
import { KEYS, NUMERIC_TEXT } from './input-text-arguments.ts'

/** The domain that the operator asks for at this argument; undefined when anything goes. */
export function demandOf(argument: Argument): InputDomain | undefined {
  return Object.hasOwn(RULES, argument.operator)
    ? RULES[argument.operator]![argument.slot]?.(argument)
    : undefined
}

const scales = (slots: Readonly<Record<number, Rule>>): readonly (Rule | undefined)[] =>
  Array.from({ length: 10 }, (_, slot) => slots[slot])

const TRUE: Rule = constant(1, 'condition')

/** Two operands and a result, each with its scale and zero point. */
const QLINEAR = scales({ 1: SCALE, 2: ZERO_POINT, 4: SCALE, 5: ZERO_POINT, 6: SCALE, 7: ZERO_POINT })

const REDUCE_AXES: readonly (Rule | undefined)[] = [undefined, axes.reducedAxes]

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
  ReduceLogSum: [POSITIVE, axes.reducedAxes],
  ReduceLogSumExp: [EXPONENT, axes.reducedAxes],
  ReduceProd: [floatsBetween(0.5, 2, 'factor'), axes.reducedAxes],
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
  QLinearConv: QLINEAR,
  QLinearMatMul: QLINEAR,
  ConvInteger: [QUANTISED, QUANTISED, ZERO_POINT, ZERO_POINT],
  MatMulInteger: [QUANTISED, QUANTISED, ZERO_POINT, ZERO_POINT],
  'com.microsoft.QuantizeLinear': [undefined, SCALE, ZERO_POINT],
  'com.microsoft.DequantizeLinear': [QUANTISED, SCALE, ZERO_POINT],
  'com.microsoft.QLinearAdd': QLINEAR,
  'com.microsoft.QLinearMul': QLINEAR,
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
  Slice: [undefined, axes.sliceStarts, axes.sliceEnds, axes.sliceAxes, axes.sliceSteps],
  Pad: [undefined, axes.pads, undefined, axes.leadingAxes],
  Resize: [undefined, between(0, 1, 'region'), shapes.resizeScales, shapes.resizeSizes],
  Upsample: [undefined, shapes.resizeScales],
  TopK: [undefined, TOP_K],
  Split: [undefined, shapes.splitSizes],
  SplitToSequence: [undefined, shapes.splitSizes],
  Squeeze: [undefined, axes.squeezedAxes],
  Unsqueeze: [undefined, axes.insertedAxes],
  CumSum: [undefined, AXIS_SCALAR],
  CenterCropPad: [undefined, shapes.croppedSizes],
  AffineGrid: [undefined, shapes.gridSize],
  Col2Im: [undefined, blocks.imageShape, blocks.blockShape],
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
