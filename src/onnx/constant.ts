/** Constant nodes: the attribute that holds the value -> a tensor, by range where it is one already. */
import type { ByteSource } from '../bytes/byte-source.ts'
import { WireReader } from '../bytes/wire-reader.ts'
import { readTensorInfo, type TensorInfo } from '../tensor/tensor-proto.ts'
import { type Tensor, tensor } from '../tensor/tensor.ts'
import { type AttributeValue, readAttributes } from './attributes.ts'
import type { NodeEntry, Range } from './model-index.ts'

/** What a Constant node holds: a range of the source, or a new tensor made from a list. */
export type ConstantContent =
  | { readonly kind: 'tensor'; readonly range: Range; readonly info: TensorInfo }
  | { readonly kind: 'sparse'; readonly range: Range }
  | { readonly kind: 'list'; readonly tensor: Tensor }

export function isConstant(node: NodeEntry): boolean {
  return node.opType === 'Constant' && (node.domain === '' || node.domain === 'ai.onnx')
}

export function constantContent(source: ByteSource, node: NodeEntry): ConstantContent {
  const known = contents.get(node)
  if (known !== undefined) return known
  const content = readContent(source, node)
  if (node.stop - node.start > CHEAP_BYTES) contents.set(node, content)
  return content
}

/** Every part that reads a constant asks for it: the long ones are read once. */
const contents = new WeakMap<NodeEntry, ConstantContent>()
const CHEAP_BYTES = 4096

function readContent(source: ByteSource, node: NodeEntry): ConstantContent {
  const value = constantValue(source, node)
  if (value.kind === 'sparse') return { kind: 'sparse', range: value.range }
  if (value.kind !== 'tensor') return { kind: 'list', tensor: listTensor(value, source, node) }
  const { range } = value
  return { kind: 'tensor', range, info: readTensorInfo(new WireReader(source), range.start, range.stop) }
}

const VALUE_ATTRIBUTES = [
  'value',
  'sparse_value',
  'value_int',
  'value_ints',
  'value_float',
  'value_floats',
  'value_string',
  'value_strings',
]

const NO_VALUES = new Set<AttributeValue['kind']>(['other', 'graph', 'type'])

function constantValue(source: ByteSource, node: NodeEntry): AttributeValue {
  const attributes = readAttributes(source, node)
  const name = VALUE_ATTRIBUTES.find((attribute) => attributes.has(attribute))
  const value = name === undefined ? undefined : attributes.get(name)
  if (value !== undefined && !NO_VALUES.has(value.kind)) return value
  throw new WireReader(source).malformed(`the Constant node "${node.name}" has no value`, node.start)
}

function listTensor(value: AttributeValue, source: ByteSource, node: NodeEntry): Tensor {
  switch (value.kind) {
    case 'int':
      return tensor('int64', [], BigInt64Array.of(value.value))
    case 'ints':
      return tensor('int64', [value.value.length], BigInt64Array.from(value.value))
    case 'float':
      return tensor('float32', [], Float32Array.of(value.value))
    case 'floats':
      return tensor('float32', [value.value.length], Float32Array.from(value.value))
    case 'string':
      return tensor('string', [], [value.value])
    case 'strings':
      return tensor('string', [value.value.length], [...value.value])
    default:
      throw new WireReader(source).malformed(
        `the Constant node "${node.name}" has an unusable value`,
        node.start,
      )
  }
}
