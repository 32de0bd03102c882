/**
 * What a graph demands of the open dimensions of its inputs: weights, windows, partners.
 *
 * One walk over the nodes in order, through bodies too, with the axes of each value as far as they
 * are known. No shape inference: operators that are not listed end the trail, and what types say of
 * their outputs starts it again.
 */
import { isConstant } from '../onnx/constant.ts'
import type { Dim } from '../onnx/value-type.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { listMade } from './axis-lists.ts'
import { NodeStep } from './axis-rules.ts'
import type { Axes } from './axis-step.ts'
import { foldShapes } from './fold-shapes.ts'
import type { TypeTable } from './infer-types.ts'
import { Argument } from './input-arguments.ts'
import { Demands, openAxis } from './input-axes.ts'
import { topologicalOrder } from './order.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

/** The dimension of an input: its symbol, or its place where it has none. */
export function dimId(input: string, axis: number, dim: Dim): string {
  return typeof dim === 'string' ? `symbol ${dim}` : `axis ${axis} of ${input}`
}

export function demandsOf(graph: ScopedGraph, types: TypeTable): Demands {
  const trail = new Trail(graph, types)
  trail.graph(graph)
  return trail.demands
}

/** Shapes of values that types leave open, as far as they follow; open dimensions are undefined. */
export function followedShapes(graph: ScopedGraph, types: TypeTable): Map<Value, (number | undefined)[]> {
  const trail = new Trail(graph, types)
  trail.graph(graph)
  return new Map(
    [...trail.axes].map(([value, axes]) => [
      value,
      axes.map((axis) => (typeof axis === 'number' ? axis : undefined)),
    ]),
  )
}

class Trail {
  readonly demands = new Demands()
  readonly #types: TypeTable
  readonly #folded: ReadonlyMap<Value, Tensor>
  readonly axes = new Map<Value, Axes>()
  /** Short lists of sizes, as shape arithmetic makes them. */
  readonly #lists = new Map<Value, Axes>()
  readonly #symbols = new Set<string>()

  constructor(graph: ScopedGraph, types: TypeTable) {
    this.#types = types
    this.#folded = foldShapes(graph, types)
    for (const value of graph.inputs) {
      const type = types.get(value)
      if (type?.kind !== 'tensor' || type.shape === undefined) continue
      for (const dim of type.shape) if (typeof dim === 'string') this.#symbols.add(dim)
      this.axes.set(
        value,
        type.shape.map((dim, axis) =>
          typeof dim === 'number' ? dim : openAxis(dimId(value.written, axis, dim)),
        ),
      )
    }
  }

  graph(graph: ScopedGraph): void {
    for (const node of topologicalOrder(graph)) {
      if (isConstant(node.entry)) continue
      this.#link(node)
      for (const body of node.subgraphs) this.graph(body)
      const made = node.entry.opType === 'If' ? this.#branch(node) : this.#step(node)
      for (const [slot, value] of node.outputs.entries()) {
        if (value !== undefined) this.#set(value, made?.[slot])
      }
    }
  }

  #step(node: GraphNode): readonly (Axes | undefined)[] | undefined {
    const argument = new Argument(node, 0, this.#types, this.#folded)
    const listOf = (slot: number): Axes | undefined => this.#listOf(argument, slot)
    const list = listMade(argument, listOf, (value) => this.#axesOf(value))
    const output = node.outputs[0]
    if (list !== undefined && output !== undefined) this.#lists.set(output, list)
    return new NodeStep(argument, this.demands, (value) => this.#axesOf(value), listOf).outputs()
  }

  #listOf(argument: Argument, slot: number): Axes | undefined {
    const value = argument.node.inputs[slot]
    const list = value === undefined ? undefined : this.#lists.get(value)
    return list ?? argument.numbers(slot)
  }

  /** What the first branch with a trail gives. */
  #branch(node: GraphNode): readonly (Axes | undefined)[] {
    const bodies = node.subgraphs.toSorted((a, b) => Number(isThen(b)) - Number(isThen(a)))
    const made: (Axes | undefined)[] = []
    for (const { outputs } of bodies) {
      for (const [slot, value] of outputs.entries()) made[slot] ??= this.#axesOf(value)
    }
    return made
  }

  #link(node: GraphNode): void {
    if (node.entry.opType !== 'Loop') return
    for (const body of node.subgraphs) {
      for (const [slot, formal] of body.inputs.entries()) {
        const outer = slot < 2 ? undefined : node.inputs[slot]
        const axes = outer === undefined ? undefined : this.#axesOf(outer)
        if (axes !== undefined) this.axes.set(formal, axes)
      }
    }
  }

  #set(value: Value, made: Axes | undefined): void {
    const declared = this.#declared(value)
    if (made !== undefined && declared !== undefined && made.length === declared.length) {
      for (const [at, axis] of declared.entries()) this.demands.equal(made[at], axis)
      this.axes.set(
        value,
        made.map((axis, at) => axis ?? declared[at]),
      )
    } else if (made !== undefined || declared !== undefined) this.axes.set(value, (made ?? declared)!)
  }

  #axesOf(value: Value): Axes | undefined {
    const known = this.axes.get(value)
    if (known !== undefined) return known
    const declared = this.#declared(value)
    if (declared !== undefined) this.axes.set(value, declared)
    return declared
  }

  #declared(value: Value): Axes | undefined {
    const type = this.#types.get(value)
    if (type?.kind !== 'tensor') return undefined
    return type.shape?.map((dim) => {
      if (typeof dim === 'number') return dim
      return typeof dim === 'string' && this.#symbols.has(dim) ? openAxis(dimId('', 0, dim)) : undefined
    })
  }
}

function isThen({ owner }: ScopedGraph): boolean {
  return owner?.attribute === 'then_branch'
}
