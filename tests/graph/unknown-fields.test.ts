import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { MessageWriter } from '../../src/bytes/wire-writer.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { extractPart } from '../../src/graph/part.ts'
import { resolveModel, type Value } from '../../src/graph/resolve.ts'
import { splitGraph } from '../../src/graph/split.ts'
import { graphAsModel } from '../../src/graph/whole.ts'
import { indexModel } from '../../src/onnx/model-index.ts'
import { tensorType, type ValueType } from '../../src/onnx/value-type.ts'

/** A field that no version of ONNX has, with a text to find it by. */
const unknown = (text: string): MessageWriter => new MessageWriter().stringField(999, text)

test('unknown fields at every level survive being written again', () => {
  const graph = message(
    [1, node('x', 'y').raw(unknown('node').toBytes())],
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
  const again = Buffer.from(graphAsModel(resolved, resolved.outputs, () => undefined, POLICY).toBytes())
  for (const level of ['node', 'input', 'output', 'graph', 'opset', 'model']) {
    expect(again.includes(Buffer.from(unknown(level).toBytes())), level).toBe(true)
  }
})

describe('what a file says of a value beyond its name, dtype and shape', () => {
  const LEVELS = ['info', 'type', 'tensor', 'shape', 'dimension']

  /** Two nodes; x, h and y are declared with unknown fields at every level of their types. */
  const bytes = modelOf(
    message(
      [1, node('x', 'h')],
      [1, node('h', 'y')],
      [11, declaration('x')],
      [12, declaration('y')],
      [13, declaration('h')],
    ),
  )

  /** The levels whose field is there for a value, of all that are declared for it. */
  const kept = (model: Uint8Array, of: string): string[] =>
    LEVELS.filter((level) => Buffer.from(model).includes(Buffer.from(unknown(`${level} of ${of}`).toBytes())))

  test.each([
    ['the type that is declared', [2, 3], LEVELS],
    ['sizes that a runtime reports', ['n', 3], LEVELS],
    ['another rank, whose dimensions are others', [6], LEVELS.slice(0, -1)],
  ])('stays with %s', (_, shape, expected) => {
    const [first, second] = partsOf(bytes, () => tensorType(1, shape))
    expect(kept(first!, 'x')).toEqual(expected)
    expect(kept(first!, 'h')).toEqual(expected)
    expect(kept(second!, 'h')).toEqual(expected)
    expect(kept(second!, 'y')).toEqual(expected)
    expect(kept(second!, 'x')).toEqual([])
  })

  test('stays in types that are no tensors', () => {
    const sequence = message([4, message([1, tensorOf('s')]).raw(unknown('sequence of s').toBytes())])
    const input = name('s').messageField(2, sequence).raw(unknown('info of s').toBytes())
    const model = modelOf(message([1, node('s', 'y')], [11, input], [12, name('y')]))
    const [part] = partsOf(model)
    for (const level of ['info', 'sequence', 'type', 'tensor', 'shape', 'dimension']) {
      expect(Buffer.from(part!).includes(Buffer.from(unknown(`${level} of s`).toBytes())), level).toBe(true)
    }
  })

  test('is about one value of a name that is used twice', () => {
    const twice = modelOf(message([1, node('x', 'x')], [11, declaration('x')], [12, name('x')]))
    const [part] = partsOf(twice, () => tensorType(1, [2, 3]))
    const text = unknown('info of x').toBytes()
    const at = Buffer.from(part!).indexOf(Buffer.from(text))
    expect(at).toBeGreaterThan(0)
    expect(Buffer.from(part!).indexOf(Buffer.from(text), at + 1)).toBe(-1)
  })

  function declaration(of: string): MessageWriter {
    return name(of)
      .messageField(2, tensorOf(of))
      .raw(unknown(`info of ${of}`).toBytes())
  }

  /** A TypeProto. */
  function tensorOf(of: string): MessageWriter {
    const dim = new MessageWriter().varintField(1, 2).raw(unknown(`dimension of ${of}`).toBytes())
    const shape = message([1, dim], [1, new MessageWriter().varintField(1, 3)])
    const tensor = new MessageWriter()
      .varintField(1, 1)
      .messageField(2, shape.raw(unknown(`shape of ${of}`).toBytes()))
    return message([1, tensor.raw(unknown(`tensor of ${of}`).toBytes())]).raw(
      unknown(`type of ${of}`).toBytes(),
    )
  }
})

/** By default with the types that the file declares. */
function partsOf(model: Uint8Array, given?: (value: Value) => ValueType): Uint8Array[] {
  const graph = resolveModel(indexModel(bytesSource(model)))
  const types = inferTypes(graph)
  const typeOf = given ?? types.get.bind(types)
  const parts = splitGraph(graph, { stem: 'm', typeOf })
  return parts.map((part) => extractPart(part, typeOf, POLICY).toBytes())
}

const POLICY = { kind: 'reference', location: '', minBytes: Number.POSITIVE_INFINITY } as const

function modelOf(graph: MessageWriter): Uint8Array {
  return new MessageWriter()
    .varintField(1, 8)
    .messageField(7, graph)
    .messageField(8, new MessageWriter().varintField(2, 17))
    .toBytes()
}

function node(input: string, output: string): MessageWriter {
  return new MessageWriter().stringField(1, input).stringField(2, output).stringField(4, 'Relu')
}

function message(...fields: [number, MessageWriter][]): MessageWriter {
  const writer = new MessageWriter()
  for (const [field, value] of fields) writer.messageField(field, value)
  return writer
}

function name(text: string): MessageWriter {
  return new MessageWriter().stringField(1, text)
}
