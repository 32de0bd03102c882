/**
 * What a model takes on a chip: memory, operations, time. Estimates, from shapes alone.
 *
 * Memory: all weights, and at the worst node the values that are alive there; a value lives from
 * its node to its last reader. Floats count at the storage dtype, the rest at their own. A body
 * of control flow adds its own worst node, and runs once as far as time is concerned.
 *
 * Time: the roofline. Each node takes as long as its operations or its bytes take, whichever is
 * more; nodes follow each other. Values of unknown shape count nothing and are counted.
 */
import type { TypeTable } from '../../graph/infer-types.ts'
import { topologicalOrder } from '../../graph/order.ts'
import { type GraphNode, isWeight, type ScopedGraph, type Value } from '../../graph/resolve.ts'
import { intAttribute } from '../../onnx/attributes.ts'
import { isConstant } from '../../onnx/constant.ts'
import { bitsPerElement, dtypeFromOnnx } from '../../tensor/dtype.ts'
import type { SimChip } from './chip.ts'
import { floatDtype } from './stored-values.ts'

export interface Estimate {
  readonly weightBytes: number
  /** Weights and the most that is alive at once. */
  readonly peakBytes: number
  /** Additions and multiplications. */
  readonly operations: number
  /** Bytes that nodes read and write. */
  readonly movedBytes: number
  /** Undefined when the chip has no speed. */
  readonly estimatedSeconds: number | undefined
  /** Values that count nothing because their shape is not known. */
  readonly unknownShapes: number
}

export type ShapeOf = (value: Value) => readonly number[] | undefined

export function estimateModel(
  main: ScopedGraph,
  types: TypeTable,
  chip: SimChip,
  shapeOf: ShapeOf,
): Estimate {
  const estimator = new Estimator(types, chip, shapeOf)
  const activations = estimator.graph(main)
  const { weightBytes, operations, movedBytes, seconds, unknown } = estimator
  const hasSpeed = chip.opsPerSecond !== undefined || chip.bytesPerSecond !== undefined
  return {
    weightBytes,
    peakBytes: weightBytes + activations,
    operations,
    movedBytes,
    estimatedSeconds: hasSpeed ? seconds : undefined,
    unknownShapes: unknown.size,
  }
}

class Estimator {
  weightBytes = 0
  operations = 0
  movedBytes = 0
  seconds = 0
  readonly unknown = new Set<Value>()
  readonly #types: TypeTable
  readonly #chip: SimChip
  readonly #shapeOf: ShapeOf

  constructor(types: TypeTable, chip: SimChip, shapeOf: ShapeOf) {
    this.#types = types
    this.#chip = chip
    this.#shapeOf = shapeOf
  }

  /** The bytes of activations at the worst node. */
  graph(graph: ScopedGraph): number {
    for (const value of graph.values) if (isWeight(value)) this.weightBytes += this.#bytes(value)
    const order = topologicalOrder(graph).filter(({ entry }) => !isConstant(entry))
    const dying = lastReads(order)
    let alive = sum(graph.inputs.map((value) => this.#bytes(value)))
    let peak = alive
    for (const node of order) {
      for (const value of given(node)) alive += this.#bytes(value)
      const bodies = node.subgraphs.map((body) => this.graph(body))
      peak = Math.max(peak, alive + Math.max(0, ...bodies))
      for (const value of dying.get(node) ?? []) alive -= this.#bytes(value)
      this.#time(node)
    }
    return peak
  }

  #time(node: GraphNode): void {
    const read = node.inputs.filter((value) => value !== undefined)
    const bytes = sum([...read, ...given(node)].map((value) => this.#bytes(value)))
    const operations = node.subgraphs.length > 0 ? 0 : operationsOf(node, this.#shapeOf)
    const { opsPerSecond = Infinity, bytesPerSecond = Infinity } = this.#chip
    this.operations += operations
    this.movedBytes += bytes
    this.seconds += Math.max(operations / opsPerSecond, bytes / bytesPerSecond)
  }

  #bytes(value: Value): number {
    const type = this.#types.get(value)
    const shape = this.#shapeOf(value)
    const dtype = type?.kind === 'tensor' ? dtypeFromOnnx(type.dataType) : undefined
    if (shape === undefined || dtype === undefined || dtype === 'string') {
      if (dtype !== 'string') this.unknown.add(value)
      return 0
    }
    const isStored = floatDtype(this.#types, value) !== undefined
    const bits = Math.min(bitsPerElement(dtype), isStored ? bitsPerElement(this.#chip.storage) : Infinity)
    return Math.ceil((product(shape) * bits) / 8)
  }
}

function given(node: GraphNode): Value[] {
  return node.outputs.filter((value) => value !== undefined)
}

/** The values that nobody reads after a node. Outputs and weights stay. */
function lastReads(order: readonly GraphNode[]): Map<GraphNode, Value[]> {
  const last = new Map<Value, GraphNode>()
  for (const node of order) {
    for (const value of [...node.inputs, ...node.captures, ...node.outputs]) {
      const stays = value === undefined || value.isOutput || isWeight(value) || value.graph !== node.graph
      if (!stays) last.set(value, node)
    }
  }
  const dying = new Map<GraphNode, Value[]>()
  for (const [value, node] of last) {
    const values = dying.get(node)
    if (values === undefined) dying.set(node, [value])
    else values.push(value)
  }
  return dying
}

/** Two a multiplication with its addition; one an element for all that is no product of matrices. */
function operationsOf(node: GraphNode, shapeOf: ShapeOf): number {
  const [a, b] = node.inputs.map((value) => (value === undefined ? undefined : shapeOf(value)))
  const [first] = node.outputs
  const output = first === undefined ? undefined : shapeOf(first)
  switch (node.entry.opType) {
    case 'MatMul':
      if (a === undefined || b === undefined || a.length === 0) return 0
      return (
        2 * (output === undefined ? product(a) * (b.length < 2 ? 1 : b.at(-1)!) : product(output) * a.at(-1)!)
      )
    case 'Gemm': {
      if (a === undefined || b === undefined || b.length !== 2) return 0
      const isTransposed = intAttribute(node.graph.model.source, node.entry, 'transB') === 1
      return 2 * product(a) * b[isTransposed ? 0 : 1]!
    }
    case 'Conv':
      return output === undefined || b === undefined ? 0 : 2 * product(output) * product(b.slice(1))
    case 'ConvTranspose':
      return a === undefined || b === undefined ? 0 : 2 * product(a) * product(b.slice(1))
    default:
      return output === undefined ? 0 : product(output)
  }
}

function product(shape: readonly number[]): number {
  return shape.reduce((result, dim) => result * dim, 1)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
