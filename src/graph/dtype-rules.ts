/**
 * Element types of an operator's outputs, from those of its inputs.
 *
 * Only dtypes: shapes come from declarations or from a runtime. Most operators give what
 * their first input has; the table lists the others. A rule that needs more than the table
 * (control flow, functions) is in infer-types.ts.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { WireReader } from '../bytes/wire-reader.ts'
import { attributeOf, type AttributeValue, readAttributes } from '../onnx/attributes.ts'
import { elementOf, mapOf, optionalOf, sequenceOf } from '../onnx/element-type.ts'
import type { NodeEntry } from '../onnx/model-index.ts'
import { type OpaqueType, readType, tensorType, type ValueType } from '../onnx/value-type.ts'
import { qualifiedName } from '../onnx/operator-name.ts'
import { readTensorInfo } from '../tensor/tensor-proto.ts'

export { qualifiedName } from '../onnx/operator-name.ts'

/** TensorProto.DataType, or the whole type of what is no tensor. */
export type ElementType = number | OpaqueType

export interface RuleContext {
  readonly source: ByteSource
  readonly node: NodeEntry
  /** The element types of the inputs, undefined where left out or not known. */
  readonly inputs: readonly (ElementType | undefined)[]
}

export function outputTypes(context: RuleContext): (ElementType | undefined)[] {
  const { node } = context
  const rule = RULES.get(qualifiedName(node)) ?? [input(0)]
  return node.outputs.map((_, slot) => (rule[slot] ?? rule.at(-1)!)(context))
}

const [FLOAT, UINT8, INT32, INT64, STRING, BOOL] = [1, 2, 6, 7, 8, 9]

type Rule = (context: RuleContext) => ElementType | undefined

const fixed =
  (type: ElementType): Rule =>
  () =>
    type

const input =
  (slot: number): Rule =>
  ({ inputs }) =>
    inputs[slot]

/** The first input that has a type. */
const firstOf =
  (...slots: number[]): Rule =>
  ({ inputs }) =>
    slots.map((slot) => inputs[slot]).find((type) => type !== undefined)

const attribute =
  (name: string, otherwise: Rule): Rule =>
  (context) => {
    const value = attributeOf(attributesOf(context), name, 'int') ?? 0n
    return value === 0n ? otherwise(context) : Number(value)
  }

/** A list attribute whose presence decides. */
const ifAttribute =
  (name: string, then: ElementType, otherwise: Rule): Rule =>
  (context) =>
    attributesOf(context).has(name) ? then : otherwise(context)

const tensorAttribute =
  (name: string, otherwise: Rule): Rule =>
  (context) => {
    const value = attributesOf(context).get(name)
    if (value?.kind !== 'tensor') return otherwise(context)
    return readTensorInfo(new WireReader(context.source), value.range.start, value.range.stop).dataType
  }

/** What a sequence, an optional or a map holds. */
const held =
  (slot: number): Rule =>
  ({ inputs }) => {
    const holder = inputs[slot]
    return typeof holder === 'object' ? elementType(elementOf(holder)) : undefined
  }

const sequence =
  (element: Rule): Rule =>
  (context) =>
    sequenceOf(typeOfElement(element(context)))

/** The sequence as it is, else one of what is put into it. */
const sameSequence =
  (element: Rule): Rule =>
  (context) => {
    const given = context.inputs[0]
    const isWhole = typeof given === 'object' && given.kind === 'sequence' && given.encoded.length > 0
    return isWhole ? given : sequence(element)(context)
  }

/** An empty optional says what it could hold. */
const optional: Rule = (context) => {
  const type = attributesOf(context).get('type')
  if (type?.kind !== 'type') return optionalOf(typeOfElement(context.inputs[0]))
  const { start, stop } = type.range
  return optionalOf(readType(new WireReader(context.source), start, stop))
}

/** From opset 18 on, what is no optional is handed on. */
const unwrapped: Rule = (context) => {
  const given = context.inputs[0]
  return typeof given === 'object' && given.kind === 'optional' ? held(0)(context) : given
}

const zipMap: Rule = (context) => {
  const key = attributesOf(context).has('classlabels_strings') ? STRING : INT64
  return sequenceOf(mapOf(key, tensorType(FLOAT, [])))
}

const CAST_MAP = new Map([
  ['TO_FLOAT', FLOAT],
  ['TO_STRING', STRING],
  ['TO_INT64', INT64],
])

const castMap: Rule = (context) =>
  CAST_MAP.get(attributeOf(attributesOf(context), 'cast_to', 'string') ?? 'TO_FLOAT')

const labels = (name: string): Rule => ifAttribute(name, STRING, fixed(INT64))

/** Operator -> rules of its outputs; the last one holds for all that follow. */
const RULES = new Map<string, readonly Rule[]>([
  ...each([fixed(INT64)], 'Shape Size NonZero ArgMax ArgMin NonMaxSuppression SequenceLength'),
  ...each(
    [fixed(BOOL)],
    'Equal Less Greater LessOrEqual GreaterOrEqual And Or Xor Not IsNaN IsInf OptionalHasElement RegexFullMatch',
  ),
  ...each([input(0), fixed(INT64)], 'TopK MaxPool Unique'),
  ...each([input(0), fixed(BOOL)], 'Dropout'),
  ...each([attribute('to', fixed(FLOAT))], 'Cast'),
  ...each([attribute('to', fixed(FLOAT))], 'BitCast'),
  ...each([input(1)], 'CastLike Where'),
  ...each([input(2)], 'OneHot'),
  ...each([attribute('dtype', fixed(FLOAT))], 'RandomNormal RandomUniform'),
  ...each([attribute('dtype', input(0))], 'RandomNormalLike RandomUniformLike EyeLike Bernoulli'),
  ...each([attribute('dtype', fixed(INT32))], 'Multinomial'),
  ...each(
    [attribute('output_datatype', fixed(FLOAT))],
    'HannWindow HammingWindow BlackmanWindow MelWeightMatrix',
  ),
  ...each([tensorAttribute('value', fixed(FLOAT))], 'ConstantOfShape'),
  ...each([attribute('output_dtype', input(1))], 'DequantizeLinear com.microsoft.DequantizeLinear'),
  ...each(
    [attribute('output_dtype', (context) => context.inputs[2] ?? UINT8)],
    'QuantizeLinear com.microsoft.QuantizeLinear',
  ),
  ...each([fixed(UINT8), fixed(FLOAT), fixed(UINT8)], 'DynamicQuantizeLinear'),
  ...each([input(7)], 'QLinearConv QLinearMatMul com.microsoft.QLinearConv'),
  ...each([fixed(INT32)], 'ConvInteger MatMulInteger com.microsoft.MatMulInteger16'),
  ...each([input(0), input(3), input(4), input(3), input(4)], 'BatchNormalization'),
  ...each([input(0), attribute('stash_type', fixed(FLOAT))], 'LayerNormalization'),
  ...each([fixed(UINT8)], 'ImageDecoder'),
  ...each([fixed(STRING)], 'StringNormalizer StringConcat com.microsoft.Tokenizer'),
  ...each([fixed(STRING), fixed(INT64)], 'StringSplit'),
  ...each([fixed(FLOAT)], 'TfIdfVectorizer'),
  ...each(
    [({ inputs, ...rest }) => sequence(firstOf(...inputs.keys()))({ inputs, ...rest })],
    'SequenceConstruct',
  ),
  ...each([sequence(attribute('dtype', fixed(FLOAT)))], 'SequenceEmpty'),
  ...each([sequence(input(0))], 'SplitToSequence'),
  ...each([sameSequence(input(1))], 'SequenceInsert'),
  ...each([sameSequence(() => undefined)], 'SequenceErase'),
  ...each([held(0)], 'SequenceAt ConcatFromSequence ai.onnx.ml.DictVectorizer'),
  ...each([optional], 'Optional'),
  ...each([unwrapped], 'OptionalGetElement'),
  ...each(
    [fixed(FLOAT)],
    'ai.onnx.ml.LinearRegressor ai.onnx.ml.SVMRegressor ai.onnx.ml.TreeEnsembleRegressor',
  ),
  ...each(
    [fixed(FLOAT)],
    'ai.onnx.ml.Scaler ai.onnx.ml.Normalizer ai.onnx.ml.OneHotEncoder ai.onnx.ml.FeatureVectorizer',
  ),
  ...each(
    [labels('classlabels_strings'), fixed(FLOAT)],
    'ai.onnx.ml.LinearClassifier ai.onnx.ml.SVMClassifier',
  ),
  ...each([labels('classlabels_strings'), fixed(FLOAT)], 'ai.onnx.ml.TreeEnsembleClassifier'),
  ...each([zipMap], 'ai.onnx.ml.ZipMap'),
  ...each(
    [
      ifAttribute(
        'values_strings',
        STRING,
        ifAttribute('values_floats', FLOAT, tensorAttribute('values_tensor', fixed(INT64))),
      ),
    ],
    'ai.onnx.ml.LabelEncoder',
  ),
  ...each([({ inputs }) => (inputs[0] === STRING ? INT64 : STRING)], 'ai.onnx.ml.CategoryMapper'),
  ...each([castMap], 'ai.onnx.ml.CastMap'),
  ...each([input(2), fixed(INT32), input(2)], 'com.microsoft.EmbedLayerNormalization'),
  ...each([input(0), fixed(FLOAT), fixed(FLOAT), input(0)], 'com.microsoft.SkipLayerNormalization'),
  ...each([input(0), fixed(FLOAT), fixed(FLOAT), input(0)], 'com.microsoft.SkipSimplifiedLayerNormalization'),
  ...each([input(3)], 'com.microsoft.QAttention'),
  ...each([input(2)], 'com.microsoft.MatMulIntegerToFloat com.microsoft.GatherBlockQuantized'),
  ...each(
    [(context) => (context.inputs[8] === undefined ? FLOAT : context.inputs[8])],
    'com.microsoft.QGemm',
  ),
  ...each([firstOf(0, 1, 2)], 'Concat Sum Mean Max Min'),
])

export function elementType(type: ValueType | undefined): ElementType | undefined {
  return type?.kind === 'tensor' ? type.dataType : type
}

export function typeOfElement(element: ElementType | undefined): ValueType | undefined {
  return typeof element === 'number' ? tensorType(element) : element
}

function each(rules: readonly Rule[], names: string): [string, readonly Rule[]][] {
  return names.split(' ').map((name) => [name, rules])
}

const attributes = new WeakMap<RuleContext, Map<string, AttributeValue>>()

/** Read once for all outputs of a node. */
function attributesOf(context: RuleContext): Map<string, AttributeValue> {
  const known = attributes.get(context) ?? readAttributes(context.source, context.node)
  attributes.set(context, known)
  return known
}
