import { describe, expect, test } from 'vitest'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { type InputDomain, inputDomains } from '../../src/graph/input-domains.ts'
import { fixInputShapes, inputShapes } from '../../src/graph/input-shapes.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { tensor } from '../../src/tensor/tensor.ts'
import {
  floats,
  ints,
  type ModelSpec,
  type NodeSpec,
  op,
  type TypeSpec,
} from '../../testdata/onnx-builder.ts'
import { tempModel } from '../support/temp-model.ts'

function domainsOf(spec: ModelSpec): Record<string, InputDomain> {
  const graph = resolveModel(tempModel(spec).model)
  const types = inferTypes(graph)
  const fixed = fixInputShapes(graph, types, inputShapes(graph, types))
  return Object.fromEntries([...inputDomains(graph, fixed)].map(([value, domain]) => [value.written, domain]))
}

const zeros = (shape: readonly number[]) =>
  floats(
    shape,
    Array.from({ length: shape.reduce((all, size) => all * size, 1) }, () => 0),
  )

/** A model of one node whose inputs are all inputs of the graph, but for the weights. */
function oneNode(
  node: NodeSpec,
  inputs: Readonly<Record<string, TypeSpec>>,
  output: TypeSpec = ['float32'],
  initializers: ModelSpec['initializers'] = {},
): ModelSpec {
  return { nodes: [node], inputs, outputs: { [node.outputs[0]!]: output }, initializers, opset: 18 }
}

interface Case {
  readonly name: string
  readonly spec: ModelSpec
  readonly input: string
  readonly domain: object | undefined
}

const cases: readonly Case[] = [
  {
    name: 'indices into rows that nobody knows are 0',
    spec: {
      nodes: [
        op('Mystery', ['x'], ['m'], {}, { domain: 'unknown' }),
        op('RoiAlign', ['m', 'boxes', 'i'], ['y']),
      ],
      inputs: { x: ['float32', [1, 3, 8, 8]], boxes: ['float32', [2, 4]], i: ['int64', [2]] },
      outputs: { y: ['float32'] },
      opset: 18,
      opsets: { unknown: 1 },
    },
    input: 'i',
    domain: { kind: 'range', low: 0, high: 1 },
  },
  {
    name: 'where one reader knows the rows, that counts',
    spec: {
      nodes: [
        op('Mystery', ['x'], ['m'], {}, { domain: 'unknown' }),
        op('Gather', ['m', 'i'], ['y']),
        op('Gather', ['x', 'i'], ['z']),
      ],
      inputs: { x: ['float32', [6, 3]], i: ['int64', [2]] },
      outputs: { y: ['float32'], z: ['float32'] },
      opset: 18,
      opsets: { unknown: 1 },
    },
    input: 'i',
    domain: { kind: 'range', low: 0, high: 6 },
  },
  {
    name: 'indices of Gather stay below the rows of a weight',
    spec: oneNode(op('Gather', ['w', 'i'], ['y']), { i: ['int64', [4]] }, ['float32'], { w: zeros([7, 2]) }),
    input: 'i',
    domain: { kind: 'range', low: 0, high: 7 },
  },
  {
    name: 'indices of Gather along another axis of another input',
    spec: oneNode(op('Gather', ['x', 'i'], ['y'], { axis: 1 }), {
      x: ['float32', [9, 5]],
      i: ['int32', [4]],
    }),
    input: 'i',
    domain: { kind: 'range', low: 0, high: 5 },
  },
  {
    name: 'tuples of GatherND stay below the smallest axis',
    spec: oneNode(op('GatherND', ['x', 'i'], ['y']), { x: ['float32', [9, 3, 5]], i: ['int64', [4, 2]] }),
    input: 'i',
    domain: { kind: 'range', low: 0, high: 3 },
  },
  {
    name: 'ScatterND writes to distinct places',
    spec: oneNode(op('ScatterND', ['x', 'i', 'u'], ['y']), {
      x: ['float32', [4, 2]],
      i: ['int64', [2, 1]],
      u: ['float32', [2, 2]],
    }),
    input: 'i',
    domain: { kind: 'constant', values: [0, 2] },
  },
  {
    name: 'ScatterElements writes to distinct places along its axis',
    spec: oneNode(op('ScatterElements', ['x', 'i', 'u'], ['y'], { axis: -1 }), {
      x: ['float32', [4, 5]],
      i: ['int64', [4, 3]],
      u: ['float32', [4, 3]],
    }),
    input: 'i',
    domain: { kind: 'counting', start: 0, axis: 1 },
  },
  {
    name: 'OneHot takes indices below its depth',
    spec: oneNode(op('OneHot', ['i', 'd', 'v'], ['y']), { i: ['int64', [4]] }, ['float32'], {
      d: ints([], [6]),
      v: floats([2], [0, 1]),
    }),
    input: 'i',
    domain: { kind: 'range', low: 0, high: 6 },
  },
  {
    name: 'sequence_lens of an LSTM are the time axis',
    spec: oneNode(
      op('LSTM', ['x', 'w', 'r', '', 'lens'], ['y'], { hidden_size: 3 }),
      { x: ['float32', [6, 2, 4]], lens: ['int32', [2]] },
      ['float32'],
      { w: zeros([1, 12, 4]), r: zeros([1, 12, 3]) },
    ),
    input: 'lens',
    domain: { kind: 'constant', values: [6] },
  },
  {
    name: 'Reshape gets a target that multiplies out, as declared',
    spec: oneNode(op('Reshape', ['x', 's'], ['y']), { x: ['float32', [4, 6]], s: ['int64', [3]] }, [
      'float32',
      [2, 2, 6],
    ]),
    input: 's',
    domain: { kind: 'constant', values: [2, 2, 6] },
  },
  {
    name: 'Reshape gets a target that multiplies out, undeclared',
    spec: oneNode(op('Reshape', ['x', 's'], ['y']), { x: ['float32', [4, 6, 5]], s: ['int64', [2]] }),
    input: 's',
    domain: { kind: 'constant', values: [24, 5] },
  },
  {
    name: 'reduced axes are those that the output lost',
    spec: oneNode(
      op('ReduceSum', ['x', 'a'], ['y'], { keepdims: 0 }),
      { x: ['float32', [4, 6, 5]], a: ['int64', [1]] },
      ['float32', [4, 5]],
    ),
    input: 'a',
    domain: { kind: 'constant', values: [1] },
  },
  {
    name: 'squeezed axes have one entry',
    spec: oneNode(op('Squeeze', ['x', 'a'], ['y']), { x: ['float32', [4, 1, 5, 1]], a: ['int64', [2]] }),
    input: 'a',
    domain: { kind: 'constant', values: [1, 3] },
  },
  {
    name: 'TopK takes no more than there are',
    spec: oneNode(op('TopK', ['x', 'k'], ['y', 'z']), { x: ['float32', [4, 2]], k: ['int64', [1]] }),
    input: 'k',
    domain: { kind: 'constant', values: [2] },
  },
  {
    name: 'Split gets parts that sum up',
    spec: oneNode(op('Split', ['x', 's'], ['y', 'z'], { axis: 1 }), {
      x: ['float32', [4, 5]],
      s: ['int64', [2]],
    }),
    input: 's',
    domain: { kind: 'constant', values: [3, 2] },
  },
  {
    name: 'Slice ends inside its axes',
    spec: oneNode(
      op('Slice', ['x', 's', 'e', 'a'], ['y']),
      { x: ['float32', [4, 5]], s: ['int64', [1]], e: ['int64', [1]], a: ['int64', [1]] },
      ['float32', [2, 5]],
    ),
    input: 'e',
    domain: { kind: 'constant', values: [2] },
  },
  {
    name: 'Log gets positive numbers',
    spec: oneNode(op('Log', ['x'], ['y']), { x: ['float32', [3]] }),
    input: 'x',
    domain: { kind: 'range', low: 0.01, high: 40 },
  },
  {
    name: 'divisors are away from 0, dividends are free',
    spec: oneNode(op('Div', ['x', 'z'], ['y']), { x: ['float32', [3]], z: ['float32', [3]] }),
    input: 'z',
    domain: { kind: 'range', low: 0.5, high: 40 },
  },
  {
    name: 'dividends are free',
    spec: oneNode(op('Div', ['x', 'z'], ['y']), { x: ['float32', [3]], z: ['float32', [3]] }),
    input: 'x',
    domain: undefined,
  },
  {
    name: 'Acosh gets 1 and more',
    spec: oneNode(op('Acosh', ['x'], ['y']), { x: ['float32', [3]] }),
    input: 'x',
    domain: { kind: 'range', low: 1, high: 40 },
  },
  {
    name: 'scales are positive',
    spec: oneNode(op('DequantizeLinear', ['x', 's', 'z'], ['y']), {
      x: ['int8', [3]],
      s: ['float32', []],
      z: ['int8', []],
    }),
    input: 's',
    domain: { kind: 'range', low: 0.01, high: 1 },
  },
  {
    name: 'quantised values take all of their dtype',
    spec: oneNode(op('DequantizeLinear', ['x', 's', 'z'], ['y']), {
      x: ['int8', [3]],
      s: ['float32', []],
      z: ['int8', []],
    }),
    input: 'x',
    domain: { kind: 'range', low: -128, high: 128 },
  },
  {
    name: 'text that is cast to a number reads as one',
    spec: oneNode(op('Cast', ['x'], ['y'], { to: 1 }), { x: ['string', [3]] }),
    input: 'x',
    domain: { kind: 'choices' },
  },
  {
    name: 'the shape argument of ConstantOfShape is small and positive',
    spec: oneNode(op('ConstantOfShape', ['x'], ['y']), { x: ['int64', [3]] }),
    input: 'x',
    domain: { kind: 'constant', values: [2, 2, 2] },
  },
]

describe('what operators ask for', () => {
  test.for(cases)('$name', ({ spec, input, domain }) => {
    const found = domainsOf(spec)[input]
    if (domain === undefined) expect(found).toBeUndefined()
    else expect(found).toMatchObject(domain)
  })
})

const table = { table: zeros([30, 4]) }

describe('inputs are followed', () => {
  test('through casts, reshapes and offsets, with a reason to show', () => {
    const spec: ModelSpec = {
      nodes: [
        op('Cast', ['ids'], ['wide'], { to: 7 }),
        op('Unsqueeze', ['wide', 'axes'], ['column']),
        op('Add', ['column', 'two'], ['moved']),
        op('Gather', ['table', 'moved'], ['y'], {}, { name: 'embed' }),
      ],
      inputs: { ids: ['int32', ['batch', 'sequence']] },
      outputs: { y: ['float32'] },
      initializers: { ...table, axes: ints([1], [0]), two: ints([], [2]) },
    }
    expect(domainsOf(spec)['ids']).toEqual({
      kind: 'range',
      low: -2,
      high: 28,
      because: 'indices of Gather "embed" into 30 rows',
    })
  })

  test('the strictest of several readers counts', () => {
    const spec: ModelSpec = {
      nodes: [op('Gather', ['table', 'ids'], ['a']), op('Gather', ['small', 'ids'], ['b'])],
      inputs: { ids: ['int64', [4]] },
      outputs: { a: ['float32'], b: ['float32'] },
      initializers: { ...table, small: zeros([3, 4]) },
    }
    expect(domainsOf(spec)['ids']).toMatchObject({ kind: 'range', low: 0, high: 3 })
  })

  test('not without end', () => {
    const length = 20_000
    const chain = Array.from({ length }, (_, at) =>
      op('Identity', [at === 0 ? 'x' : `v${at - 1}`], [`v${at}`]),
    )
    const spec: ModelSpec = {
      nodes: [...chain, op('Log', [`v${length - 1}`], ['y'])],
      inputs: { x: ['float32', [4]] },
      outputs: { y: ['float32'] },
    }
    expect(domainsOf(spec)).toEqual({})
  })

  test('through sums to a logarithm', () => {
    const spec: ModelSpec = {
      nodes: [op('ReduceSum', ['x'], ['sum']), op('Log', ['sum'], ['y'])],
      inputs: { x: ['float32', [4]] },
      outputs: { y: ['float32'] },
    }
    expect(domainsOf(spec)['x']).toMatchObject({ kind: 'range', low: 0.01 })
  })

  test('into the bodies of If and Loop, which get true conditions and few turns', () => {
    const spec: ModelSpec = {
      nodes: [
        op('If', ['c'], ['y'], {
          then_branch: {
            graph: { nodes: [op('Gather', ['table', 'ids'], ['t'])], outputs: { t: ['float32'] } },
          },
          else_branch: {
            graph: { nodes: [op('Identity', ['table'], ['e'])], outputs: { e: ['float32'] } },
          },
        }),
        op('Loop', ['trips', 'go', 'start'], ['z'], {
          body: {
            graph: {
              inputs: { i: ['int64', []], on: ['bool', []], s: ['float32', [2]] },
              nodes: [op('Identity', ['on'], ['still']), op('Sqrt', ['s'], ['r'])],
              outputs: { still: ['bool', []], r: ['float32', [2]] },
            },
          },
        }),
      ],
      inputs: {
        c: ['bool', []],
        ids: ['int64', [4]],
        trips: ['int64', []],
        go: ['bool', []],
        start: ['float32', [2]],
      },
      outputs: { y: ['float32'], z: ['float32'] },
      initializers: table,
    }
    expect(domainsOf(spec)).toMatchObject({
      c: { kind: 'constant', values: [1] },
      ids: { kind: 'range', low: 0, high: 30 },
      trips: { kind: 'constant', values: [3] },
      go: { kind: 'constant', values: [1] },
      start: { kind: 'range', low: 0, high: 40 },
    })
  })

  test('into local functions', () => {
    const spec: ModelSpec = {
      nodes: [op('embed', ['table', 'ids'], ['y'], {}, { domain: 'local' })],
      inputs: { ids: ['int64', [4]], x: ['float32', [2]] },
      outputs: { y: ['float32'] },
      initializers: table,
      opsets: { local: 1 },
      functions: [
        {
          domain: 'local',
          name: 'embed',
          inputs: ['w', 'i'],
          outputs: ['o'],
          nodes: [
            op('Constant', [], ['rows'], { value: { tensor: zeros([9, 2]) } }),
            op('Gather', ['rows', 'i'], ['o']),
          ],
        },
      ],
    }
    expect(domainsOf(spec)['ids']).toMatchObject({ kind: 'range', low: 0, high: 9 })
  })
})

describe('names', () => {
  const bert: ModelSpec = {
    nodes: [
      op('Gather', ['words', 'input_ids'], ['a']),
      op('Gather', ['kinds', 'token_type_ids'], ['b']),
      op('Gather', ['places', 'position_ids'], ['c']),
      op('Cast', ['attention_mask'], ['d'], { to: 1 }),
    ],
    inputs: Object.fromEntries(
      ['input_ids', 'token_type_ids', 'position_ids', 'attention_mask'].map((name) => [
        name,
        ['int64', ['batch_size', 'sequence_length']] as const,
      ]),
    ),
    outputs: { a: ['float32'], b: ['float32'], c: ['float32'], d: ['float32'] },
    initializers: { words: zeros([99, 2]), kinds: zeros([2, 2]), places: zeros([16, 2]) },
  }

  test('say what the graph leaves open', () => {
    expect(domainsOf(bert)).toMatchObject({
      input_ids: { kind: 'range', low: 0, high: 99 },
      token_type_ids: { kind: 'range', low: 0, high: 2 },
      position_ids: { kind: 'counting', start: 0, axis: 1 },
      attention_mask: { kind: 'constant', values: [1] },
    })
  })

  test('give way where counting would leave the table', () => {
    const small = { ...bert, initializers: { ...bert.initializers, places: zeros([5, 2]) } }
    expect(domainsOf(small)['position_ids']).toMatchObject({ kind: 'range', low: 0, high: 5 })
  })

  test('a sample rate is one, a float of that name in a batch is none', () => {
    const spec: ModelSpec = {
      nodes: [op('Identity', ['sr'], ['y'])],
      inputs: { sr: ['int64', []] },
      outputs: { y: ['int64', []] },
    }
    expect(domainsOf(spec)['sr']).toMatchObject({ kind: 'constant', values: [16_000] })
    expect(domainsOf({ ...spec, inputs: { sr: ['float32', [4]] } })['sr']).toBeUndefined()
  })

  test('an input without any meaning has no domain', () => {
    const spec = oneNode(op('MatMul', ['x', 'w'], ['y']), { x: ['float32', [2, 3]] }, ['float32'], {
      w: zeros([3, 3]),
    })
    expect(domainsOf(spec)).toEqual({})
  })

  test('integer divisors are whole, and text never gets numbers', () => {
    const ints8 = oneNode(op('Div', ['x', 'd'], ['y']), { d: ['int32', [2]] }, ['int32'], {
      x: tensor('int32', [2], Int32Array.of(4, 6)),
    })
    expect(domainsOf(ints8)['d']).toMatchObject({ kind: 'range', low: 1, high: 40 })
    const text: ModelSpec = {
      nodes: [op('Identity', ['attention_mask'], ['y'])],
      inputs: { attention_mask: ['string', [2]] },
      outputs: { y: ['string', [2]] },
    }
    expect(domainsOf(text)).toEqual({})
  })
})
