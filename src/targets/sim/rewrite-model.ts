/**
 * A model as a chip would compute it: ScopedGraph + StoragePlan -> ModelProto.
 *
 * Stitched from slices like every model here, so that unknown fields survive and weights are
 * copied as bytes, or stay outside. A node that gives "y" gives "y__raw" instead, and rounding
 * makes "y" of it: readers, bodies of control flow and outputs of the model keep their names.
 * What the model is given keeps its name, so there the rounded value is "x__stored".
 *
 * Where a chip accumulates in float64, the nodes that sum and for which onnxruntime has such a
 * kernel (`WIDE_OPS`; not Conv) run in float64 between two Casts.
 */
import { MessageWriter } from '../../bytes/wire-writer.ts'
import { WireReader } from '../../bytes/wire-reader.ts'
import { qualifiedName } from '../../graph/dtype-rules.ts'
import type { TypeTable } from '../../graph/infer-types.ts'
import { topologicalOrder } from '../../graph/order.ts'
import type { GraphNode, ScopedGraph, Value } from '../../graph/resolve.ts'
import { addConstant, addWeight, type WeightPolicy } from '../../graph/weights.ts'
import { isConstant } from '../../onnx/constant.ts'
import { GRAPH, MODEL, OPSET } from '../../onnx/fields.ts'
import type { ModelIndex, ValueEntry } from '../../onnx/model-index.ts'
import { readValueInfoType, valueInfo } from '../../onnx/value-type.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import type { SimChip } from './chip.ts'
import { MICROSOFT } from './new-node.ts'
import { castNode, type RoundingContext, roundingNodes, type SimRange } from './rounding.ts'
import { stitchNode } from './stitch-node.ts'
import { type FloatDType, floatDtype, type StoragePlan } from './stored-values.ts'

export interface Rewrite {
  readonly main: ScopedGraph
  readonly types: TypeTable
  readonly plan: StoragePlan
  readonly chip: SimChip
  readonly rangeOf: (value: Value) => SimRange | undefined
  readonly weights: WeightPolicy
}

export function rewriteModel(rewrite: Rewrite): MessageWriter {
  return new Rewriter(rewrite).model()
}

/** The opset of the default domain; undefined when the model does not import it. */
export function defaultOpset({ opsets }: ModelIndex): number | undefined {
  return opsets.find(({ domain }) => domain === '' || domain === 'ai.onnx')?.version
}

/** Data stays in the message or outside, wherever it is. */
export const AS_IT_IS: WeightPolicy = { kind: 'reference', location: '', minBytes: Number.POSITIVE_INFINITY }

/** Older models may use no initializer that is not an input too. */
const FIRST_IR_WITH_PLAIN_INITIALIZERS = 4
/** Imported where a model has only other domains. */
const OPSET_OF_NEW_NODES = 17

class Rewriter {
  readonly #rewrite: Rewrite
  readonly #model: ModelIndex
  readonly #names: FreshNames
  readonly #constants = new Map<string, { readonly name: string; readonly value: Tensor }>()
  readonly #context: RoundingContext
  /** What a value is called where the chip computes it, for those that are rounded. */
  readonly #raw = new Map<Value, string>()
  readonly #stored = new Map<Value, string>()

  constructor(rewrite: Rewrite) {
    const { main, types } = rewrite
    this.#rewrite = rewrite
    this.#model = main.model
    this.#names = new FreshNames(main)
    this.#context = {
      opset: defaultOpset(main.model) ?? OPSET_OF_NEW_NODES,
      hasHalf: [...types.keys()].some((value) => floatDtype(types, value) === 'float16'),
      freshName: (wish) => this.#names.fresh(wish),
      constant: (wish, value) => this.#constant(wish, value),
    }
    for (const value of rewrite.plan.rounded) {
      const keepsName = value.origin.kind === 'input' || isGiven(value)
      if (keepsName) this.#stored.set(value, this.#names.fresh(`${value.name}__stored`))
      else this.#raw.set(value, this.#names.fresh(`${value.name}__raw`))
    }
  }

  model(): MessageWriter {
    const { source, rest, irVersion, functions } = this.#model
    const graph = this.#graph(this.#rewrite.main)
    for (const { name, value } of this.#constants.values()) addConstant(graph, name, value)
    const message = new MessageWriter()
    const hasConstants = this.#constants.size > 0
    message.varintField(
      MODEL.irVersion,
      hasConstants ? Math.max(irVersion, FIRST_IR_WITH_PLAIN_INITIALIZERS) : irVersion,
    )
    for (const { field, start, stop } of rest) {
      if (field !== MODEL.irVersion) message.slice({ source, start, stop })
    }
    for (const [domain, version] of this.#missingImports()) {
      message.messageField(
        MODEL.opsetImport,
        new MessageWriter().stringField(OPSET.domain, domain).varintField(OPSET.version, version),
      )
    }
    message.messageField(MODEL.graph, graph)
    for (const { start, stop } of functions) message.sliceField(MODEL.functions, { source, start, stop })
    return message
  }

  #missingImports(): [string, number][] {
    const { chip, plan } = this.#rewrite
    if (plan.rounded.size === 0) return []
    const missing: [string, number][] = []
    if (defaultOpset(this.#model) === undefined) missing.push(['', OPSET_OF_NEW_NODES])
    const hasMicrosoft = this.#model.opsets.some(({ domain }) => domain === MICROSOFT)
    if (chip.storage === 'int8' && !hasMicrosoft) missing.push([MICROSOFT, 1])
    return missing
  }

  #graph(graph: ScopedGraph): MessageWriter {
    const { index } = graph
    const { source } = this.#model
    const message = new MessageWriter()
    const given = graph.values.filter(({ origin }) => origin.kind !== 'node')
    for (const value of given) this.#round(message, value)
    for (const node of constantsFirst(graph)) this.#node(message, node)
    for (const value of given) if (value.origin.kind === 'initializer') this.#weight(message, value)
    const byEntry = new Map(given.map((value) => [(value.origin as { entry: ValueEntry }).entry, value]))
    for (const entry of index.inputs)
      message.messageField(GRAPH.input, this.#declaration(entry, byEntry.get(entry)))
    for (const [slot, entry] of index.outputs.entries())
      message.messageField(GRAPH.output, this.#declaration(entry, graph.outputs[slot]))
    const renamed = new Set(
      graph.values.filter(({ name, written }) => name !== written).map((v) => v.written),
    )
    for (const entry of index.valueInfos) {
      if (!renamed.has(entry.name))
        message.sliceField(GRAPH.valueInfo, { source, start: entry.start, stop: entry.stop })
    }
    for (const { start, stop } of index.rest) message.slice({ source, start, stop })
    return message
  }

  /** Names change only where a file uses one twice. */
  #declaration(entry: ValueEntry, value: Value | undefined): MessageWriter {
    const { source } = this.#model
    if (value === undefined || value.name === entry.name)
      return new MessageWriter().slice({ source, start: entry.start, stop: entry.stop })
    return valueInfo(value.name, readValueInfoType(new WireReader(source), entry.start, entry.stop))
  }

  /** References of our own are made in the main graph only, where the runtime looks for them. */
  #weight(message: MessageWriter, value: Value): void {
    const { weights, main } = this.#rewrite
    const policy = weights.kind === 'reference' && value.graph !== main ? AS_IT_IS : weights
    addWeight(message, value, policy, this.#raw.get(value) ?? value.name)
  }

  #node(message: MessageWriter, node: GraphNode): void {
    const inputs = node.inputs.map((value, slot) => this.#inputName(node, value, slot))
    const outputs = node.outputs.map((value) =>
      value === undefined ? '' : (this.#raw.get(value) ?? value.name),
    )
    const wide = this.#wideType(node)
    const after = wide === undefined ? [] : this.#widen(message, node, wide, inputs, outputs)
    const isSame =
      node.subgraphs.length === 0 &&
      inputs.every((name, slot) => name === node.entry.inputs[slot]) &&
      outputs.every((name, slot) => name === node.entry.outputs[slot])
    if (isSame) {
      const { start, stop } = node.entry
      message.sliceField(GRAPH.node, { source: this.#model.source, start, stop })
    } else {
      const bodies = node.subgraphs.map((body) => this.#graph(body))
      message.messageField(GRAPH.node, stitchNode(node, inputs, outputs, bodies))
    }
    for (const one of after) message.messageField(GRAPH.node, one)
    for (const value of node.outputs) if (value !== undefined) this.#round(message, value)
  }

  #inputName(node: GraphNode, value: Value | undefined, slot: number): string {
    if (value === undefined) return ''
    if (this.#rewrite.plan.readsExactly(node, slot)) return this.#raw.get(value) ?? value.name
    return this.#stored.get(value) ?? value.name
  }

  #round(message: MessageWriter, value: Value): void {
    const [raw, stored] = [this.#raw.get(value), this.#stored.get(value)]
    if (raw === undefined && stored === undefined) return
    const request = {
      dtype: floatDtype(this.#rewrite.types, value)!,
      from: raw ?? value.name,
      to: stored ?? value.name,
      range: this.#rewrite.rangeOf(value),
    }
    for (const node of roundingNodes(this.#rewrite.chip.storage, request, this.#context))
      message.messageField(GRAPH.node, node)
  }

  /** The float type that a node gives, if it can run in float64 instead. */
  #wideType(node: GraphNode): FloatDType | undefined {
    const [output, second] = node.outputs
    if (this.#rewrite.chip.accumulate !== 'float64' || !WIDE_OPS.has(qualifiedName(node.entry)))
      return undefined
    if (output === undefined || second !== undefined) return undefined
    const dtype = floatDtype(this.#rewrite.types, output)
    const inputs = node.inputs.filter((value) => value !== undefined)
    const areKnown = inputs.every((value) => this.#rewrite.types.has(value))
    return dtype === 'float64' || !areKnown ? undefined : dtype
  }

  /** Puts Casts before a node, changes its names to theirs, and gives the Cast for after it. */
  #widen(
    message: MessageWriter,
    node: GraphNode,
    dtype: FloatDType,
    inputs: string[],
    outputs: string[],
  ): MessageWriter[] {
    for (const [slot, value] of node.inputs.entries()) {
      if (value === undefined || floatDtype(this.#rewrite.types, value) === undefined) continue
      const name = this.#names.fresh(`${value.name}__wide`)
      message.messageField(GRAPH.node, castNode(inputs[slot]!, name, 'float64'))
      inputs[slot] = name
    }
    const [narrow, name] = [outputs[0]!, this.#names.fresh(`${outputs[0]!}__wide`)]
    outputs[0] = name
    return [castNode(name, narrow, dtype)]
  }

  #constant(wish: string, value: () => Tensor): string {
    const known = this.#constants.get(wish)
    if (known !== undefined) return known.name
    const name = this.#names.fresh(wish)
    this.#constants.set(wish, { name, value: value() })
    return name
  }
}

/** Sums for which onnxruntime's CPU provider has float64 kernels. */
const WIDE_OPS = new Set('MatMul Gemm ReduceSum ReduceMean Softmax LogSoftmax LayerNormalization'.split(' '))

/** An initializer that can be read under its own name: all but those that are outputs, unless also inputs. */
function isGiven({ origin, isOutput, graph, written }: Value): boolean {
  if (origin.kind !== 'initializer') return false
  return !isOutput || graph.index.inputs.some(({ name }) => name === written)
}

/** Files may have a constant after its reader. */
function constantsFirst(graph: ScopedGraph): GraphNode[] {
  const order = topologicalOrder(graph)
  return [
    ...order.filter(({ entry }) => isConstant(entry)),
    ...order.filter(({ entry }) => !isConstant(entry)),
  ]
}

/** Names that no value of the model has, in any scope. */
class FreshNames {
  readonly #taken = new Set<string>()
  readonly #counts = new Map<string, number>()

  constructor(main: ScopedGraph) {
    this.#note(main)
  }

  fresh(wish: string): string {
    let [name, count] = [wish, this.#counts.get(wish) ?? 1]
    while (this.#taken.has(name)) name = `${wish}_${++count}`
    this.#counts.set(wish, count)
    this.#taken.add(name)
    return name
  }

  #note(graph: ScopedGraph): void {
    for (const { name, written } of graph.values) this.#taken.add(name).add(written)
    for (const { name } of graph.index.valueInfos) this.#taken.add(name)
    for (const node of graph.nodes) for (const body of node.subgraphs) this.#note(body)
  }
}
