/**
 * A whole graph as a model of its own, giving any of its values ("mark all").
 *
 * For the main graph that is the model with more outputs, for a run that captures
 * activations. A subgraph becomes a model whose captured values are inputs.
 */
import { isConstant } from '../onnx/constant.ts'
import type { ValueType } from '../onnx/value-type.ts'
import type { MessageWriter } from '../bytes/wire-writer.ts'
import { composeModel } from './compose.ts'
import { topologicalOrder } from './order.ts'
import { type GraphNode, isWeight, readsOf, type ScopedGraph, type Value } from './resolve.ts'
import type { WeightPolicy } from './weights.ts'

/** What a graph needs from outside: its formal inputs, then captured values that are no weights. */
export function inputsOfGraph(graph: ScopedGraph): Value[] {
  return [...graph.inputs, ...readsFromOutside(graph).filter((value) => !isWeight(value))]
}

/** Every value that a node of the graph computes, in an order that runs. */
export function computedValues(graph: ScopedGraph): Value[] {
  return operators(graph).flatMap((node) => node.outputs.filter((value) => value !== undefined))
}

/** The graph as a model that gives `outputs`; the weights in `fed` are inputs of it. */
export function graphAsModel(
  graph: ScopedGraph,
  outputs: readonly Value[],
  typeOf: (value: Value) => ValueType | undefined,
  policy: WeightPolicy,
  fed: readonly Value[] = [],
): MessageWriter {
  const nodes = operators(graph)
  const read = new Set(nodes.flatMap((node) => [...readsOf(node)]))
  const weights = [...new Set([...read, ...outputs])].filter(
    (value) => isWeight(value) && !fed.includes(value),
  )
  const inputs = [...inputsOfGraph(graph), ...fed]
  const name = graph.index.name === '' ? 'graph' : graph.index.name
  return composeModel(
    { model: graph.model, name, nodes, inputs, outputs, weights, folded: new Map() },
    typeOf,
    policy,
  )
}

function operators(graph: ScopedGraph): GraphNode[] {
  return topologicalOrder(graph).filter((node) => !isConstant(node.entry))
}

function readsFromOutside(graph: ScopedGraph): Value[] {
  const outside = new Set<Value>()
  for (const node of graph.nodes)
    for (const value of readsOf(node)) if (value.graph !== graph) outside.add(value)
  for (const value of graph.outputs) if (value.graph !== graph) outside.add(value)
  return [...outside]
}
