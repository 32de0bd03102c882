/**
 * A node with other names and other bodies: everything else is sliced from the source.
 *
 * Unlike graph/rewrite.ts, names go by position, since one value may be read rounded by one
 * input and exact by another, and the bodies of control flow are given, with nodes of their own.
 */
import { BYTES, WireReader } from '../../bytes/wire-reader.ts'
import { MessageWriter } from '../../bytes/wire-writer.ts'
import type { GraphNode } from '../../graph/resolve.ts'
import { ATTRIBUTE, NODE } from '../../onnx/fields.ts'
import type { Range } from '../../onnx/model-index.ts'

/** `bodies`: in the order of `node.subgraphs`. */
export function stitchNode(
  node: GraphNode,
  inputs: readonly string[],
  outputs: readonly string[],
  bodies: readonly MessageWriter[],
): MessageWriter {
  const { source } = node.graph.model
  const message = new MessageWriter()
  const reader = new WireReader(source).seek(node.entry.start)
  let [input, output, body] = [0, 0, 0]
  while (reader.next(node.entry.stop)) {
    const { fieldStart, start, stop } = reader
    if (reader.field === NODE.input) message.stringField(NODE.input, inputs[input++]!)
    else if (reader.field === NODE.output) message.stringField(NODE.output, outputs[output++]!)
    else if (reader.field === NODE.attribute && bodies.length > 0) {
      const count = countBodies(node, { start, stop })
      const attribute = stitchAttribute(node, { start, stop }, bodies.slice(body, (body += count)))
      message.messageField(NODE.attribute, attribute)
    } else message.slice({ source, start: fieldStart, stop })
  }
  return message
}

/** A body in field `g` may come in several pieces, and is numbered before those in `graphs`. */
function stitchAttribute(node: GraphNode, range: Range, bodies: readonly MessageWriter[]): MessageWriter {
  const { source } = node.graph.model
  const message = new MessageWriter()
  const reader = new WireReader(source).seek(range.start)
  const listed = bodies.slice(countFields(node, range, ATTRIBUTE.g) > 0 ? 1 : 0)
  let [isWritten, next] = [false, 0]
  while (reader.next(range.stop)) {
    if (reader.field === ATTRIBUTE.g) {
      if (!isWritten) message.messageField(ATTRIBUTE.g, bodies[0]!)
      isWritten = true
    } else if (reader.field === ATTRIBUTE.graphs) message.messageField(ATTRIBUTE.graphs, listed[next++]!)
    else message.slice({ source, start: reader.fieldStart, stop: reader.stop })
  }
  return message
}

function countBodies(node: GraphNode, range: Range): number {
  return Math.min(countFields(node, range, ATTRIBUTE.g), 1) + countFields(node, range, ATTRIBUTE.graphs)
}

function countFields(node: GraphNode, { start, stop }: Range, field: number): number {
  const reader = new WireReader(node.graph.model.source).seek(start)
  let count = 0
  while (reader.next(stop)) if (reader.field === field && reader.wireType === BYTES) count++
  return count
}
