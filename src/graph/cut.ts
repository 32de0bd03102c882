/**
 * The nodes between two sets of values: `from` up to `to`.
 *
 * Walks back from `to` and stops at `from`. Without `from`, the walk ends at the graph's
 * inputs: a prefix of the model.
 */
import { ModelTestError } from '../errors.ts'
import { isConstant } from '../onnx/constant.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { topologicalOrder } from './order.ts'
import type { Boundary } from './part.ts'
import { type GraphNode, isWeight, readsOf, type ScopedGraph, type Value } from './resolve.ts'

export interface Cut extends Boundary {
  /** In an order that runs. */
  readonly nodes: readonly GraphNode[]
}

/** The nodes that `to` needs, all the way back to what comes from outside the graph. */
export function cutPrefix(graph: ScopedGraph, to: readonly Value[]): Cut {
  return cut(graph, new Set(), to)
}

/** The nodes between `from` and `to`; an error if `to` needs more than `from`, or less. */
export function cutRange(graph: ScopedGraph, from: readonly Value[], to: readonly Value[]): Cut {
  const result = cut(graph, new Set(from), to)
  const given = new Set(from)
  const missing = result.inputs.filter((value) => !given.has(value))
  if (missing.length > 0) throw incomplete(graph, from, to, missing)
  const reached = new Set(result.inputs)
  const unused = from.filter((value) => !reached.has(value))
  if (unused.length > 0) throw unreached(graph, unused, to)
  return { ...result, inputs: from }
}

/** A value of the main graph by the name it has in the file. */
export function findValue(graph: ScopedGraph, name: string): Value {
  const found =
    graph.values.find((value) => value.name === name) ?? graph.values.find((value) => value.written === name)
  if (found !== undefined) return found
  const close = closest(
    name,
    graph.values.map((value) => value.name),
  )
  throw new ModelTestError('UNKNOWN_VALUE', `no value of the main graph is called "${name}"`, {
    file: graph.model.source.name,
    hint:
      close === undefined
        ? 'List the values with `vitest-onnx inspect --values`.'
        : `Did you mean "${close}"?`,
  })
}

function cut(graph: ScopedGraph, from: ReadonlySet<Value>, to: readonly Value[]): Cut {
  const needed = new Set<GraphNode>()
  const [inputs, weights] = [new Set<Value>(), new Set<Value>()]
  const open = [...to]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    const { origin } = value
    if (from.has(value)) inputs.add(value)
    else if (isWeight(value)) weights.add(value)
    else if (origin.kind !== 'node' || value.graph !== graph) inputs.add(value)
    else if (!needed.has(origin.node)) {
      needed.add(origin.node)
      for (const read of readsOf(origin.node)) open.push(read)
    }
  }
  const nodes = topologicalOrder(graph).filter((node) => needed.has(node) && !isConstant(node.entry))
  return { nodes, inputs: [...inputs], outputs: to, weights: [...weights], folded: NONE_FOLDED }
}

const NONE_FOLDED: ReadonlyMap<Value, Tensor> = new Map()

function incomplete(
  graph: ScopedGraph,
  from: readonly Value[],
  to: readonly Value[],
  missing: readonly Value[],
): ModelTestError {
  const all = [...from, ...missing].map(({ name }) => name)
  return new ModelTestError(
    'INCOMPLETE_CUT',
    `${quoted(to)} cannot be computed from ${quoted(from)} alone: ${quoted(missing)} is needed too`,
    { file: graph.model.source.name, hint: `Cut there as well: --from ${all.join(',')}` },
  )
}

function unreached(graph: ScopedGraph, unused: readonly Value[], to: readonly Value[]): ModelTestError {
  return new ModelTestError('INCOMPLETE_CUT', `${quoted(unused)} does not lead to ${quoted(to)}`, {
    file: graph.model.source.name,
    hint: 'Leave it out of --from, or name an output that depends on it.',
  })
}

function quoted(values: readonly Value[]): string {
  const names = values.slice(0, MAX_LISTED).map(({ name }) => `"${name}"`)
  return values.length > MAX_LISTED
    ? `${names.join(', ')} and ${values.length - MAX_LISTED} more`
    : names.join(', ')
}

const MAX_LISTED = 8

/** The name that differs least: without case and punctuation, or as the beginning or end. */
function closest(name: string, names: readonly string[]): string | undefined {
  const wanted = plain(name)
  if (wanted === '') return undefined
  return (
    names.find((candidate) => plain(candidate) === wanted) ??
    names.find((candidate) => plain(candidate).endsWith(wanted) || plain(candidate).startsWith(wanted))
  )
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}
