/** Local functions: which one a node calls, and which ones a set of nodes needs. */
import type { FunctionEntry, ModelIndex, NodeEntry } from '../onnx/model-index.ts'

export function functionCalled(model: ModelIndex, node: NodeEntry): FunctionEntry | undefined {
  return model.functions.length === 0
    ? undefined
    : functionsByKey(model).get(key(node.domain, node.opType, node.overload))
}

/** The functions that the nodes call, directly or through others, in the order of the file. */
export function functionsNeeded(model: ModelIndex, nodes: Iterable<NodeEntry>): readonly FunctionEntry[] {
  if (model.functions.length === 0) return NONE
  const needed = new Set<FunctionEntry>()
  const open = [...called(model, nodes)]
  for (let callee = open.pop(); callee !== undefined; callee = open.pop()) {
    if (needed.has(callee)) continue
    needed.add(callee)
    for (const next of calledBy(model, callee)) open.push(next)
  }
  return needed.size === 0 ? NONE : [...needed].toSorted((a, b) => a.start - b.start)
}

const callees = new WeakMap<FunctionEntry, ReadonlySet<FunctionEntry>>()

function calledBy(model: ModelIndex, entry: FunctionEntry): ReadonlySet<FunctionEntry> {
  const known = callees.get(entry) ?? called(model, entry.nodes)
  callees.set(entry, known)
  return known
}

/** What nodes call themselves, or in their subgraphs. */
function called(model: ModelIndex, nodes: Iterable<NodeEntry>): Set<FunctionEntry> {
  const found = new Set<FunctionEntry>()
  const open = [...nodes]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const { graph } of node.subgraphs) for (const inner of graph.nodes) open.push(inner)
    const callee = functionCalled(model, node)
    if (callee !== undefined) found.add(callee)
  }
  return found
}

const NONE: readonly FunctionEntry[] = []

const byModel = new WeakMap<ModelIndex, Map<string, FunctionEntry>>()

function functionsByKey(model: ModelIndex): Map<string, FunctionEntry> {
  const known = byModel.get(model)
  if (known !== undefined) return known
  const functions = new Map(
    model.functions.map((entry) => [key(entry.domain, entry.name, entry.overload), entry]),
  )
  byModel.set(model, functions)
  return functions
}

function key(domain: string, name: string, overload: string): string {
  return JSON.stringify([domain === 'ai.onnx' ? '' : domain, name, overload])
}
