/**
 * A model -> its parts: the layers of the main graph and of every subgraph.
 *
 * The parts of the main graph, run one after another, compute what the model computes. The
 * bodies of If, Loop and Scan are split too; their parts read captured values as inputs.
 */
import type { ValueType } from '../onnx/value-type.ts'
import { isConstant } from '../onnx/constant.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { boundaryOf, outputsOf, type Part } from './part.ts'
import { partition } from './partition.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

export interface SplitOptions {
  /** What the names of parts start with: the model's file name without `.onnx`. */
  readonly stem: string
  /**
   * Sequences of op types that stay in one part when each is the only reader of the one before.
   * @default [['Conv', 'Clip']]
   */
  readonly groups?: readonly (readonly string[])[]
  readonly typeOf: (value: Value) => ValueType | undefined
  /** Values known without running, see `foldShapes`. */
  readonly folded?: ReadonlyMap<Value, Tensor>
  /**
   * Which tensors a runtime can be fed and fetched, by TensorProto.DataType. Of the others, those
   * that are only converted and moved stay inside a part; see `onlyMoved`.
   * @default all
   */
  readonly canCross?: (dataType: number) => boolean
}

export const DEFAULT_GROUPS: readonly (readonly string[])[] = [['Conv', 'Clip']]

export function splitGraph(graph: ScopedGraph, options: SplitOptions): Part[] {
  const parts: Part[] = []
  splitInto(parts, graph, `${options.stem}_layer`, '', options)
  return withUniqueNames(parts)
}

function splitInto(
  parts: Part[],
  graph: ScopedGraph,
  prefix: string,
  scope: string,
  options: SplitOptions,
): void {
  const { groups = DEFAULT_GROUPS, folded = NONE_KNOWN } = options
  const indices = nodeIndices(graph)
  const bound = (value: Value): string | undefined => whyBound(value, options)
  const sets = partition(graph, { groups, bound }).filter(
    ({ nodes }) => leaving(outputsOf(nodes), bound).length > 0,
  )
  for (const [n, { nodes, merged }] of sets.entries()) {
    const label = `${cleanName(nodes[0]!.entry.opType)}_${n}`
    const name = `${prefix}_${label}`
    const boundary = boundaryOf(nodes, folded)
    const outputs = leaving(boundary.outputs, bound)
    const positions = nodes.map((node) => indices[node.position]!)
    const part = { name, scope, graph, nodes, nodeIndices: positions, merged, ...boundary, outputs }
    if (graph.owner === undefined) parts.push(part)
    else if (canStandAlone(part, options)) parts.push(withTensorsOnly(part, options))
    for (const node of nodes) {
      const labels = node.subgraphs.length === 0 ? [] : branchLabels(node)
      for (const [at, body] of node.subgraphs.entries()) {
        const branch = labels[at]!
        const inner = nodes.length === 1 ? '' : `${cleanName(node.entry.opType)}_${indices[node.position]}_`
        splitInto(
          parts,
          body,
          `${name}_${inner}${branch}`,
          joinScope(scope, `${label}/${inner}${branch}`),
          options,
        )
      }
    }
  }
}

/** Less dead ends that cannot leave a model: they have nothing to show and nobody to serve. */
function leaving(outputs: readonly Value[], bound: (value: Value) => string | undefined): Value[] {
  return outputs.filter((value) => value.isOutput || value.consumers.length > 0 || bound(value) === undefined)
}

/**
 * Inside a body, sequences and the like come from the turn before or go to the next: no part can be
 * fed them or asked for them, and the node that holds the body tests what makes them.
 */
function canStandAlone({ inputs, outputs }: Part, options: SplitOptions): boolean {
  return (
    inputs.every((value) => isTensor(value, options)) && outputs.some((value) => isTensor(value, options))
  )
}

function withTensorsOnly(part: Part, options: SplitOptions): Part {
  const outputs = part.outputs.filter((value) => isTensor(value, options))
  return outputs.length === part.outputs.length ? part : { ...part, outputs }
}

/** What is not known counts as one. */
function isTensor(value: Value, { typeOf }: SplitOptions): boolean {
  return (typeOf(value)?.kind ?? 'tensor') === 'tensor'
}

const NONE_KNOWN: ReadonlyMap<Value, Tensor> = new Map()

function whyBound(value: Value, { typeOf, canCross }: SplitOptions): string | undefined {
  const type = typeOf(value)
  if (type === undefined) return undefined
  if (type.kind !== 'tensor') return `"${value.name}" is a ${type.kind}, which cannot be fed to a model`
  if (canCross === undefined || canCross(type.dataType) || !onlyMoved(value)) return undefined
  return `"${value.name}" has a data type that cannot be fed to a model`
}

/**
 * Runtimes run these in types that they cannot compute in, so models with them run as a whole and
 * must run in parts too. Where anything else touches such a value, the model is for another
 * runtime anyway, and is split as finely as any.
 */
function onlyMoved(value: Value): boolean {
  const { origin, consumers } = value
  return origin.kind === 'node' && [origin.node, ...consumers].every(({ entry }) => MOVERS.has(entry.opType))
}

const MOVERS = new Set(
  (
    'Cast CastLike QuantizeLinear DequantizeLinear DynamicQuantizeLinear Identity Reshape Flatten Squeeze Unsqueeze ' +
    'Transpose Concat Split Slice Gather GatherElements GatherND Expand Tile Pad Where ScatterElements ScatterND ' +
    'Shape Size If Loop Scan'
  ).split(' '),
)

/** Positions among the nodes that are no Constants. */
function nodeIndices(graph: ScopedGraph): number[] {
  let next = 0
  return graph.nodes.map((node) => (isConstant(node.entry) ? -1 : next++))
}

/** `then_branch` reads `then`; several graphs of one attribute are numbered. */
function branchLabels({ entry: { subgraphs } }: GraphNode): string[] {
  const totals = new Map<string, number>()
  for (const { attribute } of subgraphs) totals.set(attribute, (totals.get(attribute) ?? 0) + 1)
  const seen = new Map<string, number>()
  return subgraphs.map(({ attribute }) => {
    const number = seen.get(attribute) ?? 0
    seen.set(attribute, number + 1)
    const label = cleanName(attribute.replace(/_branch$/, ''))
    return totals.get(attribute) === 1 ? label : `${label}${number}`
  })
}

function joinScope(outer: string, inner: string): string {
  return outer === '' ? inner : `${outer}/${inner}`
}

/** Names become file and test names, and a model may call an operator anything. */
function cleanName(text: string): string {
  const clean = text.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, MAX_LABEL)
  return clean === '' ? '_' : clean
}

const MAX_LABEL = 64

/** An operator called `If_0_then_Relu` can end up with the name of another part. */
function withUniqueNames(parts: Part[]): Part[] {
  const taken = new Set<string>()
  const copies = new Map<string, number>()
  return parts.map((part) => {
    let { name } = part
    let count = copies.get(part.name) ?? 1
    while (taken.has(name)) name = `${part.name}~${++count}`
    copies.set(part.name, count)
    taken.add(name)
    return name === part.name ? part : { ...part, name }
  })
}
