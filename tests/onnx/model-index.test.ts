import { readFileSync } from 'node:fs'
import onnxProto from 'onnx-proto'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { type GraphIndex, indexModel, type ModelIndex, type NodeEntry } from '../../src/onnx/model-index.ts'
import { SOURCES } from '../bytes/sources.ts'
import { hasShared, sharedModels } from '../support/shared.ts'
import { builtModels, encodeModel, floatType, modelOf } from './built-models.ts'

const { ModelProto } = onnxProto.onnx

type Proto = ReturnType<typeof ModelProto.decode>
type GraphProto = NonNullable<Proto['graph']>
type NodeProto = NonNullable<GraphProto['node']>[number]

const READABLE = sharedModels().filter(({ file }) => !/symlink-stub|lfs-pointer/.test(file))

describe('the index says what onnx-proto decodes', () => {
  test.each(Object.entries(builtModels))('of the built model %s', (_, bytes) => {
    expect(indexed(indexModel(bytesSource(bytes)))).toEqual(decoded(ModelProto.decode(bytes)))
  })

  test.skipIf(!hasShared).each(READABLE)('of $file', ({ path }) => {
    const bytes = readFileSync(path)
    expect(indexed(indexModel(bytesSource(bytes)))).toEqual(decoded(ModelProto.decode(bytes)))
  })

  test('through the windows of a large file as well', () => {
    const blob = { name: 'blob', dims: [9_000_000], dataType: 2, rawData: new Uint8Array(9_000_000) }
    const bytes = encodeModel(
      modelOf({
        initializer: [blob, { name: 'b', dims: [1], dataType: 1, floatData: [1] }],
        node: Array.from({ length: 3_000 }, (_, at) => ({
          opType: 'Relu',
          input: [`v${at}`],
          output: [`v${at + 1}`],
        })),
        input: [{ name: 'v0', type: floatType(2) }],
        output: [{ name: 'v3000' }],
      }),
    )
    const { source } = SOURCES['a large file']!(bytes)
    const whole = { ...source, size: bytes.length, read: shifted(source, 3 * 1024 * 1024 + 5) }
    expect(indexed(indexModel(whole))).toEqual(decoded(ModelProto.decode(bytes)))
  })
})

describe('protobuf allows any order and any division', () => {
  const parts = {
    ir: modelBytes({ irVersion: 8 }),
    opset: modelBytes({ opsetImport: [{ domain: '', version: 17 }] }),
    nodes: modelBytes({
      graph: { node: [{ opType: 'Relu', input: ['x'], output: ['y'] }] },
    }),
    ends: modelBytes({ graph: { name: 'first', input: [{ name: 'x' }], output: [{ name: 'y' }] } }),
    more: modelBytes({
      graph: {
        name: 'last',
        node: [{ opType: 'Neg', input: ['y'], output: ['z'] }],
        initializer: [{ name: 'w', dims: [1], dataType: 1, floatData: [1] }],
      },
    }),
  }

  test.each([
    [['ir', 'opset', 'nodes', 'ends', 'more']],
    [['nodes', 'ends', 'ir', 'more', 'opset']],
    [['opset', 'nodes', 'ends', 'more', 'ir']],
  ] as const)('%j', (order) => {
    const { graph, opsets } = indexModel(bytesSource(Buffer.concat(order.map((part) => parts[part]))))
    expect(graph.nodes.map(({ opType }) => opType)).toEqual(['Relu', 'Neg'])
    expect(graph.inputs.map(({ name }) => name)).toEqual(['x'])
    expect(graph.initializers.map(({ name }) => name)).toEqual(['w'])
    expect(graph.name).toBe('last')
    expect(opsets).toEqual([{ domain: '', version: 17 }])
  })

  test('a subgraph in several pieces is one subgraph', () => {
    const node = Buffer.concat([
      onnxProto.onnx.NodeProto.encode({ opType: 'Loop' } as never).finish(),
      field(5, Buffer.concat([half('A'), half('B')])),
    ])
    const bytes = Buffer.concat([parts.ir, parts.opset, field(7, field(1, node))])
    const [loop] = indexModel(bytesSource(bytes)).graph.nodes
    expect(
      loop!.subgraphs.map(({ attribute, graph }) => [attribute, graph.nodes.map((n) => n.opType)]),
    ).toEqual([['body', ['A', 'B']]])
  })

  test('of a name that is written twice the last counts', () => {
    const bytes = Buffer.concat([
      modelBytes({ irVersion: 3, producerName: 'old', producerVersion: '1' }),
      encodeModel(modelOf({ name: 'g' }, { irVersion: 8, producerName: 'new' })),
    ])
    const { irVersion, producer } = indexModel(bytesSource(bytes))
    expect({ irVersion, producer }).toEqual({ irVersion: 8, producer: 'new 1' })
  })
})

describe('what counts as a model', () => {
  test.each<[missing: string, model: object]>([
    ['IR version', { opsetImport: [{ domain: '', version: 17 }], graph: {} }],
    ['graph', { irVersion: 8, opsetImport: [{ domain: '', version: 17 }] }],
    ['opset import', { irVersion: 8, graph: {} }],
  ])('not one that has no %s', (missing, model) => {
    expect(() => indexModel(bytesSource(modelBytes(model)))).toThrow(`the model has no ${missing}`)
  })

  test('before IR version 3 there were no opset imports', () => {
    expect(indexModel(bytesSource(modelBytes({ irVersion: 2, graph: {} }))).opsets).toEqual([])
  })
})

test('initializers know where their data lies', () => {
  const { graph } = indexModel(bytesSource(builtModels['odds']!))
  const byName = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  expect(byName.get('outside')!.info.external).toEqual({ location: 'weights.bin', offset: 16, length: 12 })
  expect(byName.get('sparse')).toMatchObject({ sparse: true, info: { dims: [3] } })
  const { raw } = byName.get('raw')!.info
  expect(raw!.stop - raw!.start).toBe(12)
})

type Summary = Record<string, unknown>

function indexed(model: ModelIndex): Summary {
  return {
    irVersion: model.irVersion,
    producer: model.producer,
    opsets: model.opsets.map(({ domain, version }) => [domain, version]),
    metadata: model.metadata.map((entry) => [...entry]),
    functions: model.functions.map(({ domain, name, inputs, outputs, nodes }) => {
      return { domain, name, inputs, outputs, nodes: nodes.map(indexedNode) }
    }),
    graph: indexedGraph(model.graph),
  }
}

function indexedGraph({ name, nodes, initializers, inputs, outputs, valueInfos }: GraphIndex): Summary {
  return {
    name,
    nodes: nodes.map(indexedNode),
    initializers: initializers
      .filter(({ sparse }) => !sparse)
      .map(({ name: own, info }) => ({ name: own, dims: info.dims, dataType: info.dataType })),
    sparse: initializers
      .filter(({ sparse }) => sparse)
      .map(({ name: own, info }) => ({ name: own, dims: info.dims })),
    inputs: inputs.map((entry) => entry.name),
    outputs: outputs.map((entry) => entry.name),
    valueInfos: valueInfos.map((entry) => entry.name),
  }
}

function indexedNode({ name, opType, domain, inputs, outputs, subgraphs }: NodeEntry): Summary {
  const graphs = subgraphs.map(({ attribute, graph }) => ({ attribute, graph: indexedGraph(graph) }))
  return { name, opType, domain, inputs, outputs, graphs }
}

function decoded(model: Proto): Summary {
  return {
    irVersion: Number(model.irVersion),
    producer: `${model.producerName} ${model.producerVersion}`.trim(),
    opsets: model.opsetImport.map(({ domain, version }) => [domain, Number(version)]),
    metadata: model.metadataProps.map(({ key, value }) => [key, value]),
    functions: model.functions.map(({ domain, name, input, output, node }) => {
      return {
        domain,
        name,
        inputs: input,
        outputs: output,
        nodes: node!.map((n) => decodedNode(n as NodeProto)),
      }
    }),
    graph: decodedGraph(model.graph as GraphProto),
  }
}

function decodedGraph(graph: GraphProto): Summary {
  return {
    name: graph.name ?? '',
    nodes: (graph.node ?? []).map((node) => decodedNode(node)),
    initializers: (graph.initializer ?? []).map(({ name, dims, dataType }) => {
      return { name: name ?? '', dims: (dims ?? []).map(Number), dataType: dataType ?? 0 }
    }),
    sparse: (graph.sparseInitializer ?? []).map(({ values, dims }) => {
      return { name: values!.name, dims: dims!.map(Number) }
    }),
    inputs: names(graph.input ?? []),
    outputs: names(graph.output ?? []),
    valueInfos: names(graph.valueInfo ?? []),
  }
}

function decodedNode({ name, opType, domain, input, output, attribute }: NodeProto): Summary {
  const graphs = (attribute ?? []).flatMap(({ name: own, g, graphs: list }) =>
    [...(g ? [g] : []), ...(list ?? [])].map((graph) => ({
      attribute: own,
      graph: decodedGraph(graph as GraphProto),
    })),
  )
  return { name, opType, domain, inputs: input, outputs: output, graphs }
}

/** An attribute with a part of a subgraph. */
function half(opType: string): Uint8Array {
  const g = { node: [{ opType, output: ['o'] }] }
  return onnxProto.onnx.AttributeProto.encode({ name: 'body', g } as never).finish()
}

function names(list: readonly { name?: string | null }[]): string[] {
  return list.map(({ name }) => name ?? '')
}

function modelBytes(model: object): Uint8Array {
  return encodeModel(model as never)
}

function field(number: number, payload: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of((number << 3) | 2), varint(payload.length), payload])
}

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; bytes.length === 0 || rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) | (rest >= 128 ? 0x80 : 0))
  }
  return Uint8Array.from(bytes)
}

function shifted(source: { read: (offset: number, length: number) => Uint8Array }, by: number) {
  return (offset: number, length: number): Uint8Array => source.read(offset + by, length)
}
