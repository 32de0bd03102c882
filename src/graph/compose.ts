/**
 * A model made of some nodes of another: what to hold, read and give -> ModelProto.
 *
 * The new model is stitched from slices: its cost is that of the nodes and weights it holds.
 * Names are those of the values, so models cut from one graph fit together by name.
 */
import { MessageWriter } from '../bytes/wire-writer.ts'
import { ENTRY, GRAPH, MODEL, OPSET } from '../onnx/fields.ts'
import type { ModelIndex, ValueEntry } from '../onnx/model-index.ts'
import { readValueExtras, type ValueExtras } from '../onnx/value-extras.ts'
import { valueInfo, type ValueType } from '../onnx/value-type.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { functionsNeeded } from './functions.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'
import { keepsNames, rewriteNode } from './rewrite.ts'
import { addConstant, addWeight, type WeightPolicy } from './weights.ts'

export interface Composition {
  readonly model: ModelIndex
  readonly name: string
  /** In an order that runs. */
  readonly nodes: readonly GraphNode[]
  readonly inputs: readonly Value[]
  readonly outputs: readonly Value[]
  /** Initializers and constants that the nodes read or the model gives. */
  readonly weights: readonly Value[]
  /** Values that nodes outside compute, but which are known. */
  readonly folded: ReadonlyMap<Value, Tensor>
  readonly metadata?: Readonly<Record<string, string>>
}

export function composeModel(
  { model, name, nodes, inputs, outputs, weights, folded, metadata = {} }: Composition,
  typeOf: (value: Value) => ValueType | undefined,
  policy: WeightPolicy,
): MessageWriter {
  const graph = new MessageWriter()
  for (const node of nodes) {
    if (keepsNames(node))
      graph.sliceField(GRAPH.node, { source: model.source, start: node.entry.start, stop: node.entry.stop })
    else graph.messageField(GRAPH.node, rewriteNode(node, { nameOf: ({ name: own }) => own }))
  }
  graph.stringField(GRAPH.name, name)
  for (const value of weights) addWeight(graph, value, policy)
  for (const [value, tensor] of folded) addConstant(graph, value.name, tensor)
  for (const value of inputs) graph.messageField(GRAPH.input, declared(value, typeOf(value)))
  for (const value of outputs) graph.messageField(GRAPH.output, declared(value, typeOf(value)))
  for (const value of innerValues(nodes, outputs)) {
    const type = typeOf(value)
    if (type !== undefined) graph.messageField(GRAPH.valueInfo, declared(value, type))
  }

  graph.raw(unknownGraphFields(model))

  const message = new MessageWriter().raw(shellOf(model)).messageField(MODEL.graph, graph)
  for (const [key, value] of Object.entries(metadata)) {
    message.messageField(
      MODEL.metadataProps,
      new MessageWriter().stringField(ENTRY.key, key).stringField(ENTRY.value, value),
    )
  }
  for (const { start, stop } of functionsNeeded(
    model,
    nodes.map(({ entry }) => entry),
  )) {
    message.sliceField(MODEL.functions, { source: model.source, start, stop })
  }
  return message
}

/** A value with its name and type, and whatever else the file says of it. */
function declared(value: Value, type: ValueType | undefined): MessageWriter {
  const entry = declarationOf(value)
  return valueInfo(value.name, type, entry === undefined ? undefined : extrasOf(value.graph.model, entry))
}

/** A declaration of a name that is used twice may be about the other value. */
function declarationOf({ origin, graph, name, written }: Value): ValueEntry | undefined {
  if (origin.kind === 'input') return origin.entry
  return name === written ? declarationsOf(graph).get(written) : undefined
}

const declarations = new WeakMap<ScopedGraph, ReadonlyMap<string, ValueEntry>>()

function declarationsOf(graph: ScopedGraph): ReadonlyMap<string, ValueEntry> {
  const known = declarations.get(graph)
  if (known !== undefined) return known
  const { valueInfos, outputs } = graph.index
  const found = new Map([...valueInfos, ...outputs].map((entry) => [entry.name, entry]))
  declarations.set(graph, found)
  return found
}

function extrasOf({ source }: ModelIndex, entry: ValueEntry): ValueExtras | undefined {
  if (!extras.has(entry)) extras.set(entry, readValueExtras(source, entry))
  return extras.get(entry)
}

const extras = new WeakMap<ValueEntry, ValueExtras | undefined>()

const unknownFields = new WeakMap<ModelIndex, Uint8Array>()

/** Name, documentation, quantisation annotations and metadata are about the whole graph; what is unknown is kept. */
function unknownGraphFields(model: ModelIndex): Uint8Array {
  const known = unknownFields.get(model)
  if (known !== undefined) return known
  const fields = new MessageWriter()
  for (const { field, start, stop } of model.graph.rest) {
    if (!KNOWN_GRAPH_FIELDS.has(field)) fields.slice({ source: model.source, start, stop })
  }
  const bytes = fields.toBytes()
  unknownFields.set(model, bytes)
  return bytes
}

const KNOWN_GRAPH_FIELDS = new Set<number>([2, 10, 14, 16])

function innerValues(nodes: readonly GraphNode[], outputs: readonly Value[]): Value[] {
  if (nodes.length < 2) return []
  const given = new Set(outputs)
  return nodes.flatMap(
    (node) => node.outputs.filter((value) => value !== undefined && !given.has(value)) as Value[],
  )
}

/** From here on initializers need not be listed as inputs, which lets weights be weights. */
const FIRST_IR_WITH_PLAIN_INITIALIZERS = 4

const shells = new WeakMap<ModelIndex, Uint8Array>()

/** The fields that every model cut from this one shares: versions, producer, opsets, what is unknown. */
function shellOf(model: ModelIndex): Uint8Array {
  const known = shells.get(model)
  if (known !== undefined) return known
  const shell = new MessageWriter()
  shell.varintField(MODEL.irVersion, Math.max(model.irVersion, FIRST_IR_WITH_PLAIN_INITIALIZERS))
  for (const { field, start, stop } of model.rest) {
    if (!LEFT_OUT.has(field)) shell.slice({ source: model.source, start, stop })
  }
  // Before IR version 3 there was one opset only, and no way to name it.
  if (model.opsets.length === 0)
    shell.messageField(MODEL.opsetImport, new MessageWriter().varintField(OPSET.version, 1))
  const bytes = shell.toBytes()
  shells.set(model, bytes)
  return bytes
}

/** Documentation and metadata are about the whole; training info names values a part lacks. */
const LEFT_OUT = new Set<number>([MODEL.irVersion, MODEL.docString, MODEL.metadataProps, MODEL.trainingInfo])
