/**
 * Which values of a model a chip stores, and so rounds: a graph and its types -> StoragePlan.
 *
 * Floats of a known type are rounded where they come to lie in memory: inputs of the model,
 * weights, results of nodes. Not rounded are:
 * - constants of one element: compilers put them into the instructions (an epsilon of 1e-12 or
 *   a mask of -3e38 is no number of a small float type);
 * - parameters of operators (`EXACT_INPUTS`): scales, sizes and limits;
 * - what follows from shapes or from the scales of dynamic quantisation: the host's work;
 * - what is as it was stored: results of nodes that only move data, inputs of the bodies of Loop
 *   and Scan, results of If, Loop and Scan, whose bodies follow the same rules inside;
 * - on an int8 chip, what the model itself quantises: its own scales count;
 * - sequences, optionals, and whatever has no known type.
 * A call of a local function counts as one node: its results are rounded, not its inner values.
 */
import { qualifiedName } from '../../graph/dtype-rules.ts'
import type { TypeTable } from '../../graph/infer-types.ts'
import { topologicalOrder } from '../../graph/order.ts'
import { type GraphNode, isWeight, type ScopedGraph, type Value } from '../../graph/resolve.ts'
import { isConstant } from '../../onnx/constant.ts'
import { type DType, dtypeFromOnnx } from '../../tensor/dtype.ts'
import type { SimStorage } from './chip.ts'

export interface StoragePlan {
  /** The values to round. */
  readonly rounded: ReadonlySet<Value>
  /** Whether a node reads an input as it was given, not as it is stored. */
  readsExactly(node: GraphNode, slot: number): boolean
}

export type FloatDType = 'float64' | 'float32' | 'float16' | 'bfloat16'

export function planStorage(main: ScopedGraph, types: TypeTable, storage: SimStorage): StoragePlan {
  return new Planner(types, storage).plan(main)
}

/** The dtype of a tensor of floats; undefined for everything else. */
export function floatDtype(types: TypeTable, value: Value): FloatDType | undefined {
  const type = types.get(value)
  const dtype = type?.kind === 'tensor' ? dtypeFromOnnx(type.dataType) : undefined
  return isFloat(dtype) ? dtype : undefined
}

/** The float types that hold numbers which the storage does not. */
const ROUNDED_DTYPES: Readonly<Record<SimStorage, ReadonlySet<FloatDType>>> = {
  float32: new Set(['float64']),
  float16: new Set(['float64', 'float32', 'bfloat16']),
  bfloat16: new Set(['float64', 'float32', 'float16']),
  int8: new Set(['float64', 'float32', 'float16', 'bfloat16']),
}

class Planner {
  readonly #types: TypeTable
  readonly #storage: SimStorage
  readonly #rounded = new Set<Value>()
  /** Values that hold numbers of the storage without being rounded. */
  readonly #settled = new Set<Value>()
  /** Values that the host computes. */
  readonly #onHost = new Set<Value>()
  readonly #hostNodes = new Set<GraphNode>()

  constructor(types: TypeTable, storage: SimStorage) {
    this.#types = types
    this.#storage = storage
  }

  plan(main: ScopedGraph): StoragePlan {
    for (const value of main.inputs) this.#consider(value)
    this.#graph(main)
    const readsExactly = (node: GraphNode, slot: number): boolean =>
      this.#hostNodes.has(node) || isExactInput(node, slot)
    const read = new Set<Value>()
    noteStoredReads(main, readsExactly, read)
    const rounded = new Set(
      [...this.#rounded].filter((value) => value.origin.kind === 'node' || value.isOutput || read.has(value)),
    )
    return { rounded, readsExactly }
  }

  #graph(graph: ScopedGraph): void {
    if (graph.owner !== undefined) for (const value of graph.inputs) this.#settled.add(value)
    for (const value of graph.values) if (isWeight(value)) this.#weight(value)
    for (const node of topologicalOrder(graph)) {
      if (isConstant(node.entry)) continue
      for (const body of node.subgraphs) this.#graph(body)
      const outputs = node.outputs.filter((value) => value !== undefined)
      if (this.#isHosts(node)) this.#hostNodes.add(node)
      for (const value of outputs) this.#output(node, value)
    }
  }

  #weight(value: Value): void {
    const type = this.#types.get(value)
    const isImmediate = type?.kind === 'tensor' && type.shape?.every((dim) => dim === 1)
    if (!isImmediate) this.#consider(value)
  }

  #output(node: GraphNode, value: Value): void {
    const isScale = qualifiedName(node.entry) === 'DynamicQuantizeLinear' && value === node.outputs[1]
    if (this.#hostNodes.has(node) || isScale) this.#onHost.add(value)
    else if (node.subgraphs.length > 0 || this.#isMoved(node) || this.#isQuantisedByModel(node, value))
      this.#settled.add(value)
    else this.#consider(value)
  }

  #consider(value: Value): void {
    const dtype = floatDtype(this.#types, value)
    if (dtype === undefined) return
    const isNarrow = value.origin.kind === 'node' && dtype === 'float16' && this.#storage === 'float16'
    // onnxruntime computes float16 nodes in float32 and drops the rounding between them.
    if (ROUNDED_DTYPES[this.#storage].has(dtype) || isNarrow) this.#rounded.add(value)
    else this.#settled.add(value)
  }

  #isMoved(node: GraphNode): boolean {
    const [data] = node.inputs
    if (data === undefined || !MOVES.has(qualifiedName(node.entry))) return false
    return this.#settled.has(data) || this.#rounded.has(data)
  }

  #isQuantisedByModel(node: GraphNode, value: Value): boolean {
    if (this.#storage !== 'int8') return false
    if (node.entry.opType === 'DequantizeLinear') return true
    const { consumers } = value
    return (
      !value.isOutput &&
      consumers.length > 0 &&
      consumers.every(({ entry, inputs }) => entry.opType === 'QuantizeLinear' && inputs[0] === value)
    )
  }

  /** Arithmetic on shapes and scales, with constants of rank 1 at most: a table of embeddings is data. */
  #isHosts(node: GraphNode): boolean {
    const name = qualifiedName(node.entry)
    if (name === 'Shape' || name === 'Size') return true
    const inputs = node.inputs.filter((value) => value !== undefined)
    if (!HOST_OPS.has(name) || !inputs.some((value) => this.#onHost.has(value))) return false
    return inputs.every((value) => this.#onHost.has(value) || (isWeight(value) && this.#isShort(value)))
  }

  #isShort(value: Value): boolean {
    const type = this.#types.get(value)
    return type?.kind === 'tensor' && type.shape !== undefined && type.shape.length <= 1
  }
}

function noteStoredReads(graph: ScopedGraph, exactly: StoragePlan['readsExactly'], read: Set<Value>): void {
  for (const node of graph.nodes) {
    for (const [slot, value] of node.inputs.entries()) {
      if (value !== undefined && !exactly(node, slot)) read.add(value)
    }
    for (const body of node.subgraphs) noteStoredReads(body, exactly, read)
  }
}

function isExactInput({ entry }: GraphNode, slot: number): boolean {
  const name = qualifiedName(entry)
  return (
    name.replace(/^com\.microsoft\./, '').startsWith('QLinear') || EXACT_INPUTS.get(name)?.has(slot) === true
  )
}

/**
 * Inputs that are parameters, by position. All float inputs of QLinear… ops are scales. Bounds
 * of Clip and the value of Pad are one element, and exact for that reason.
 */
const EXACT_INPUTS = new Map<string, ReadonlySet<number>>([
  ...each([1, 2], 'Resize'),
  ...each([1], 'Upsample Dropout'),
  ...each([0, 1, 2], 'Range'),
  ...each([3, 4], 'NonMaxSuppression MelWeightMatrix'),
  ...each([1], 'QuantizeLinear DequantizeLinear com.microsoft.QuantizeLinear com.microsoft.DequantizeLinear'),
  ...each([1, 4, 7], 'com.microsoft.QGemm'),
  ...each([3, 4], 'com.microsoft.QAttention'),
  ...each([2, 3], 'com.microsoft.MatMulIntegerToFloat'),
  ...each([2], 'com.microsoft.DynamicQuantizeMatMul com.microsoft.MatMulNBits'),
  ...each([2], 'com.microsoft.GatherBlockQuantized'),
])

/** Nodes that copy elements of their first input and nothing else. */
const MOVES = new Set(
  (
    'Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Gather GatherElements GatherND ' +
    'Expand Tile DepthToSpace SpaceToDepth ReverseSequence Compress'
  ).split(' '),
)

const HOST_OPS = new Set(
  (
    'Cast Identity Reshape Squeeze Unsqueeze Gather Slice Concat Split Range Where Equal ' +
    'Add Sub Mul Div Mod Pow Sqrt Neg Abs Floor Ceil Round Min Max ReduceProd ReduceSum ReduceMax ReduceMin'
  ).split(' '),
)

function each(slots: readonly number[], names: string): [string, ReadonlySet<number>][] {
  return names.split(' ').map((name) => [name, new Set(slots)])
}

function isFloat(dtype: DType | undefined): dtype is FloatDType {
  return dtype === 'float32' || dtype === 'float16' || dtype === 'float64' || dtype === 'bfloat16'
}
