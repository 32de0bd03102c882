/**
 * ONNX models in a few lines of code: for testdata and for tests.
 *
 * Written with onnx-proto and not with the project's own writer, so that tests built on it
 * compare two independent views of the format.
 */
import onnxProto from 'onnx-proto'
import { type DType, onnxFromDtype } from '../src/tensor/dtype.ts'
import { bytesOfTensor, type Tensor, tensor } from '../src/tensor/tensor.ts'

const { onnx } = onnxProto

export type Dims = readonly (number | string | null)[]
/** A dtype with a shape, or only a dtype where the rank is not to be declared; undefined declares no type. */
export type TypeSpec = readonly [DType, Dims?] | undefined

export interface NodeSpec {
  readonly op: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes?: Readonly<Record<string, AttributeSpec>>
  readonly name?: string
  readonly domain?: string
}

export type AttributeSpec =
  | number
  | string
  | readonly number[]
  | readonly string[]
  | { readonly float: number }
  | { readonly floats: readonly number[] }
  | { readonly tensor: Tensor }
  | { readonly graph: GraphSpec }

export interface GraphSpec {
  readonly name?: string
  readonly nodes: readonly NodeSpec[]
  readonly inputs?: Readonly<Record<string, TypeSpec>>
  readonly outputs: Readonly<Record<string, TypeSpec>>
  readonly initializers?: Readonly<Record<string, Tensor>>
  readonly valueInfos?: Readonly<Record<string, TypeSpec>>
}

export interface ModelSpec extends GraphSpec {
  /** @default 17 */
  readonly opset?: number
  readonly opsets?: Readonly<Record<string, number>>
  /** @default 8 */
  readonly ir?: number
  readonly functions?: readonly FunctionSpec[]
}

export interface FunctionSpec {
  readonly domain: string
  readonly name: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly nodes: readonly NodeSpec[]
}

export function op(
  type: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, AttributeSpec>> = {},
  rest: Partial<NodeSpec> = {},
): NodeSpec {
  return { op: type, inputs, outputs, attributes, ...rest }
}

export function buildModel({
  opset = 17,
  opsets = {},
  ir = 8,
  functions = [],
  ...graph
}: ModelSpec): Uint8Array {
  const imports = Object.entries({ '': opset, ...opsets }).map(([domain, version]) => ({ domain, version }))
  const model = onnx.ModelProto.create({
    irVersion: ir,
    graph: graphProto(graph),
    opsetImport: imports,
    functions: functions.map(functionProto),
  })
  return onnx.ModelProto.encode(model).finish()
}

export const floats = (shape: readonly number[], values: readonly number[]): Tensor =>
  tensor('float32', shape, Float32Array.from(values))

export const ints = (shape: readonly number[], values: readonly number[]): Tensor =>
  tensor('int64', shape, BigInt64Array.from(values, BigInt))

function graphProto({
  name = 'graph',
  nodes,
  inputs = {},
  outputs,
  initializers = {},
  valueInfos = {},
}: GraphSpec): object {
  return {
    name,
    node: nodes.map(nodeProto),
    input: Object.entries(inputs).map(valueInfoProto),
    output: Object.entries(outputs).map(valueInfoProto),
    valueInfo: Object.entries(valueInfos).map(valueInfoProto),
    initializer: Object.entries(initializers).map(([key, value]) => tensorProto(key, value)),
  }
}

function nodeProto({
  op: opType,
  inputs,
  outputs,
  attributes = {},
  name = '',
  domain = '',
}: NodeSpec): object {
  return {
    opType,
    input: [...inputs],
    output: [...outputs],
    name,
    domain,
    attribute: Object.entries(attributes).map(([key, value]) => attributeProto(key, value)),
  }
}

const TYPE = { FLOAT: 1, INT: 2, STRING: 3, TENSOR: 4, GRAPH: 5, FLOATS: 6, INTS: 7, STRINGS: 8 }

function attributeProto(name: string, value: AttributeSpec): object {
  if (typeof value === 'number') return { name, type: TYPE.INT, i: value }
  if (typeof value === 'string') return { name, type: TYPE.STRING, s: Buffer.from(value) }
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item === 'number')) return { name, type: TYPE.INTS, ints: value }
    return { name, type: TYPE.STRINGS, strings: value.map((item) => Buffer.from(String(item))) }
  }
  if ('float' in value) return { name, type: TYPE.FLOAT, f: value.float }
  if ('floats' in value) return { name, type: TYPE.FLOATS, floats: [...value.floats] }
  if ('tensor' in value) return { name, type: TYPE.TENSOR, t: tensorProto('', value.tensor) }
  if ('graph' in value) return { name, type: TYPE.GRAPH, g: graphProto(value.graph) }
  throw new TypeError(`attribute ${name} has no value`)
}

function tensorProto(name: string, value: Tensor): object {
  const common = { name, dims: [...value.shape], dataType: onnxFromDtype(value.dtype) }
  if (value.dtype === 'string') return { ...common, stringData: value.data.map((text) => Buffer.from(text)) }
  return { ...common, rawData: bytesOfTensor(value) }
}

function valueInfoProto([name, spec]: readonly [string, TypeSpec]): object {
  if (spec === undefined) return { name }
  const [dtype, dims] = spec
  const elemType = onnxFromDtype(dtype)
  const shape = dims === undefined ? {} : { shape: { dim: dims.map(dimProto) } }
  return { name, type: { tensorType: { elemType, ...shape } } }
}

function dimProto(dim: number | string | null): object {
  return dim === null ? {} : typeof dim === 'number' ? { dimValue: dim } : { dimParam: dim }
}

function functionProto({ domain, name, inputs, outputs, nodes }: FunctionSpec): object {
  const opsetImport = [{ domain: '', version: 17 }]
  return { domain, name, input: [...inputs], output: [...outputs], node: nodes.map(nodeProto), opsetImport }
}
