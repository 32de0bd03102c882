/**
 * Nodes and subgraphs under other names: GraphNode + naming -> NodeProto.
 *
 * Only names are encoded anew; everything else is sliced from the source. With `strip`, what
 * does not matter to the computation (names, documentation, metadata, the order of
 * attributes) goes too, which makes the bytes comparable.
 */
import { BYTES, WireReader } from '../bytes/wire-reader.ts'
import { MessageWriter } from '../bytes/wire-writer.ts'
import { ATTRIBUTE, GRAPH, NODE, VALUE_INFO } from '../onnx/fields.ts'
import type { Range } from '../onnx/model-index.ts'
import { renameSparse, rewriteTensor } from '../onnx/tensor-rewrite.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

export interface Rewriting {
  readonly nameOf: (value: Value) => string
  readonly strip?: boolean
}

/** True when the node can be copied as it is: every name it mentions is the value's own. */
export function keepsNames(node: GraphNode): boolean {
  return node.inputs.every(isKept) && node.outputs.every(isKept) && node.captures.every(isKept)
}

function isKept(value: Value | undefined): boolean {
  return value === undefined || value.name === value.written
}

export function rewriteNode(node: GraphNode, rewriting: Rewriting): MessageWriter {
  const { source } = node.graph.model
  const message = new MessageWriter()
  const attributes: { name: string; message: MessageWriter }[] = []
  let [input, output, subgraph] = [0, 0, 0]
  for (const field of fieldsOf(node.graph, node.entry)) {
    if (field.number === NODE.input) message.stringField(NODE.input, named(node.inputs[input++], rewriting))
    else if (field.number === NODE.output)
      message.stringField(NODE.output, named(node.outputs[output++], rewriting))
    else if (field.number === NODE.attribute) {
      const inner = attributeGraphs(node.graph, field)
      const graphs = node.subgraphs.slice(subgraph, (subgraph += inner.count))
      attributes.push({ name: inner.name, message: rewriteAttribute(node.graph, field, graphs, rewriting) })
    } else if (!(rewriting.strip && INESSENTIAL.has(field.number))) {
      message.slice({ source, start: field.fieldStart, stop: field.stop })
    }
  }
  if (rewriting.strip) attributes.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const attribute of attributes) message.messageField(NODE.attribute, attribute.message)
  return message
}

const INESSENTIAL = new Set<number>([NODE.name, NODE.docString, NODE.metadataProps])

function named(value: Value | undefined, { nameOf }: Rewriting): string {
  return value === undefined ? '' : nameOf(value)
}

/** `single` graphs are numbered before listed ones, as in the index. */
function rewriteAttribute(
  graph: ScopedGraph,
  attribute: Range,
  subgraphs: readonly ScopedGraph[],
  rewriting: Rewriting,
): MessageWriter {
  const { source } = graph.model
  const message = new MessageWriter()
  let [next, single] = [0, undefined as MessageWriter | undefined]
  const fields = fieldsOf(graph, attribute)
  if (fields.some((field) => field.number === ATTRIBUTE.g))
    single = rewriteGraph(subgraphs[next++]!, rewriting)
  for (const field of fields) {
    if (field.number === ATTRIBUTE.g) {
      if (single !== undefined) message.messageField(ATTRIBUTE.g, single)
      single = undefined
    } else if (field.number === ATTRIBUTE.graphs) {
      message.messageField(ATTRIBUTE.graphs, rewriteGraph(subgraphs[next++]!, rewriting))
    } else if (!(rewriting.strip && field.number === ATTRIBUTE.docString)) {
      message.slice({ source, start: field.fieldStart, stop: field.stop })
    }
  }
  return message
}

function rewriteGraph(graph: ScopedGraph, rewriting: Rewriting): MessageWriter {
  const { source } = graph.model
  const { index } = graph
  const message = new MessageWriter()
  const byEntry = new Map<Range, Value>()
  for (const value of graph.values) if (value.origin.kind !== 'node') byEntry.set(value.origin.entry, value)
  const byName = new Map(graph.values.map((value) => [value.written, value]))
  const nameAt = (entry: Range & { readonly name: string }): string => {
    const value = byEntry.get(entry) ?? byName.get(entry.name)
    return value === undefined ? entry.name : rewriting.nameOf(value)
  }

  for (const entry of index.inputs)
    message.messageField(GRAPH.input, renamedValue(graph, entry, nameAt(entry)))
  for (const entry of index.initializers) {
    const [field, rename] = entry.sparse
      ? [GRAPH.sparseInitializer, renameSparse(source, entry, nameAt(entry))]
      : [GRAPH.initializer, rewriteTensor(source, entry, { name: nameAt(entry) })]
    message.messageField(field, rename)
  }
  for (const node of graph.nodes) message.messageField(GRAPH.node, rewriteNode(node, rewriting))
  for (const [slot, entry] of index.outputs.entries()) {
    message.messageField(GRAPH.output, renamedValue(graph, entry, rewriting.nameOf(graph.outputs[slot]!)))
  }
  if (rewriting.strip) return message
  for (const entry of index.valueInfos) {
    if (byName.has(entry.name))
      message.messageField(GRAPH.valueInfo, renamedValue(graph, entry, nameAt(entry)))
  }
  for (const { start, stop } of index.rest) message.slice({ source, start, stop })
  return message
}

function renamedValue(graph: ScopedGraph, entry: Range, name: string): MessageWriter {
  const { source } = graph.model
  const message = new MessageWriter().stringField(VALUE_INFO.name, name)
  for (const field of fieldsOf(graph, entry)) {
    if (field.number !== VALUE_INFO.name) message.slice({ source, start: field.fieldStart, stop: field.stop })
  }
  return message
}

function attributeGraphs(graph: ScopedGraph, attribute: Range): { name: string; count: number } {
  const reader = new WireReader(graph.model.source).seek(attribute.start)
  let [name, single, listed] = ['', 0, 0]
  while (reader.next(attribute.stop)) {
    if (reader.field === ATTRIBUTE.name && reader.wireType === BYTES) name = reader.string
    else if (reader.field === ATTRIBUTE.g) single = 1
    else if (reader.field === ATTRIBUTE.graphs) listed++
  }
  return { name, count: single + listed }
}

interface Field extends Range {
  readonly number: number
  readonly fieldStart: number
}

function fieldsOf(graph: ScopedGraph, { start, stop }: Range): Field[] {
  const reader = new WireReader(graph.model.source).seek(start)
  const fields: Field[] = []
  while (reader.next(stop)) {
    fields.push({
      number: reader.field,
      fieldStart: reader.fieldStart,
      start: reader.start,
      stop: reader.stop,
    })
  }
  return fields
}
