/**
 * One argument of one operator, with all that is known around it: shapes, constants, attributes.
 *
 * What the rules of input-rules.ts ask. Sizes that are not known are undefined, never guessed.
 */
import { attributeOf, type AttributeValue, readAttributes } from '../onnx/attributes.ts'
import { constantContent } from '../onnx/constant.ts'
import { qualifiedName } from '../onnx/operator-name.ts'
import { type DType, dtypeFromOnnx } from '../tensor/dtype.ts'
import { tensorFromProto } from '../tensor/tensor-proto.ts'
import { elementCount, type Tensor, toFloat64 } from '../tensor/tensor.ts'
import type { TypeTable } from './infer-types.ts'
import { describeNode, type GraphNode, isWeight, type Value } from './resolve.ts'
import { weightInfo } from './weights.ts'

export type Sizes = readonly (number | undefined)[]

export class Argument {
  readonly node: GraphNode
  readonly slot: number
  readonly #types: TypeTable
  readonly #folded: ReadonlyMap<Value, Tensor>
  #knownAttributes: ReadonlyMap<string, AttributeValue> | undefined

  constructor(node: GraphNode, slot: number, types: TypeTable, folded: ReadonlyMap<Value, Tensor>) {
    this.node = node
    this.slot = slot
    this.#types = types
    this.#folded = folded
  }

  /** The operator; those of other domains with their domain. */
  get operator(): string {
    return operatorOf(this.node)
  }

  /** `Gather "embed"`. */
  get name(): string {
    return describeNode(this.node)
  }

  get dtype(): DType | undefined {
    return this.dtypeOf(this.slot)
  }

  dtypeOf(slot: number): DType | undefined {
    const value = this.node.inputs[slot]
    const type = value === undefined ? undefined : this.#types.get(value)
    return type?.kind === 'tensor' ? dtypeFromOnnx(type.dataType) : undefined
  }

  /** The sizes of an input; undefined when not even the rank is known. */
  shape(slot: number = this.slot): Sizes | undefined {
    const value = this.node.inputs[slot]
    return value === undefined ? undefined : this.#sizes(value)
  }

  outputShape(slot = 0): Sizes | undefined {
    const value = this.node.outputs[slot]
    return value === undefined ? undefined : this.#sizes(value)
  }

  /** The size of one axis of an input; a negative axis counts from the end. */
  size(slot: number, axis: number): number | undefined {
    return this.shape(slot)?.at(axis)
  }

  /** How many elements this argument has. */
  get count(): number | undefined {
    const shape = this.shape()
    return shape === undefined || !isFixed(shape) ? undefined : elementCount(shape)
  }

  /** How many elements this argument has, where they can be a list of sizes or axes. */
  get length(): number | undefined {
    return this.lengthOf(this.slot)
  }

  lengthOf(slot: number): number | undefined {
    const shape = this.shape(slot)
    if (shape === undefined || !isFixed(shape)) return undefined
    const count = elementCount(shape)
    return count <= MAX_LENGTH ? count : undefined
  }

  has(slot: number): boolean {
    return this.node.inputs[slot] !== undefined
  }

  /** The numbers of an input that is known without running anything. */
  numbers(slot: number): readonly number[] | undefined {
    const value = this.node.inputs[slot]
    return value === undefined ? undefined : this.numbersOf(value)
  }

  numbersOf(value: Value): readonly number[] | undefined {
    const folded = this.#folded.get(value)
    return folded === undefined ? numbersOfWeight(value) : numbersOfTensor(folded)
  }

  /** Whether an input is the same value as this one. */
  isSame(slot: number): boolean {
    return this.node.inputs[slot] === this.node.inputs[this.slot]
  }

  int(name: string): number | undefined {
    const value = attributeOf(this.#attributes, name, 'int')
    return value === undefined ? undefined : Number(value)
  }

  ints(name: string): readonly number[] | undefined {
    return attributeOf(this.#attributes, name, 'ints')?.map(Number)
  }

  text(name: string): string | undefined {
    return attributeOf(this.#attributes, name, 'string')
  }

  texts(name: string): readonly string[] | undefined {
    return attributeOf(this.#attributes, name, 'strings')
  }

  get #attributes(): ReadonlyMap<string, AttributeValue> {
    this.#knownAttributes ??= readAttributes(this.node.graph.model.source, this.node.entry)
    return this.#knownAttributes
  }

  #sizes(value: Value): Sizes | undefined {
    const type = this.#types.get(value)
    if (type?.kind === 'tensor' && type.shape !== undefined) return type.shape.map(fixedSize)
    return isWeight(value) ? weightInfo(value)?.dims : undefined
  }
}

export function operatorOf({ entry }: GraphNode): string {
  return qualifiedName(entry)
}

export function isFixed(shape: Sizes): shape is readonly number[] {
  return shape.every((size) => size !== undefined)
}

function fixedSize(dim: number | string | undefined): number | undefined {
  return typeof dim === 'number' ? dim : undefined
}

/** More sizes than any tensor has. */
const MAX_LENGTH = 4096

/** Longer constants are data. */
const MAX_ITEMS = 1024

function numbersOfTensor(known: Tensor | undefined): readonly number[] | undefined {
  return known === undefined || known.dtype === 'string' ? undefined : [...toFloat64(known)]
}

/** Read once for all the nodes that ask. */
const numbersOfWeights = new WeakMap<Value, { readonly numbers: readonly number[] | undefined }>()

function numbersOfWeight(value: Value): readonly number[] | undefined {
  const known = numbersOfWeights.get(value)
  if (known !== undefined || !isWeight(value)) return known?.numbers
  const numbers = numbersOfTensor(smallWeight(value))
  numbersOfWeights.set(value, { numbers })
  return numbers
}

/** A short constant in the file. */
export function smallWeight(value: Value): Tensor | undefined {
  const { origin, graph } = value
  const { source } = graph.model
  if (origin.kind === 'initializer') {
    const { info, sparse, start, stop } = origin.entry
    if (sparse || info.external !== undefined || elementCount(info.dims) > MAX_ITEMS) return undefined
    return tensorFromProto(source, start, stop).tensor
  }
  if (origin.kind !== 'node' || !isWeight(value)) return undefined
  const content = constantContent(source, origin.node.entry)
  if (content.kind === 'list') return content.tensor
  if (content.kind !== 'tensor' || content.info.external !== undefined) return undefined
  if (elementCount(content.info.dims) > MAX_ITEMS) return undefined
  return tensorFromProto(source, content.range.start, content.range.stop).tensor
}
