import { describe, expect, test } from 'vitest'
import { indexModel } from '../../src/onnx/model-index.ts'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { foldShapes } from '../../src/graph/fold-shapes.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { extractPart, type Part } from '../../src/graph/part.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { splitGraph, type SplitOptions } from '../../src/graph/split.ts'
import { openModel } from '../../src/files/model-file.ts'
import { buildModel, floats, ints, type ModelSpec, op } from '../../testdata/onnx-builder.ts'
import { tensor } from '../../src/tensor/tensor.ts'
import { differences, partBytes, runBytes, runParts, splitFile } from '../support/composition.ts'
import { hasShared, sharedModels } from '../support/shared.ts'
import { tempModel } from '../support/temp-model.ts'

const X = floats([2, 3], [1, -2, 3, -4, 5, -6])
const FLOAT: readonly ['float32', readonly number[]] = ['float32', [2, 3]]

/** Splits without a runtime: what the file and the rules say. */
function partsOf(spec: ModelSpec, options: Partial<SplitOptions> = {}): Part[] {
  const graph = resolveModel(indexModel(bytesSource(buildModel(spec))))
  const types = inferTypes(graph)
  return splitGraph(graph, {
    stem: 'm',
    typeOf: (value) => types.get(value),
    folded: foldShapes(graph, types),
    ...options,
  })
}

const namesOf = (parts: readonly Part[]): string[] => parts.map(({ name }) => name)
const boundary = ({ inputs, outputs }: Part): string =>
  `${inputs.map(({ name }) => name).join()} -> ${outputs.map(({ name }) => name).join()}`

describe('names', () => {
  test('count parts in graph order and skip constants', () => {
    const parts = partsOf({
      inputs: { x: FLOAT },
      outputs: { z: FLOAT },
      nodes: [
        op('Constant', [], ['k'], { value: { tensor: floats([1], [2]) } }),
        op('Mul', ['x', 'k'], ['y']),
        op('Relu', ['y'], ['z']),
      ],
    })
    expect(namesOf(parts)).toEqual(['m_layer_Mul_0', 'm_layer_Relu_1'])
    expect(parts[0]!.weights.map(({ name }) => name)).toEqual(['k'])
  })

  test('follow the dataflow when the file is not sorted', () => {
    const parts = partsOf({
      inputs: { x: FLOAT },
      outputs: { z: FLOAT },
      nodes: [op('Neg', ['y'], ['z']), op('Relu', ['x'], ['y'])],
    })
    expect(namesOf(parts)).toEqual(['m_layer_Relu_0', 'm_layer_Neg_1'])
    expect(parts.map(({ nodeIndices }) => nodeIndices)).toEqual([[1], [0]])
  })

  test('lead into subgraphs', () => {
    const parts = partsOf(ifModel())
    expect(namesOf(parts)).toEqual([
      'm_layer_Relu_0',
      'm_layer_If_1',
      'm_layer_If_1_then_Add_0',
      'm_layer_If_1_else_Sub_0',
      'm_layer_If_1_else_Neg_1',
    ])
    expect(parts.map(({ scope }) => scope)).toEqual(['', '', 'If_1/then', 'If_1/else', 'If_1/else'])
  })

  test('hold nothing that a file system would follow', () => {
    const parts = partsOf({
      inputs: { x: FLOAT },
      outputs: { y: FLOAT },
      nodes: [op('../../etc/x', ['x'], ['y'], {}, { domain: 'evil' })],
      opsets: { evil: 1 },
    })
    expect(namesOf(parts)).toEqual(['m_layer_.._.._etc_x_0'])
  })

  test('stay unique when an operator is called like the way into a subgraph', () => {
    const model = ifModel()
    const parts = partsOf({
      ...model,
      opsets: { odd: 1 },
      nodes: [
        ...model.nodes,
        ...[0, 1].map((at) => op('If_1_then_Add', ['x'], [`odd${at}`], {}, { domain: 'odd' })),
      ],
    })
    expect(new Set(namesOf(parts)).size).toBe(parts.length)
  })
})

describe('boundaries', () => {
  test('captured values of a subgraph are inputs, of the node and of the parts of its bodies', () => {
    expect(partsOf(ifModel()).map(boundary)).toEqual([
      'x -> r',
      'c,x,r -> y',
      'x,r -> t',
      'x,r -> s',
      's -> e',
    ])
  })

  test('an output that is both read and given by the model is given once', () => {
    const parts = partsOf({
      inputs: { x: FLOAT },
      outputs: { y: FLOAT, z: FLOAT },
      nodes: [op('Relu', ['x'], ['y']), op('Neg', ['y'], ['z'])],
    })
    expect(parts.map(boundary)).toEqual(['x -> y', 'y -> z'])
  })

  test('a node that nobody reads gives all it computes', () => {
    const parts = partsOf({
      inputs: { x: FLOAT },
      outputs: { y: FLOAT },
      nodes: [op('Relu', ['x'], ['y']), op('Split', ['x'], ['a', 'b'], { axis: 0 })],
    })
    expect(parts.map(boundary)).toEqual(['x -> y', 'x -> a,b'])
  })

  test('outputs left out stay out', () => {
    const parts = partsOf({
      inputs: { x: FLOAT },
      outputs: { y: FLOAT },
      nodes: [op('Dropout', ['x'], ['y', ''])],
    })
    expect(parts.map(boundary)).toEqual(['x -> y'])
  })

  test('shape arithmetic over fixed shapes goes along as constants', () => {
    const parts = partsOf(reshapeModel(2))
    expect(parts.map(boundary)).toEqual(['x -> s', ' -> d', ' -> t', 'x -> y'])
    expect([...parts[3]!.folded.values()].map(({ data }) => data)).toEqual([BigInt64Array.of(3n, -1n)])
  })

  test('shape arithmetic over symbolic shapes is folded as far as it is known', () => {
    const parts = partsOf(reshapeModel('batch'))
    expect(parts.map(boundary)).toEqual(['x -> s', 's -> d', ' -> t', 'x -> y'])
  })
})

describe('groups', () => {
  const conv: ModelSpec = {
    inputs: { x: ['float32', [1, 1, 4, 4]], b: ['float32', []] },
    outputs: { z: ['float32', [1, 1, 4, 4]] },
    initializers: { w: floats([1, 1, 1, 1], [2]), low: floats([], [0]) },
    // The Abs between the two lies between them in the file, and feeds the Clip.
    nodes: [
      op('Conv', ['x', 'w'], ['y']),
      op('Abs', ['b'], ['high']),
      op('Clip', ['y', 'low', 'high'], ['z']),
    ],
  }

  test('stay together along the dataflow, whatever lies between in the file', () => {
    const parts = partsOf(conv)
    expect(namesOf(parts)).toEqual(['m_layer_Abs_0', 'm_layer_Conv_1'])
    expect(boundary(parts[1]!)).toBe('x,high -> z')
    expect(parts[1]!.nodeIndices).toEqual([0, 2])
  })

  test('part where another reads the value between', () => {
    const parts = partsOf({ ...conv, nodes: [...conv.nodes, op('Neg', ['y'], ['n'])] })
    expect(namesOf(parts)).toEqual(['m_layer_Conv_0', 'm_layer_Abs_1', 'm_layer_Clip_2', 'm_layer_Neg_3'])
  })

  test('part where the model gives the value between', () => {
    const parts = partsOf({ ...conv, outputs: { ...conv.outputs, y: undefined } })
    expect(parts).toHaveLength(3)
  })

  test('can be switched off', () => {
    expect(partsOf(conv, { groups: [] })).toHaveLength(3)
  })

  test('of three match before groups of two', () => {
    const chain: ModelSpec = {
      inputs: { x: FLOAT },
      outputs: { d: FLOAT },
      nodes: [
        op('Relu', ['x'], ['a']),
        op('Neg', ['a'], ['b']),
        op('Abs', ['b'], ['c']),
        op('Relu', ['c'], ['d']),
      ],
    }
    const groups = [
      ['Relu', 'Neg'],
      ['Relu', 'Neg', 'Abs'],
    ]
    expect(partsOf(chain, { groups }).map(({ nodes }) => nodes.length)).toEqual([3, 1])
  })
})

describe('values that cannot leave a model', () => {
  test('keep their nodes together, and what lies between them', async () => {
    const file = tempModel({
      inputs: { x: FLOAT },
      outputs: { z: undefined },
      initializers: { zero: ints([], [0]) },
      nodes: [
        op('SequenceConstruct', ['x'], ['s']),
        op('SequenceAt', ['s', 'zero'], ['a']),
        op('Neg', ['a'], ['b']),
        op('SequenceInsert', ['s', 'b'], ['t']),
        op('SequenceAt', ['t', 'zero'], ['c']),
        op('Relu', ['c'], ['z']),
      ],
    })
    const split = await splitFile(file)
    expect(split.parts.map(({ nodes }) => nodes.map(({ entry }) => entry.opType))).toEqual([
      ['SequenceConstruct', 'SequenceAt', 'Neg', 'SequenceInsert', 'SequenceAt'],
      ['Relu'],
    ])
    expect(split.parts[0]!.merged).toContain('"s" is a sequence')
    const feeds = new Map([['x', X]])
    expect(differences(await runBytes(file.path, feeds), await runParts(split, feeds))).toEqual([])
  })
})

describe('names that are used twice', () => {
  test('mean the nearest earlier producer, and get names of their own', async () => {
    const reused = tempModel({
      inputs: { x: FLOAT },
      outputs: { t: FLOAT },
      nodes: [op('Relu', ['x'], ['t']), op('Neg', ['t'], ['t']), op('Exp', ['t'], ['t'])],
    })
    const plain = tempModel({
      inputs: { x: FLOAT },
      outputs: { c: FLOAT },
      nodes: [op('Relu', ['x'], ['a']), op('Neg', ['a'], ['b']), op('Exp', ['b'], ['c'])],
    })
    const split = await splitFile(reused)
    expect(split.parts.map(boundary)).toEqual(['x -> t', 't -> t__2', 't__2 -> t__3'])
    const feeds = new Map([['x', X]])
    const [expected] = (await runBytes(plain.path, feeds)).values()
    const [actual] = (await runParts(split, feeds)).values()
    expect(actual).toEqual(expected)
  })

  test('are renamed inside the subgraphs that read them', async () => {
    const branch = (type: string) => ({
      graph: { nodes: [op(type, ['t', 't'], ['o'])], outputs: { o: FLOAT } },
    })
    const file = tempModel({
      inputs: { x: FLOAT, c: ['bool', []] },
      outputs: { y: FLOAT },
      nodes: [
        op('Relu', ['x'], ['t']),
        op('Neg', ['t'], ['t']),
        op('If', ['c'], ['y'], { then_branch: branch('Add'), else_branch: branch('Mul') }),
      ],
    })
    const split = await splitFile(file)
    const feeds = new Map([
      ['x', X],
      ['c', tensor('bool', [], Uint8Array.of(1))],
    ])
    const [actual] = (await runParts(split, feeds)).values()
    expect(actual).toEqual(floats([2, 3], [-2, -0, -6, -0, -10, -0]))
  })

  test('mean the last constant, as onnxruntime has it', async () => {
    const file = tempModel({
      inputs: { x: FLOAT },
      outputs: { y: FLOAT },
      nodes: [
        op('Constant', [], ['k'], { value: { tensor: floats([1], [2]) } }),
        op('Mul', ['x', 'k'], ['y']),
        op('Constant', [], ['k'], { value: { tensor: floats([1], [5]) } }),
      ],
    })
    const feeds = new Map([['x', X]])
    expect(
      differences(await runBytes(file.path, feeds), await runParts(await splitFile(file), feeds)),
    ).toEqual([])
  })
})

describe('local functions', () => {
  const model: ModelSpec = {
    opsets: { local: 1 },
    inputs: { x: FLOAT },
    outputs: { z: FLOAT },
    nodes: [op('Twice', ['x'], ['y'], {}, { domain: 'local' }), op('Relu', ['y'], ['z'])],
    functions: [
      { domain: 'local', name: 'Half', inputs: ['a'], outputs: ['b'], nodes: [op('Neg', ['a'], ['b'])] },
      {
        domain: 'local',
        name: 'Twice',
        inputs: ['a'],
        outputs: ['b'],
        nodes: [op('Once', ['a'], ['b'], {}, { domain: 'local' })],
      },
      { domain: 'local', name: 'Once', inputs: ['a'], outputs: ['b'], nodes: [op('Add', ['a', 'a'], ['b'])] },
    ].map((fn) => fn),
  }

  test('go along with the parts that call them, and only those', () => {
    const parts = partsOf(model)
    const functions = parts.map((part) => {
      const bytes = extractPart(part, () => undefined, {
        kind: 'reference',
        location: '',
        minBytes: Infinity,
      }).toBytes()
      return indexModel(bytesSource(bytes)).functions.map(({ name }) => name)
    })
    expect(functions).toEqual([['Twice', 'Once'], []])
  })

  test('give types to what they compute', () => {
    const graph = resolveModel(indexModel(bytesSource(buildModel(model))))
    const types = inferTypes(graph)
    const y = graph.values.find(({ name }) => name === 'y')!
    expect(types.get(y)).toMatchObject({ kind: 'tensor', dataType: 1 })
  })
})

describe.skipIf(!hasShared)('every part of a real model', () => {
  test.each(sharedModels().filter(({ runsOnOrtCpu }) => runsOnOrtCpu))(
    'loads by itself: $file',
    { timeout: 60_000 },
    async ({ path }) => {
      const { loadOrt } = await import('../../src/targets/ort-runtime.ts')
      const ort = await loadOrt()
      const split = await splitFile(openModel(path))
      for (const part of split.parts) {
        const session = await ort.InferenceSession.create(partBytes(split, part), {
          graphOptimizationLevel: 'disabled',
          logSeverityLevel: 4,
        })
        expect(session.outputNames).toEqual(part.outputs.map(({ name }) => name))
        await session.release()
      }
    },
  )
})

function ifModel(): ModelSpec {
  return {
    inputs: { x: FLOAT, c: ['bool', []] },
    outputs: { y: FLOAT },
    nodes: [
      op('Relu', ['x'], ['r']),
      op('If', ['c'], ['y'], {
        then_branch: { graph: { nodes: [op('Add', ['x', 'r'], ['t'])], outputs: { t: FLOAT } } },
        else_branch: {
          graph: { nodes: [op('Sub', ['x', 'r'], ['s']), op('Neg', ['s'], ['e'])], outputs: { e: FLOAT } },
        },
      }),
    ],
  }
}

/** Reshape x to [3, -1], where the 3 is read from its own second dimension. */
function reshapeModel(batch: number | string): ModelSpec {
  return {
    inputs: { x: ['float32', [batch, 3]] },
    outputs: { y: ['float32', [3, null]] },
    initializers: { one: ints([1], [1]), rest: ints([1], [-1]) },
    nodes: [
      op('Shape', ['x'], ['s']),
      op('Gather', ['s', 'one'], ['d'], { axis: 0 }),
      op('Concat', ['d', 'rest'], ['t'], { axis: 0 }),
      op('Reshape', ['x', 't'], ['y']),
    ],
  }
}
