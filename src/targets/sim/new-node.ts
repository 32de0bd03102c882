/** A NodeProto from scratch, with integer attributes at most. */
import { MessageWriter } from '../../bytes/wire-writer.ts'
import { ATTRIBUTE, NODE } from '../../onnx/fields.ts'

/** onnxruntime's own domain: its QuantizeLinear is there whatever opset a model has. */
export const MICROSOFT = 'com.microsoft'

export function newNode(
  opType: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, number>> = {},
  domain = '',
): MessageWriter {
  const node = new MessageWriter()
  for (const name of inputs) node.stringField(NODE.input, name)
  for (const name of outputs) node.stringField(NODE.output, name)
  node.stringField(NODE.opType, opType)
  for (const [name, value] of Object.entries(attributes)) {
    const attribute = new MessageWriter().stringField(ATTRIBUTE.name, name)
    attribute.varintField(ATTRIBUTE.i, value).varintField(ATTRIBUTE.type, INT)
    node.messageField(NODE.attribute, attribute)
  }
  if (domain !== '') node.stringField(NODE.domain, domain)
  return node
}

/** AttributeProto.AttributeType. */
const INT = 2
