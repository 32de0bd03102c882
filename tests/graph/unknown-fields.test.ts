import { expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { MessageWriter } from '../../src/bytes/wire-writer.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { graphAsModel } from '../../src/graph/whole.ts'
import { indexModel } from '../../src/onnx/model-index.ts'

/** A field that no version of ONNX has, with a text to find it by. */
const unknown = (text: string): MessageWriter => new MessageWriter().stringField(999, text)

test('unknown fields at every level survive being written again', () => {
  const node = new MessageWriter()
    .stringField(1, 'x')
    .stringField(2, 'y')
    .stringField(4, 'Relu')
    .raw(unknown('node').toBytes())
  const graph = message(
    [1, node],
    [11, name('x').raw(unknown('input').toBytes())],
    [12, name('y').raw(unknown('output').toBytes())],
  )
  graph.raw(unknown('graph').toBytes())
  const opset = new MessageWriter().varintField(2, 17).raw(unknown('opset').toBytes())
  const model = new MessageWriter()
    .varintField(1, 8)
    .messageField(7, graph)
    .messageField(8, opset)
    .raw(unknown('model').toBytes())

  const resolved = resolveModel(indexModel(bytesSource(model.toBytes())))
  const policy = { kind: 'reference', location: '', minBytes: Number.POSITIVE_INFINITY } as const
  const again = Buffer.from(graphAsModel(resolved, resolved.outputs, () => undefined, policy).toBytes())
  for (const level of ['node', 'input', 'output', 'graph', 'opset', 'model']) {
    expect(again.includes(Buffer.from(unknown(level).toBytes())), level).toBe(true)
  }
})

function message(...fields: [number, MessageWriter][]): MessageWriter {
  const writer = new MessageWriter()
  for (const [field, value] of fields) writer.messageField(field, value)
  return writer
}

function name(text: string): MessageWriter {
  return new MessageWriter().stringField(1, text)
}
