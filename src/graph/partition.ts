/**
 * Which nodes stand together: a graph -> sets of nodes, in an order that runs.
 *
 * Each node stands alone, except that groups of operators along the dataflow stay together,
 * and so do nodes that pass each other values which cannot leave a model. Whatever would make
 * two sets wait for each other is merged, so the sets always compose to the graph.
 */
import { isConstant } from '../onnx/constant.ts'
import { consumersOf, producersOf, topologicalOrder } from './order.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

export interface NodeSet {
  /** In an order that runs. */
  readonly nodes: readonly GraphNode[]
  readonly merged: string | undefined
}

export interface PartitionOptions {
  /** Sequences of op types that stay together. */
  readonly groups: readonly (readonly string[])[]
  /** Why a value cannot be passed between models; undefined when it can. */
  readonly bound: (value: Value) => string | undefined
}

export function partition(graph: ScopedGraph, { groups, bound }: PartitionOptions): NodeSet[] {
  const nodes = topologicalOrder(graph).filter((node) => !isConstant(node.entry))
  const sets = new DisjointSets(graph.nodes.length)
  const reasons = new Map<GraphNode, string>()
  for (const chain of groupChains(nodes, groups)) sets.unite(chain)
  for (const node of nodes) {
    for (const value of node.outputs) {
      const reason = value === undefined || value.consumers.length === 0 ? undefined : bound(value)
      if (reason === undefined) continue
      reasons.set(node, reason)
      sets.unite([node, ...value!.consumers])
    }
  }
  if (sets.isTrivial) return nodes.map((node) => ({ nodes: [node], merged: undefined }))
  mergeCycles(nodes, sets, reasons)
  return orderedSets(nodes, sets).map((members) => ({
    nodes: members,
    merged: members.map((node) => reasons.get(node)).find((reason) => reason !== undefined),
  }))
}

/** Chains of op types where each node is all that reads what the one before gives. */
function groupChains(nodes: readonly GraphNode[], groups: readonly (readonly string[])[]): GraphNode[][] {
  const taken = new Set<GraphNode>()
  const chains: GraphNode[][] = []
  const longestFirst = groups.toSorted((a, b) => b.length - a.length)
  for (const node of nodes) {
    if (taken.has(node)) continue
    for (const group of longestFirst) {
      const chain = chainFrom(node, group, taken)
      if (chain === undefined) continue
      chains.push(chain)
      for (const member of chain) taken.add(member)
      break
    }
  }
  return chains
}

function chainFrom(
  first: GraphNode,
  group: readonly string[],
  taken: ReadonlySet<GraphNode>,
): GraphNode[] | undefined {
  const chain: GraphNode[] = []
  let node: GraphNode | undefined = first
  for (const opType of group) {
    if (node === undefined || node.entry.opType !== opType || taken.has(node)) return undefined
    chain.push(node)
    node = soleConsumer(node)
  }
  return chain.length > 1 ? chain : undefined
}

function soleConsumer(node: GraphNode): GraphNode | undefined {
  if (node.outputs.some((value) => value?.isOutput)) return undefined
  const consumers = consumersOf(node)
  return consumers.size === 1 ? [...consumers][0] : undefined
}

/** Sets that depend on each other in a circle become one: Tarjan's strong components, without recursion. */
function mergeCycles(nodes: readonly GraphNode[], sets: DisjointSets, reasons: Map<GraphNode, string>): void {
  const circles = strongComponents(edgesBetween(nodes, sets)).filter(({ length }) => length > 1)
  if (circles.length === 0) return
  const circleOf = new Map(circles.flatMap((roots, circle) => roots.map((root) => [root, circle] as const)))
  const members = circles.map((): GraphNode[] => [])
  for (const node of nodes) {
    const circle = circleOf.get(sets.find(node.position))
    if (circle !== undefined) members[circle]!.push(node)
  }
  for (const circle of members) {
    const first = circle[0]!
    sets.unite(circle)
    reasons.set(first, reasons.get(first) ?? 'the nodes of a group depend on each other through others')
  }
}

function edgesBetween(nodes: readonly GraphNode[], sets: DisjointSets): Map<number, Set<number>> {
  const edges = new Map<number, Set<number>>()
  for (const node of nodes) {
    const to = sets.find(node.position)
    if (!edges.has(to)) edges.set(to, new Set())
    for (const producer of producersOf(node)) {
      const from = sets.find(producer.position)
      if (from === to || isConstant(producer.entry)) continue
      if (!edges.has(from)) edges.set(from, new Set())
      edges.get(from)!.add(to)
    }
  }
  return edges
}

function strongComponents(edges: ReadonlyMap<number, ReadonlySet<number>>): number[][] {
  const index = new Map<number, number>()
  const low = new Map<number, number>()
  const onStack = new Set<number>()
  const stack: number[] = []
  const components: number[][] = []
  for (const root of edges.keys()) {
    if (index.has(root)) continue
    const work: { vertex: number; rest: Iterator<number> }[] = []
    const open = (vertex: number): void => {
      index.set(vertex, index.size)
      low.set(vertex, index.get(vertex)!)
      stack.push(vertex)
      onStack.add(vertex)
      work.push({ vertex, rest: (edges.get(vertex) ?? new Set()).values() })
    }
    open(root)
    while (work.length > 0) {
      const { vertex, rest } = work.at(-1)!
      const { value: next, done } = rest.next()
      if (!done) {
        if (!index.has(next)) open(next)
        else if (onStack.has(next)) low.set(vertex, Math.min(low.get(vertex)!, index.get(next)!))
        continue
      }
      work.pop()
      const parent = work.at(-1)
      if (parent !== undefined) low.set(parent.vertex, Math.min(low.get(parent.vertex)!, low.get(vertex)!))
      if (low.get(vertex) === index.get(vertex)) components.push(popComponent(stack, onStack, vertex))
    }
  }
  return components
}

function popComponent(stack: number[], onStack: Set<number>, root: number): number[] {
  const component = stack.splice(stack.lastIndexOf(root))
  for (const vertex of component) onStack.delete(vertex)
  return component
}

/** The sets by their first node in graph order, each after those it depends on. */
function orderedSets(nodes: readonly GraphNode[], sets: DisjointSets): GraphNode[][] {
  const members = new Map<number, GraphNode[]>()
  for (const node of nodes) {
    const root = sets.find(node.position)
    const list = members.get(root)
    if (list === undefined) members.set(root, [node])
    else list.push(node)
  }
  const dependencies = new Map<number, Set<number>>()
  for (const [from, targets] of edgesBetween(nodes, sets)) {
    for (const to of targets) dependencies.set(to, (dependencies.get(to) ?? new Set()).add(from))
  }
  const ordered: GraphNode[][] = []
  const placed = new Set<number>()
  for (const root of members.keys())
    place(root, dependencies, placed, (set) => ordered.push(members.get(set)!))
  return ordered
}

/** Depth first, without recursion: a set is placed once all it depends on are. */
function place(
  root: number,
  dependencies: ReadonlyMap<number, ReadonlySet<number>>,
  placed: Set<number>,
  emit: (set: number) => void,
): void {
  const work = [root]
  while (work.length > 0) {
    const set = work.at(-1)!
    const before = work.length
    if (!placed.has(set)) {
      for (const dependency of dependencies.get(set) ?? []) if (!placed.has(dependency)) work.push(dependency)
      if (work.length > before) continue
      placed.add(set)
      emit(set)
    }
    work.pop()
  }
}

class DisjointSets {
  isTrivial = true
  readonly #parent: Int32Array

  constructor(size: number) {
    this.#parent = Int32Array.from({ length: size }, (_, at) => at)
  }

  find(at: number): number {
    const parent = this.#parent
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!
      at = parent[at]!
    }
    return at
  }

  unite(nodes: readonly GraphNode[]): void {
    const first = nodes[0]
    if (first === undefined) return
    for (const node of nodes) {
      const [root, other] = [this.find(first.position), this.find(node.position)]
      if (root === other) continue
      this.#parent[other] = root
      this.isTrivial = false
    }
  }
}
