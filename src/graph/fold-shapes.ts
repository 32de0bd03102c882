/**
 * Shape arithmetic at rest: values that follow from constants and known shapes.
 *
 * Exporters compute the arguments of Reshape, Slice or Expand in the graph: Shape, Gather,
 * Concat and the like over a few integers. Where everything they start from is fixed, the
 * results are fixed too and can stand in a part as initializers. Single entries may stay
 * unknown (a symbolic batch size) without spoiling the others.
 */
import { readAttributes } from '../onnx/attributes.ts'
import { constantContent, isConstant } from '../onnx/constant.ts'
import { qualifiedName } from '../onnx/operator-name.ts'
import { type NamedTensor, tensorFromProto } from '../tensor/tensor-proto.ts'
import { tensor, type Tensor, toBigInt64 } from '../tensor/tensor.ts'
import type { TypeTable } from './infer-types.ts'
import { type Ints, MAX_RANK } from './shape-op.ts'
import { SHAPE_OPS } from './shape-ops.ts'
import { topologicalOrder } from './order.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

/** Longer lists are data, not shapes. */
const MAX_ITEMS = 1024

/** The values of a graph and its subgraphs that nodes compute from constants and known shapes. */
export function foldShapes(graph: ScopedGraph, types: TypeTable): ReadonlyMap<Value, Tensor> {
  const folding: Folding = { types, known: new Map(), folded: new Map(), work: 0 }
  foldGraph(graph, folding)
  return folding.folded
}

interface Folding {
  readonly types: TypeTable
  readonly known: Map<Value, Ints>
  readonly folded: Map<Value, Tensor>
  /** Entries read so far, once for each axis. */
  work: number
}

/** A hundred times what the largest exported graphs take, and less than a second. */
const MAX_WORK = 4_000_000

function foldGraph(graph: ScopedGraph, folding: Folding): void {
  const { known, folded } = folding
  for (const value of graph.values) {
    const constant = value.origin.kind === 'initializer' ? initializerInts(value) : undefined
    if (constant !== undefined) known.set(value, constant)
  }
  for (const node of topologicalOrder(graph)) {
    for (const body of node.subgraphs) foldGraph(body, folding)
    const output = node.outputs[0]
    const result = output === undefined ? undefined : foldNode(node, folding)
    if (output === undefined || result === undefined) continue
    if (result.items.length > MAX_ITEMS || result.shape.length > MAX_RANK) continue
    known.set(output, result)
    if (isConstant(node.entry)) continue
    const complete = tensorOfInts(result)
    if (complete !== undefined) folded.set(output, complete)
  }
}

function foldNode(node: GraphNode, folding: Folding): Ints | undefined {
  const { entry, graph } = node
  if (isConstant(entry)) return constantInts(node)
  const op = SHAPE_OPS.get(qualifiedName(entry))
  if (op === undefined || folding.work > MAX_WORK) return undefined
  const first = node.inputs[0]
  const inputs = node.inputs.map((value) => (value === undefined ? undefined : folding.known.get(value)))
  for (const ints of inputs)
    if (ints !== undefined) folding.work += ints.items.length * (ints.shape.length + 1)
  return op({
    inputs,
    given: node.inputs.map((value) => value !== undefined),
    firstType: first === undefined ? undefined : folding.types.get(first),
    attributes: () => readAttributes(graph.model.source, entry),
    tensorAttribute: (range) => small(() => tensorFromProto(graph.model.source, range.start, range.stop)),
  })
}

function initializerInts(value: Value): Ints | undefined {
  if (value.origin.kind !== 'initializer') return undefined
  const { info, sparse, start, stop } = value.origin.entry
  if (sparse || info.external !== undefined || !isShort(info.dataType, info.dims)) return undefined
  return small(() => tensorFromProto(value.graph.model.source, start, stop))
}

function constantInts({ entry, graph }: GraphNode): Ints | undefined {
  const { source } = graph.model
  const content = constantContent(source, entry)
  if (content.kind === 'list') return intsOfTensor(content.tensor)
  if (content.kind !== 'tensor' || content.info.external !== undefined) return undefined
  const { info, range } = content
  if (!isShort(info.dataType, info.dims)) return undefined
  return small(() => tensorFromProto(source, range.start, range.stop))
}

function small(read: () => NamedTensor): Ints | undefined {
  return intsOfTensor(read().tensor)
}

function isShort(dataType: number, dims: readonly number[]): boolean {
  if (!FOLDABLE.has(dataType) || dims.length > MAX_RANK) return false
  return dims.reduce((product, dim) => product * dim, 1) <= MAX_ITEMS
}

/** int32, int64, bool. */
const FOLDABLE = new Set([6, 7, 9])

function intsOfTensor(constant: Tensor): Ints | undefined {
  if (constant.dtype !== 'int64' && constant.dtype !== 'int32' && constant.dtype !== 'bool') return undefined
  if (constant.data.length > MAX_ITEMS || constant.shape.length > MAX_RANK) return undefined
  return { dtype: constant.dtype, shape: constant.shape, items: [...toBigInt64(constant)] }
}

function tensorOfInts({ dtype, shape, items }: Ints): Tensor | undefined {
  if (!items.every((item) => item !== undefined)) return undefined
  switch (dtype) {
    case 'int64':
      return tensor('int64', shape, BigInt64Array.from(items))
    case 'int32':
      return tensor('int32', shape, Int32Array.from(items, Number))
    case 'bool':
      return tensor('bool', shape, Uint8Array.from(items, Number))
  }
}
