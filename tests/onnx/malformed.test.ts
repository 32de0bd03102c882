import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { encodeModel, floatType, modelOf } from './built-models.ts'
import { expectRefused, index, refusalOf } from './refusal.ts'
import {
  BYTES,
  bytesField,
  fieldOfType,
  FIXED32,
  FIXED64,
  GROUP,
  nested,
  VARINT,
  varintField,
} from './wire.ts'

const HEAD = Buffer.concat([varintField(1, 8), bytesField(8, varintField(2, 17))])

/** A model with the given fields in its graph. */
function withGraph(...fields: Uint8Array[]): Uint8Array {
  return Buffer.concat([HEAD, bytesField(7, ...fields)])
}

/** A model with one more field. */
function inModel(field: Uint8Array): Uint8Array {
  return Buffer.concat([HEAD, bytesField(7), field])
}

/** A model with an initializer of these sizes. */
function initializer(...dims: number[]): Uint8Array {
  const sizes = dims.map((dim) => varintField(1, dim))
  return withGraph(bytesField(5, ...sizes, varintField(2, 1), bytesField(8, 'w')))
}

/** A model with an initializer whose data is outside. */
function outside(entries: Record<string, string>): Uint8Array {
  const externalData = Object.entries(entries).map(([key, value]) => ({ key, value }))
  return encodeModel(
    modelOf({ initializer: [{ name: 'w', dims: [1], dataType: 1, dataLocation: 1, externalData }] }),
  )
}

describe('a known field of the wrong wire type', () => {
  const inNode = (field: Uint8Array): Uint8Array => withGraph(bytesField(1, field))
  const inTensor = (field: Uint8Array): Uint8Array => withGraph(bytesField(5, field))
  const inFunction = (field: Uint8Array): Uint8Array => inModel(bytesField(25, field))
  const places: [
    what: string,
    place: (field: Uint8Array) => Uint8Array,
    number: number,
    allowed: number[],
  ][] = [
    ['ModelProto.ir_version', inModel, 1, [VARINT]],
    ['ModelProto.producer_name', inModel, 2, [BYTES]],
    ['ModelProto.producer_version', inModel, 3, [BYTES]],
    ['ModelProto.graph', inModel, 7, [BYTES]],
    ['ModelProto.opset_import', inModel, 8, [BYTES]],
    ['ModelProto.metadata_props', inModel, 14, [BYTES]],
    ['ModelProto.functions', inModel, 25, [BYTES]],
    ['OperatorSetIdProto.domain', (field) => inModel(bytesField(8, field)), 1, [BYTES]],
    ['OperatorSetIdProto.version', (field) => inModel(bytesField(8, field)), 2, [VARINT]],
    ['StringStringEntryProto.key', (field) => inModel(bytesField(14, field)), 1, [BYTES]],
    ['StringStringEntryProto.value', (field) => inModel(bytesField(14, field)), 2, [BYTES]],
    ['GraphProto.node', withGraph, 1, [BYTES]],
    ['GraphProto.name', withGraph, 2, [BYTES]],
    ['GraphProto.initializer', withGraph, 5, [BYTES]],
    ['GraphProto.input', withGraph, 11, [BYTES]],
    ['GraphProto.output', withGraph, 12, [BYTES]],
    ['GraphProto.value_info', withGraph, 13, [BYTES]],
    ['GraphProto.sparse_initializer', withGraph, 15, []],
    ['NodeProto.input', inNode, 1, [BYTES]],
    ['NodeProto.output', inNode, 2, [BYTES]],
    ['NodeProto.name', inNode, 3, [BYTES]],
    ['NodeProto.op_type', inNode, 4, [BYTES]],
    ['NodeProto.attribute', inNode, 5, []],
    ['NodeProto.domain', inNode, 7, [BYTES]],
    ['NodeProto.overload', inNode, 8, [BYTES]],
    ['AttributeProto.name', (field) => inNode(bytesField(5, field)), 1, [BYTES]],
    ['AttributeProto.g', (field) => inNode(bytesField(5, field)), 6, []],
    ['AttributeProto.graphs', (field) => inNode(bytesField(5, field)), 11, []],
    ['TensorProto.dims', inTensor, 1, [VARINT, BYTES]],
    ['TensorProto.data_type', inTensor, 2, [VARINT]],
    ['TensorProto.name', inTensor, 8, [BYTES]],
    ['TensorProto.raw_data', inTensor, 9, [BYTES]],
    ['TensorProto.external_data', inTensor, 13, []],
    ['TensorProto.data_location', inTensor, 14, [VARINT]],
    ['SparseTensorProto.values', (field) => withGraph(bytesField(15, field)), 1, []],
    [
      'SparseTensorProto.dims',
      (field) => withGraph(bytesField(15, bytesField(1), field)),
      3,
      [VARINT, BYTES],
    ],
    ['ValueInfoProto.name', (field) => withGraph(bytesField(11, field)), 1, [BYTES]],
    ['FunctionProto.name', inFunction, 1, [BYTES]],
    ['FunctionProto.input', inFunction, 4, [BYTES]],
    ['FunctionProto.output', inFunction, 5, [BYTES]],
    ['FunctionProto.node', inFunction, 7, []],
    ['FunctionProto.domain', inFunction, 10, [BYTES]],
    ['FunctionProto.overload', inFunction, 13, [BYTES]],
  ]

  test.each(places)('%s', (_, place, number, allowed) => {
    for (const wireType of [VARINT, FIXED64, BYTES, FIXED32, GROUP]) {
      const bytes = place(fieldOfType(number, wireType))
      if (allowed.includes(wireType)) expect(() => index(bytes)).not.toThrow(/wire type/)
      else if (wireType !== BYTES) expectRefused(bytes, 'MALFORMED_MODEL', /wire type/)
    }
  })
})

describe('nested without end', () => {
  /** Outwards: a graph in an attribute, that in a node, that in a graph. */
  const [SUBGRAPH, ATTRIBUTE, NODE] = [6, 5, 1]

  test('10,000 subgraphs, each in a node of the one around', () => {
    const graph = nested(bytesField(2, 'innermost'), [SUBGRAPH, ATTRIBUTE, NODE], 10_000)
    expectRefused(withGraph(graph), 'MALFORMED_MODEL', /subgraphs are nested more than 33 deep/)
  })

  test('33 subgraphs are taken', () => {
    const graph = nested(bytesField(2, 'innermost'), [SUBGRAPH, ATTRIBUTE, NODE], 33)
    expect(refusalOf(withGraph(graph))).toBeUndefined()
    expectRefused(withGraph(nested(graph, [SUBGRAPH, ATTRIBUTE, NODE], 1)), 'MALFORMED_MODEL', /33 deep/)
  })

  test('10,000 subgraphs in a function', () => {
    const node = nested(bytesField(4, 'Relu'), [NODE, SUBGRAPH, ATTRIBUTE], 10_000)
    const bytes = Buffer.concat([HEAD, bytesField(7), bytesField(25, bytesField(7, node))])
    expectRefused(bytes, 'MALFORMED_MODEL', /nested more than/)
  })

  test.each([
    ['sequences', 4, 1],
    ['optionals', 9, 1],
    ['maps', 5, 2],
  ])('10,000 %s of each other', (_, kind, element) => {
    const type = nested(bytesField(1, varintField(1, 1)), [element, kind], 10_000)
    const input = bytesField(11, bytesField(1, 'x'), bytesField(2, type))
    const bytes = withGraph(input, bytesField(12, bytesField(1, 'x')))
    const error = refusalOf(bytes, (all) => inferTypes(resolveModel(index(all))))
    expect(error?.message).toMatch(/types are nested more than 100 deep/)
  })
})

describe('names', () => {
  const broken = Uint8Array.of(0x61, 0xff)
  test.each<[string, Uint8Array]>([
    ['a node input', withGraph(bytesField(1, bytesField(1, broken)))],
    ['a graph input', withGraph(bytesField(11, bytesField(1, broken)))],
    ['an initializer', withGraph(bytesField(5, bytesField(8, broken)))],
    ['a metadata key', Buffer.concat([HEAD, bytesField(7), bytesField(14, bytesField(1, broken))])],
  ])('%s that is not UTF-8', (_, bytes) => {
    expectRefused(bytes, 'MALFORMED_MODEL', /not valid UTF-8/)
  })

  test.each(['', '\u0000', '\u202e', '__proto__', '😀', '\uFFFD'])('%j is a name', (name) => {
    const { graph } = index(
      encodeModel(modelOf({ input: [{ name }], node: [{ name, opType: name, output: [name] }] })),
    )
    expect(graph.inputs[0]!.name).toBe(name)
    expect(graph.nodes[0]).toMatchObject({ name, opType: name, outputs: [name] })
  })
})

describe('dimensions', () => {
  test('negative', () => {
    expectRefused(initializer(2, -1), 'MALFORMED_MODEL', /a dimension of size -1/)
  })

  test('beyond 2^53', () => {
    expectRefused(initializer(2 ** 60), 'MALFORMED_MODEL', /a dimension of size 1152921504606846976/)
  })

  test('negative in a sparse initializer', () => {
    const bytes = withGraph(bytesField(15, bytesField(1, bytesField(8, 's')), varintField(3, -4)))
    expectRefused(bytes, 'MALFORMED_MODEL', /a dimension of size -4/)
  })

  test('a sparse initializer without values', () => {
    expectRefused(withGraph(bytesField(15, varintField(3, 4))), 'MALFORMED_MODEL', /no values/)
  })

  test('of inputs: negative and beyond 2^53 count as unknown', () => {
    const bytes = encodeModel(modelOf({ input: [{ name: 'x', type: floatType(-1, 2 ** 60, 3) }] }))
    const graph = resolveModel(index(bytes))
    expect(inferTypes(graph).get(graph.inputs[0]!)).toMatchObject({ shape: [undefined, undefined, 3] })
  })
})

describe('external data', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    ['no location', { offset: '0' }, /does not say in which file/],
    ['an empty location', { location: '' }, /does not say in which file/],
    ['a negative offset', { location: 'w', offset: '-1' }, /offset of external data is "-1"/],
    ['an offset that is no number', { location: 'w', offset: '0x10' }, /offset/],
    ['a length beyond 2^53', { location: 'w', length: '9007199254740993' }, /length/],
    ['a fraction', { location: 'w', length: '1.5' }, /length/],
  ])('%s', (_, entries, message) => {
    expectRefused(outside(entries), 'MALFORMED_MODEL', message)
  })
})

describe('files that are something else', () => {
  test.each<[what: string, content: Uint8Array | string, message: RegExp]>([
    ['an empty file', '', /empty/],
    [
      'a pointer of Git LFS',
      `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 12345\n`,
      /Git LFS pointer/,
    ],
    ['a web page', `<!DOCTYPE html><html>${' '.repeat(900)}</html>`, /HTML/],
    ['a web page behind blanks', `\n\n  <html lang="en">${' '.repeat(900)}`, /HTML/],
    ['a web page behind a byte order mark', `\uFEFF<!doctype html>${' '.repeat(900)}`, /HTML/],
    ['an XML error', `<?xml version="1.0"?><Error>${' '.repeat(900)}`, /XML/],
    ['a zip archive', Buffer.concat([Buffer.from('PK\u0003\u0004'), Buffer.alloc(500)]), /zip archive/],
    ['gzip', Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0), /gzip/],
    [
      'the ORT format',
      Buffer.concat([Uint8Array.of(24, 0, 0, 0), Buffer.from('ORTM'), Buffer.alloc(90)]),
      /ORT format/,
    ],
    ['text format', `ir_version: 8\ngraph {\n${'  name: "x"\n'.repeat(99)}`, /text format/],
    ['a link checked out as a file', '../models/model.onnx', /short text/],
  ])('%s', (_, content, message) => {
    const error = expectRefused(Buffer.from(content), 'NOT_ONNX', message)
    expect(error.offset).toBe(0)
  })

  test.each<[string, Uint8Array]>([
    ['random bytes', Uint8Array.from({ length: 500 }, (_, at) => (at * 7919) % 251)],
    ['zeros', new Uint8Array(500)],
    ['a long text', Buffer.from('The quick brown fox jumps over the lazy dog. '.repeat(20))],
    ['a picture', Buffer.from('\u0089PNG\r\n\u001a\n'.padEnd(400, '\u0001'), 'latin1')],
    ['an executable', Buffer.concat([Buffer.from('\u007fELF'), Buffer.alloc(400)])],
  ])('%s', (_, bytes) => {
    expectRefused(bytes, 'MALFORMED_MODEL', /./)
  })
})

test('bytes without a name are called so', () => {
  expect(() => resolveModel(index(new Uint8Array(0)))).toThrow('model.onnx, byte 0: the file is empty')
  expect(bytesSource(new Uint8Array(0)).name).toBe('<bytes>')
})
