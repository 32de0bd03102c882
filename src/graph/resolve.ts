/**
 * Names -> values: which producer each name of a graph means, through all scopes.
 *
 * Files may list nodes in any order and use a name more than once: the nearest earlier
 * producer counts, else the nearest later one, else the scope around. Inputs, initializers
 * and constants are earlier than every node; of several, the last counts. Values that share
 * a name get names of their own here, so that everything after this can go by value; so do those
 * that JavaScript cannot carry by theirs.
 * O(nodes + edges).
 */
import { ModelTestError } from '../errors.ts'
import { isConstant } from '../onnx/constant.ts'
import type { GraphIndex, InitializerEntry, ModelIndex, NodeEntry, ValueEntry } from '../onnx/model-index.ts'

export interface Value {
  /** Unique among all values visible in its graph; differs from the file's name only if that is reused or `__proto__`. */
  readonly name: string
  /** The name in the file. */
  readonly written: string
  readonly graph: ScopedGraph
  readonly origin: Origin
  /** The nodes of its own graph that read it, themselves or in their subgraphs. */
  readonly consumers: GraphNode[]
  isOutput: boolean
}

export type Origin =
  | { readonly kind: 'input'; readonly entry: ValueEntry }
  | { readonly kind: 'initializer'; readonly entry: InitializerEntry }
  | { readonly kind: 'node'; readonly node: GraphNode; readonly slot: number }

export interface GraphNode {
  readonly entry: NodeEntry
  readonly graph: ScopedGraph
  /** Position in the file, among all nodes of its graph. */
  readonly position: number
  /** Undefined where an optional input or output is left out. */
  readonly inputs: readonly (Value | undefined)[]
  readonly outputs: readonly (Value | undefined)[]
  readonly subgraphs: readonly ScopedGraph[]
  /** Values from outside that its subgraphs read, each once. */
  readonly captures: readonly Value[]
}

export interface ScopedGraph {
  readonly model: ModelIndex
  readonly index: GraphIndex
  /** The node that holds this graph, and the name of the attribute; undefined for the main graph. */
  readonly owner: { readonly node: GraphNode; readonly attribute: string } | undefined
  readonly nodes: readonly GraphNode[]
  /** Formal inputs, less those that are initializers. */
  readonly inputs: readonly Value[]
  readonly outputs: readonly Value[]
  readonly values: readonly Value[]
}

export function resolveModel(model: ModelIndex): ScopedGraph {
  return new Scope(model, model.graph, undefined).graph
}

/** A Constant node's output, or an initializer: known without running anything. */
export function isWeight(value: Value): boolean {
  const { origin } = value
  return origin.kind === 'initializer' || (origin.kind === 'node' && isConstant(origin.node.entry))
}

/** Every value a node reads, itself or in its subgraphs, with repetitions. */
export function* readsOf(node: GraphNode): Generator<Value> {
  for (const value of node.inputs) if (value !== undefined) yield value
  yield* node.captures
}

export function describeNode(node: GraphNode): string {
  const { name, opType } = node.entry
  return name === '' ? `${opType} (node ${node.position})` : `${opType} "${name}"`
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] }

interface Parent {
  readonly scope: Scope
  readonly node: Mutable<GraphNode>
  readonly attribute: string
}

/** Where inputs, initializers and constants become visible: before the first node. */
const AT_ONCE = -1

/** A definition and where it becomes visible. */
interface Definition {
  readonly position: number
  readonly value: Value
}

class Scope {
  readonly graph: Mutable<ScopedGraph>
  readonly #parent: Parent | undefined
  readonly #definitions = new Map<string, Definition | Definition[]>()
  readonly #renamed = new Set<string>()
  /** Captured from outside, in order of first use. */
  readonly captured = new Set<Value>()

  constructor(model: ModelIndex, index: GraphIndex, parent: Parent | undefined) {
    this.#parent = parent
    const owner = parent === undefined ? undefined : { node: parent.node, attribute: parent.attribute }
    this.graph = { model, index, owner, nodes: [], inputs: [], outputs: [], values: [] }
    this.#define()
    this.#connect()
  }

  /** Constants are no steps of a computation: onnxruntime makes initializers of them, the last one of a name counts. */
  #define(): void {
    const { index, nodes } = this.graph
    const initializers = new Set(index.initializers.map(({ name }) => name))
    for (const entry of index.inputs) {
      if (initializers.has(entry.name)) continue
      this.graph.inputs.push(this.#add(entry.name, AT_ONCE, { kind: 'input', entry }))
    }
    for (const entry of index.initializers) this.#add(entry.name, AT_ONCE, { kind: 'initializer', entry })
    for (const [position, entry] of index.nodes.entries()) {
      const node: Mutable<GraphNode> = {
        entry,
        graph: this.graph,
        position,
        inputs: [],
        outputs: [],
        subgraphs: [],
        captures: [],
      }
      nodes.push(node)
      if (isConstant(entry)) this.#defineOutputs(node, AT_ONCE)
    }
    for (const node of nodes as Mutable<GraphNode>[]) {
      if (!isConstant(node.entry)) this.#defineOutputs(node, node.position)
    }
  }

  #defineOutputs(node: Mutable<GraphNode>, position: number): void {
    node.outputs = node.entry.outputs.map((name, slot) =>
      name === '' ? undefined : this.#add(name, position, { kind: 'node', node, slot }),
    )
  }

  #connect(): void {
    const { index, nodes, outputs } = this.graph
    for (const node of nodes as Mutable<GraphNode>[]) {
      node.inputs = node.entry.inputs.map((name) => (name === '' ? undefined : this.#need(name, node)))
      for (const value of node.inputs) if (value !== undefined) this.#use(value, node)
      if (node.entry.subgraphs.length > 0) this.#enter(node)
    }
    for (const entry of index.outputs) {
      const value = this.lookUp(entry.name, Number.POSITIVE_INFINITY)
      if (value === undefined) throw this.#undefinedValue(entry.name, 'a graph output', entry.start)
      if (value.graph === this.graph) value.isOutput = true
      else this.captured.add(value)
      outputs.push(value)
    }
  }

  #enter(node: Mutable<GraphNode>): void {
    const captures = new Set<Value>()
    for (const { attribute, graph } of node.entry.subgraphs) {
      const inner = new Scope(this.graph.model, graph, { scope: this, node, attribute })
      node.subgraphs.push(inner.graph)
      for (const value of inner.captured) captures.add(value)
    }
    for (const value of captures) {
      node.captures.push(value)
      this.#use(value, node)
    }
  }

  #use(value: Mutable<Value>, node: GraphNode): void {
    if (value.graph !== this.graph) this.captured.add(value)
    else if (value.consumers.length === 0) value.consumers = [node]
    else if (value.consumers.at(-1) !== node) value.consumers.push(node)
  }

  #need(name: string, node: GraphNode): Value {
    const value = this.lookUp(name, node.position)
    if (value !== undefined) return value
    throw this.#undefinedValue(name, describeNode(node), node.entry.start)
  }

  /** What `name` means to the node at `position`. */
  lookUp(name: string, position: number): Value | undefined {
    const found = this.#definitions.get(name)
    if (found === undefined) return this.#parent?.scope.lookUp(name, this.#parent.node.position)
    if (!Array.isArray(found)) return found.position === position ? this.#outer(name) : found.value
    return nearest(found, position)?.value ?? this.#outer(name)
  }

  #outer(name: string): Value | undefined {
    return this.#parent?.scope.lookUp(name, this.#parent.node.position)
  }

  #add(name: string, position: number, origin: Origin): Value {
    const earlier = this.#definitions.get(name)
    const value: Value = {
      name: isUsable(name) && earlier === undefined && !this.#shadows(name) ? name : this.#freshName(name),
      written: name,
      graph: this.graph,
      origin,
      consumers: [],
      isOutput: false,
    }
    const definition = { position, value }
    if (earlier === undefined) this.#definitions.set(name, definition)
    else if (Array.isArray(earlier)) earlier.push(definition)
    else this.#definitions.set(name, [earlier, definition])
    this.graph.values.push(value)
    return value
  }

  #shadows(name: string): boolean {
    return this.#parent !== undefined && this.#parent.scope.#knows(name)
  }

  #knows(name: string): boolean {
    return this.#definitions.has(name) || this.#renamed.has(name) || this.#shadows(name)
  }

  #freshName(name: string): string {
    const names = allNames(this.graph.model)
    const copies = copiesOf(this.graph.model)
    let count = copies.get(name) ?? 1
    let fresh: string
    do fresh = `${name}__${++count}`
    while (names.has(fresh) || this.#knows(fresh))
    copies.set(name, count)
    this.#renamed.add(fresh)
    return fresh
  }

  #undefinedValue(name: string, reader: string, offset: number): ModelTestError {
    return new ModelTestError('INVALID_GRAPH', `${reader} reads "${name}", which nothing produces`, {
      file: this.graph.model.source.name,
      offset,
      hint: 'The graph is incomplete: no node, input or initializer has that name. Export the model again.',
    })
  }
}

/** onnxruntime's API keeps tensors in objects by name, and this one is lost there. */
function isUsable(name: string): boolean {
  return name !== '__proto__'
}

/** By bisection: definitions are in order of position. A node never reads its own output. */
function nearest(definitions: readonly Definition[], position: number): Definition | undefined {
  let [low, high] = [0, definitions.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (definitions[middle]!.position < position) low = middle + 1
    else high = middle
  }
  const later = definitions[low]?.position === position ? low + 1 : low
  return definitions[low - 1] ?? definitions[later]
}

const namesOfModels = new WeakMap<ModelIndex, Set<string>>()

const copiesOfModels = new WeakMap<ModelIndex, Map<string, number>>()

/** The last number behind each name: counted for the whole file, so that no search starts over. */
function copiesOf(model: ModelIndex): Map<string, number> {
  const known = copiesOfModels.get(model) ?? new Map<string, number>()
  copiesOfModels.set(model, known)
  return known
}

/** Every name in the file: asked for only when a name is reused. */
function allNames(model: ModelIndex): Set<string> {
  const known = namesOfModels.get(model)
  if (known !== undefined) return known
  const names = new Set<string>()
  const open = [model.graph]
  for (let graph = open.pop(); graph !== undefined; graph = open.pop()) {
    for (const { name } of [...graph.inputs, ...graph.initializers]) names.add(name)
    for (const node of graph.nodes) {
      for (const name of node.outputs) names.add(name)
      for (const subgraph of node.subgraphs) open.push(subgraph.graph)
    }
  }
  namesOfModels.set(model, names)
  return names
}
