import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { WireReader } from '../../src/bytes/wire-reader.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { elementOf, mapOf, optionalOf, sequenceOf } from '../../src/onnx/element-type.ts'
import { indexModel } from '../../src/onnx/model-index.ts'
import { readValueInfoType, tensorType, valueInfo, type ValueType } from '../../src/onnx/value-type.ts'
import type { Tensor } from '../../src/tensor/tensor.ts'
import { tensor } from '../../src/tensor/tensor.ts'
import { buildModel, floats, type GraphSpec, ints, type ModelSpec, op } from '../../testdata/onnx-builder.ts'
import { differences, runBytes, runParts, splitFile } from '../support/composition.ts'
import { tempModel } from '../support/temp-model.ts'

const FLOAT: readonly ['float32', readonly number[]] = ['float32', [2, 3]]
const [FLOATS, INT64] = [1, 7]

const FEEDS: Readonly<Record<string, Tensor>> = {
  x: floats([2, 3], [1, -2, 3, -4, 5, -6]),
  c: tensor('bool', [], Uint8Array.of(1)),
  n: ints([], [3]),
}

const zero = { zero: ints([], [0]) }
const branch = (...nodes: GraphSpec['nodes']): { graph: GraphSpec } => ({
  graph: { nodes, outputs: { [nodes.at(-1)!.outputs[0]!]: undefined } },
})

interface Case {
  readonly what: string
  readonly model: ModelSpec
  /** The operators of each part, and of the parts of bodies. */
  readonly parts: readonly string[]
  /** The types of inner values, as the file alone shows them. */
  readonly types: Readonly<Record<string, string>>
}

const CASES: readonly Case[] = [
  {
    what: 'an optional tensor',
    model: {
      inputs: { x: FLOAT },
      outputs: { y: undefined },
      nodes: [
        op('Relu', ['x'], ['r']),
        op('Optional', ['r'], ['o']),
        op('Identity', ['o'], ['p']),
        op('OptionalHasElement', ['p'], ['h']),
        op('OptionalGetElement', ['p'], ['g']),
        op('Cast', ['h'], ['f'], { to: FLOATS }),
        op('Mul', ['g', 'f'], ['y']),
      ],
    },
    parts: ['Relu', 'Optional Identity OptionalHasElement OptionalGetElement', 'Cast', 'Mul'],
    types: { o: 'optional of 1', p: 'optional of 1', h: '9', g: '1', y: '1' },
  },
  {
    what: 'an optional sequence',
    model: {
      inputs: { x: FLOAT },
      outputs: { y: undefined },
      initializers: zero,
      nodes: [
        op('SequenceConstruct', ['x', 'x'], ['s']),
        op('Optional', ['s'], ['o']),
        op('OptionalGetElement', ['o'], ['t']),
        op('SequenceAt', ['t', 'zero'], ['g']),
        op('Relu', ['g'], ['y']),
      ],
    },
    parts: ['SequenceConstruct Optional OptionalGetElement SequenceAt', 'Relu'],
    types: { s: 'sequence of 1', o: 'optional of sequence of 1', t: 'sequence of 1', g: '1', y: '1' },
  },
  {
    what: 'the element of what is no optional',
    model: {
      opset: 18,
      inputs: { x: FLOAT },
      outputs: { y: undefined },
      initializers: zero,
      nodes: [
        op('SequenceConstruct', ['x'], ['s']),
        op('OptionalGetElement', ['s'], ['t']),
        op('SequenceAt', ['t', 'zero'], ['g']),
        op('OptionalGetElement', ['g'], ['h']),
        op('Relu', ['h'], ['y']),
      ],
    },
    parts: ['SequenceConstruct OptionalGetElement SequenceAt', 'OptionalGetElement', 'Relu'],
    types: { t: 'sequence of 1', g: '1', h: '1' },
  },
  {
    what: 'a sequence that is cut, changed and joined',
    model: {
      inputs: { x: FLOAT },
      outputs: { y: undefined },
      initializers: zero,
      nodes: [
        op('Shape', ['x'], ['i']),
        op('SplitToSequence', ['i'], ['s'], { axis: 0 }),
        op('SequenceAt', ['s', 'zero'], ['a']),
        op('SequenceInsert', ['s', 'a'], ['t']),
        op('SequenceErase', ['t'], ['e']),
        op('SequenceLength', ['e'], ['l']),
        op('ConcatFromSequence', ['e'], ['c'], { axis: 0 }),
        op('Mul', ['c', 'l'], ['y']),
      ],
    },
    parts: [
      'Shape',
      'SplitToSequence SequenceAt SequenceInsert SequenceErase SequenceLength ConcatFromSequence',
      'Mul',
    ],
    types: { s: 'sequence of 7', a: '7', t: 'sequence of 7', e: 'sequence of 7', c: '7', l: '7' },
  },
  {
    what: 'optionals that branches give',
    model: {
      inputs: { x: FLOAT, c: ['bool', []] },
      outputs: { y: undefined },
      nodes: [
        op('If', ['c'], ['o'], {
          then_branch: branch(op('Optional', ['x'], ['t'])),
          else_branch: branch(op('Neg', ['x'], ['n']), op('Optional', ['n'], ['e'])),
        }),
        op('OptionalGetElement', ['o'], ['g']),
        op('Relu', ['g'], ['y']),
      ],
    },
    parts: ['If OptionalGetElement', 'else: Neg', 'Relu'],
    types: { o: 'optional of 1', g: '1' },
  },
  {
    what: 'a sequence that a loop fills',
    model: {
      inputs: { x: FLOAT, n: ['int64', []], c: ['bool', []] },
      outputs: { y: undefined },
      nodes: [
        op('SequenceEmpty', [], ['s']),
        op('Loop', ['n', 'c', 's'], ['o'], {
          body: {
            graph: {
              inputs: { i: ['int64', []], k: ['bool', []], a: undefined },
              nodes: [
                op('Identity', ['k'], ['k2']),
                op('Cast', ['i'], ['f'], { to: FLOATS }),
                op('Mul', ['x', 'f'], ['m']),
                op('SequenceInsert', ['a', 'm'], ['b']),
              ],
              outputs: { k2: ['bool', []], b: undefined },
            },
          },
        }),
        op('ConcatFromSequence', ['o'], ['g'], { axis: 0 }),
        op('Relu', ['g'], ['y']),
      ],
    },
    parts: ['SequenceEmpty Loop ConcatFromSequence', 'body: Identity', 'body: Cast', 'body: Mul', 'Relu'],
    types: { s: 'sequence of 1', o: 'sequence of 1', g: '1' },
  },
  {
    what: 'maps that nobody reads',
    model: {
      opsets: { 'ai.onnx.ml': 3 },
      inputs: { x: FLOAT },
      outputs: { y: undefined },
      nodes: [
        op('ZipMap', ['x'], ['z'], { classlabels_int64s: [0, 1, 2] }, { domain: 'ai.onnx.ml' }),
        op('Relu', ['x'], ['y']),
      ],
    },
    parts: ['Relu'],
    types: { z: 'sequence of map of 1' },
  },
]

describe.each(CASES)('$what', ({ model, parts, types }) => {
  test('is known from the file alone', () => {
    const graph = resolveModel(indexModel(bytesSource(buildModel(model))))
    const known = inferTypes(graph)
    const found = graph.values.map((value) => [value.name, show(known.get(value))] as const)
    expect(Object.fromEntries(found)).toMatchObject(types)
  })

  test('stays in one part, and the parts compose', async () => {
    const file = tempModel(model)
    const split = await splitFile(file)
    expect(
      split.parts.map(({ scope, nodes }) => {
        const where = scope === '' ? '' : `${scope.replace(/^.*_/, '')}: `
        return where + nodes.map(({ entry }) => entry.opType).join(' ')
      }),
    ).toEqual(parts)
    const feeds = new Map(Object.keys(model.inputs ?? {}).map((name) => [name, FEEDS[name]!]))
    expect(differences(await runBytes(file.path, feeds), await runParts(split, feeds))).toEqual([])
  })
})

/** onnxruntime expands SequenceMap, and cannot where the body has no types; so without a run. */
test('what a body maps is a sequence of what it gives', () => {
  const body = {
    graph: { inputs: { a: undefined }, nodes: [op('Shape', ['a'], ['b'])], outputs: { b: undefined } },
  }
  const nodes = [op('SequenceConstruct', ['x'], ['s']), op('SequenceMap', ['s'], ['o'], { body })]
  const model = buildModel({ inputs: { x: FLOAT }, outputs: { o: undefined }, nodes })
  const graph = resolveModel(indexModel(bytesSource(model)))
  const types = inferTypes(graph)
  const inner = graph.nodes[1]!.subgraphs[0]!
  expect(show(types.get(graph.outputs[0]!))).toBe('sequence of 7')
  expect(show(types.get(inner.inputs[0]!))).toBe('1')
})

describe('types of types', () => {
  const FLOAT_TENSOR = tensorType(FLOATS, [2, 'n'])

  test.each<[string, ValueType]>([
    ['sequence of 1', sequenceOf(FLOAT_TENSOR)],
    ['optional of sequence of 1', optionalOf(sequenceOf(FLOAT_TENSOR))],
    ['sequence of map of 1', sequenceOf(mapOf(INT64, FLOAT_TENSOR))],
  ])('%s is read as it is written', (text, type) => {
    const source = bytesSource(valueInfo('v', type).toBytes())
    const again = readValueInfoType(new WireReader(source), 0, source.size)
    expect(again).toEqual(type)
    expect(show(again)).toBe(text)
  })

  test('of what is not known are only a kind', () => {
    expect(sequenceOf(undefined)).toEqual({ kind: 'sequence', encoded: new Uint8Array() })
    expect(optionalOf(sequenceOf(undefined))).toEqual({ kind: 'optional', encoded: new Uint8Array() })
    expect(elementOf(sequenceOf(undefined))).toBeUndefined()
  })
})

function show(type: ValueType | undefined): string {
  if (type === undefined) return 'unknown'
  return type.kind === 'tensor' ? String(type.dataType) : `${type.kind} of ${show(elementOf(type))}`
}
