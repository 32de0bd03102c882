/**
 * Topological order: producers before consumers, otherwise as in the file.
 *
 * A file that is in order already keeps its order; constants need not come first. O(n log n) at worst, linear when sorted.
 */
import { ModelTestError } from '../errors.ts'
import { isConstant } from '../onnx/constant.ts'
import { describeNode, type GraphNode, readsOf, type ScopedGraph } from './resolve.ts'

export function topologicalOrder(graph: ScopedGraph): readonly GraphNode[] {
  const known = orders.get(graph)
  if (known !== undefined) return known
  const order = isSorted(graph) ? constantsInTime(graph) : sort(graph)
  orders.set(graph, order)
  return order
}

const orders = new WeakMap<ScopedGraph, readonly GraphNode[]>()

/** A file may list a constant after its readers, since it is none of the steps. */
function constantsInTime({ nodes }: ScopedGraph): readonly GraphNode[] {
  const constants = nodes.filter(({ entry }) => isConstant(entry))
  const isLate = constants.some((node) =>
    [...consumersOf(node)].some(({ position }) => position < node.position),
  )
  return isLate ? [...constants, ...nodes.filter(({ entry }) => !isConstant(entry))] : nodes
}

function sort(graph: ScopedGraph): readonly GraphNode[] {
  const { nodes } = graph
  const waiting = nodes.map((node) => producersOf(node).size)
  const ready = new PositionHeap()
  for (const node of nodes) if (waiting[node.position] === 0) ready.push(node.position)
  const order: GraphNode[] = []
  for (let position = ready.pop(); position !== undefined; position = ready.pop()) {
    const node = nodes[position]!
    order.push(node)
    for (const consumer of consumersOf(node)) {
      if (--waiting[consumer.position]! === 0) ready.push(consumer.position)
    }
  }
  if (order.length < nodes.length)
    throw cycle(
      graph,
      nodes.find((node) => waiting[node.position]! > 0)!,
    )
  return order
}

/** The nodes of the same graph whose outputs a node reads, each once. */
export function producersOf(node: GraphNode): Set<GraphNode> {
  const producers = new Set<GraphNode>()
  for (const { origin, graph } of readsOf(node)) {
    if (origin.kind === 'node' && graph === node.graph) producers.add(origin.node)
  }
  return producers
}

export function consumersOf(node: GraphNode): Set<GraphNode> {
  const consumers = new Set<GraphNode>()
  for (const output of node.outputs) for (const consumer of output?.consumers ?? []) consumers.add(consumer)
  return consumers
}

function isSorted(graph: ScopedGraph): boolean {
  return graph.nodes.every((node) => {
    for (const { origin, graph: home } of readsOf(node)) {
      if (origin.kind !== 'node' || home !== graph || isConstant(origin.node.entry)) continue
      if (origin.node.position >= node.position) return false
    }
    return true
  })
}

function cycle(graph: ScopedGraph, node: GraphNode): ModelTestError {
  return new ModelTestError('INVALID_GRAPH', `${describeNode(node)} depends on its own output`, {
    file: graph.model.source.name,
    offset: node.entry.start,
    hint: 'The nodes form a cycle, which no runtime can execute. Export the model again.',
  })
}

/** A binary heap of positions, smallest first. */
class PositionHeap {
  readonly #items: number[] = []

  push(item: number): void {
    const items = this.#items
    let at = items.push(item) - 1
    for (let up = (at - 1) >> 1; at > 0 && items[up]! > item; at = up, up = (at - 1) >> 1)
      items[at] = items[up]!
    items[at] = item
  }

  pop(): number | undefined {
    const items = this.#items
    const [first, last] = [items[0], items.pop()]
    if (items.length === 0 || last === undefined) return first
    let at = 0
    for (let down = 1; down < items.length; down = 2 * at + 1) {
      if (down + 1 < items.length && items[down + 1]! < items[down]!) down++
      if (items[down]! >= last) break
      items[at] = items[down]!
      at = down
    }
    items[at] = last
    return first
  }
}
