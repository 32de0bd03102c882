/**
 * A part: some nodes of a graph, and what they read from and give to the outside.
 *
 * Weights and folded values go along with the part; everything else that it reads is an input.
 */
import type { MessageWriter } from '../bytes/wire-writer.ts'
import type { ValueType } from '../onnx/value-type.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { composeModel } from './compose.ts'
import { type GraphNode, isWeight, readsOf, type ScopedGraph, type Value } from './resolve.ts'
import type { WeightPolicy } from './weights.ts'

export interface Boundary {
  readonly inputs: readonly Value[]
  readonly outputs: readonly Value[]
  readonly weights: readonly Value[]
  readonly folded: ReadonlyMap<Value, Tensor>
}

export interface Part extends Boundary {
  /** `<stem>_layer_<OpType>_<n>`. */
  readonly name: string
  /** Where the graph is: '' for the main graph, else `If_0/then_branch` and so on inwards. */
  readonly scope: string
  readonly graph: ScopedGraph
  /** In an order that runs. */
  readonly nodes: readonly GraphNode[]
  /** Positions among the nodes of the graph that are no Constants. */
  readonly nodeIndices: readonly number[]
  /** Why nodes that no group names stand together; undefined for ordinary parts. */
  readonly merged: string | undefined
}

export function extractPart(
  part: Part,
  typeOf: (value: Value) => ValueType | undefined,
  policy: WeightPolicy,
): MessageWriter {
  const { name, nodes, inputs, outputs, weights, folded } = part
  const metadata = { node_index: part.nodeIndices.join(',') }
  return composeModel(
    { model: part.graph.model, name, nodes, inputs, outputs, weights, folded, metadata },
    typeOf,
    policy,
  )
}

export function boundaryOf(nodes: readonly GraphNode[], known: ReadonlyMap<Value, Tensor>): Boundary {
  const own = new Set(nodes)
  const [inputs, weights] = [new Set<Value>(), new Set<Value>()]
  let folded = NONE_FOLDED
  for (const node of nodes) {
    for (const value of readsOf(node)) {
      if (value.origin.kind === 'node' && own.has(value.origin.node)) continue
      const constant = known.get(value)
      if (isWeight(value)) weights.add(value)
      else if (constant !== undefined)
        folded = (folded === NONE_FOLDED ? new Map() : folded).set(value, constant)
      else inputs.add(value)
    }
  }
  return { inputs: [...inputs], outputs: outputsOf(nodes), weights: [...weights], folded }
}

/** Shared by the parts into which nothing is folded, which are most: an empty map takes 200 bytes. */
const NONE_FOLDED = new Map<Value, Tensor>()

/** What a set of nodes gives: what others read, else what it computes for nobody, to be tested all the same. */
export function outputsOf(nodes: readonly GraphNode[]): Value[] {
  const own = new Set(nodes)
  const all = nodes.flatMap((node) => node.outputs).filter((value) => value !== undefined)
  const used = all.filter((value) => value.isOutput || value.consumers.some((consumer) => !own.has(consumer)))
  return used.length > 0 ? used : all.filter((value) => value.consumers.length === 0)
}
