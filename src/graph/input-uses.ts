/**
 * Who reads a value, and as which argument: through the bodies of control flow and local functions.
 *
 * A value that a Loop or Scan hands to its body, or a call to a function, is read by what reads the
 * formal input there; what a body gives is read by what reads the node's output. Each body of a function is resolved once, as a graph without types.
 */
import type { ModelIndex } from '../onnx/model-index.ts'
import { functionCalled } from './functions.ts'
import { type GraphNode, resolveModel, type ScopedGraph, type Value } from './resolve.ts'

export interface Use {
  readonly node: GraphNode
  readonly slot: number
}

/** Readers of every value of a graph, its bodies and the functions that it calls. */
export interface Uses {
  of(value: Value): readonly Use[]
  /** Values that stand for it inside a body or, from a body, outside. */
  othersOf(value: Value): readonly Value[]
}

export function usesOf(graph: ScopedGraph): Uses {
  const collector = new Collector(graph.model)
  collector.all(graph)
  return collector
}

class Collector implements Uses {
  readonly #uses = new Map<Value, Use[]>()
  readonly #others = new Map<Value, Value[]>()
  readonly #functions = new Map<object, ScopedGraph>()
  /** Bodies of functions that are yet to be gone through: calls may lead to calls without end. */
  readonly #open: ScopedGraph[] = []
  readonly #model: ModelIndex

  constructor(model: ModelIndex) {
    this.#model = model
  }

  of(value: Value): readonly Use[] {
    return this.#uses.get(value) ?? []
  }

  othersOf(value: Value): readonly Value[] {
    return this.#others.get(value) ?? []
  }

  all(main: ScopedGraph): void {
    this.#open.push(main)
    for (let graph = this.#open.pop(); graph !== undefined; graph = this.#open.pop()) this.#graph(graph)
  }

  #graph(graph: ScopedGraph): void {
    for (const node of graph.nodes) {
      for (const [slot, value] of node.inputs.entries()) {
        if (value !== undefined) push(this.#uses, value, { node, slot })
      }
      for (const body of node.subgraphs) {
        this.#link(node, body)
        this.#graph(body)
      }
      this.#call(node)
    }
  }

  /** A Loop's body gets the counter first; its trip count is no input of the body. */
  #link(node: GraphNode, body: ScopedGraph): void {
    const first = node.entry.opType === 'Loop' ? 2 : 0
    for (const [slot, value] of node.inputs.entries()) {
      const formal = body.inputs[slot]
      if (slot >= first && value !== undefined && formal !== undefined) push(this.#others, value, formal)
    }
    // What a body gives, the node gives; a Loop's body gives its condition first.
    const skipped = node.entry.opType === 'Loop' ? 1 : 0
    for (const [slot, value] of body.outputs.entries()) {
      const given = slot < skipped ? undefined : node.outputs[slot - skipped]
      if (given !== undefined) push(this.#others, value, given)
    }
  }

  #call(node: GraphNode): void {
    const callee = functionCalled(this.#model, node.entry)
    if (callee === undefined) return
    const known = this.#functions.get(callee)
    const body = known ?? functionBody(this.#model, callee)
    this.#link(node, body)
    if (known !== undefined) return
    this.#functions.set(callee, body)
    this.#open.push(body)
  }
}

function functionBody(model: ModelIndex, callee: ModelIndex['functions'][number]): ScopedGraph {
  const { start, stop, nodes } = callee
  const named = (names: readonly string[]): { name: string; start: number; stop: number }[] =>
    names.map((name) => ({ name, start, stop }))
  const graph = {
    name: callee.name,
    nodes,
    inputs: named(callee.inputs),
    outputs: named(callee.outputs),
    initializers: [],
    valueInfos: [],
    rest: [],
  }
  return resolveModel({ ...model, graph })
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}
