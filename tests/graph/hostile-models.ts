/**
 * Models that no exporter writes: small files that ask for far more work than their size.
 *
 * Each was, or could be, a way to keep a process busy for minutes, or to end it. Sizes are such
 * that work which grows with the square of them does not end within a test's time.
 */
import { encodeModel, floatType, modelOf } from '../onnx/built-models.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { bytesField, nested, varintField } from '../onnx/wire.ts'

type Graph = NonNullable<Parameters<typeof modelOf>[0]>
type Node = NonNullable<Graph['node']>[number]

/** How many parts it has, or the code of the error that refuses it. */
export type Outcome = number | ErrorCode

const [INT, INTS, TENSOR, GRAPH, GRAPHS] = [2, 7, 4, 5, 10]
const [FLOAT, INT64] = [1, 7]

const x = { name: 'x', type: floatType(2, 3) }
const y = { name: 'y' }

export const HOSTILE_MODELS: readonly (readonly [what: string, outcome: Outcome, build: () => Uint8Array])[] =
  [
    // names
    [
      '20,000 inputs of one name',
      1,
      () => graph({ input: times(20_000, () => x), node: [node('Relu', ['x'], ['y'])], output: [y] }),
    ],
    [
      '20,000 outputs of one name',
      1,
      () => graph({ input: [x], node: [node('Relu', ['x'], ['y'])], output: times(20_000, () => y) }),
    ],
    [
      '50,000 nodes that give one name',
      50_000,
      () => graph({ input: [x], node: times(50_000, () => node('Relu', ['x'], ['x'])) }),
    ],
    [
      '20,000 names that are what a renamed value would be called',
      40_000,
      () =>
        graph({
          input: [x],
          node: [
            ...times(20_000, (at) => node('Relu', ['x'], [`t__${at + 2}`])),
            ...times(20_000, () => node('Relu', ['x'], ['t'])),
          ],
        }),
    ],
    [
      '20,000 declarations of one value',
      1,
      () =>
        graph({
          input: [x],
          node: [node('Relu', ['x'], ['y'])],
          output: [y],
          valueInfo: times(20_000, () => ({ name: 'y', type: floatType(2, 3) })),
        }),
    ],
    // wiring
    [
      '50,000 readers of one value',
      50_000,
      () => graph({ input: [x], node: times(50_000, (at) => node('Relu', ['x'], [`y${at}`])) }),
    ],
    [
      'a node with 200,000 inputs',
      1,
      () =>
        graph({
          input: [x],
          node: [
            node(
              'Sum',
              times(200_000, () => 'x'),
              ['y'],
            ),
          ],
          output: [y],
        }),
    ],
    [
      'a node with 50,000 outputs, each read by another',
      50_001,
      () =>
        graph({
          input: [x],
          node: [
            node(
              'Split',
              ['x'],
              times(50_000, (at) => `s${at}`),
            ),
            ...times(50_000, (at) => node('Relu', [`s${at}`], [`y${at}`])),
          ],
        }),
    ],
    [
      '500 nodes that each read what all before them give',
      500,
      () =>
        graph({
          input: [x],
          node: times(500, (at) => node('Sum', ['x', ...times(at, (other) => `y${other}`)], [`y${at}`])),
        }),
    ],
    [
      'a chain of 50,000 nodes, last first',
      50_000,
      () =>
        graph({
          input: [{ ...x, name: 'v0' }],
          node: times(50_000, (at) => node('Relu', [`v${at}`], [`v${at + 1}`])).toReversed(),
        }),
    ],
    [
      'a circle of 50,000 nodes',
      'INVALID_GRAPH',
      () => graph({ node: times(50_000, (at) => node('Relu', [`v${at}`], [`v${(at + 1) % 50_000}`])) }),
    ],
    [
      'a node that reads its own output',
      'INVALID_GRAPH',
      () => graph({ node: [node('Relu', ['y'], ['y'])] }),
    ],
    [
      'a sequence that 20,000 nodes read and write',
      2,
      () =>
        graph({
          input: [x],
          node: [
            node('SequenceConstruct', ['x'], ['s0']),
            ...times(20_000, (at) => node('SequenceInsert', [`s${at}`, 'x'], [`s${at + 1}`])),
            node('ConcatFromSequence', ['s20000'], ['c'], [int('axis', 0)]),
            node('Relu', ['c'], ['y']),
          ],
          output: [y],
        }),
    ],
    // subgraphs
    [
      '20,000 graphs in one attribute',
      20_001,
      () =>
        graph({ input: [x], node: [node('Odd', ['x'], ['y'], [graphs(times(20_000, () => RELU_BODY))])] }),
    ],
    [
      'If in If, 30 deep, whose bodies all read the same 300 values',
      300 + 1 + 30 * 302,
      () => {
        const reads = times(300, (at) => node('Relu', [`v${at}`], [`r${at}`]))
        let body: object = { node: [...reads, node('Relu', ['v0'], ['o'])], output: [{ name: 'o' }] }
        for (let depth = 1; depth < 30; depth++) {
          body = { node: [...reads, ifNode(body, 'o')], output: [{ name: 'o' }] }
        }
        return graph({
          input: [x, CONDITION],
          node: [...times(300, (at) => node('Relu', ['x'], [`v${at}`])), ifNode(body, 'y')],
          output: [y],
        })
      },
    ],
    [
      'graphs in graphs, 1,000 deep',
      'MALFORMED_MODEL',
      () => Buffer.concat([HEAD, bytesField(7, nested(bytesField(2, 'deep'), [6, 5, 1], 1_000))]),
    ],
    [
      'a node with 20,000 graphs and 20,000 outputs',
      20_001,
      () =>
        graph({
          input: [x],
          node: [
            node(
              'If',
              ['x'],
              times(20_000, (at) => `y${at}`),
              [graphs(times(20_000, () => RELU_BODY))],
            ),
          ],
        }),
    ],
    // sizes
    [
      'an initializer of 60,000,000 dimensions',
      'MALFORMED_MODEL',
      () => ofGraph(bytesField(5, bytesField(1, Buffer.alloc(60_000_000)), bytesField(8, 'w'))),
    ],
    [
      'an input of 30,000,000 dimensions',
      'MALFORMED_MODEL',
      () => ofGraph(valueField(11, 'x', tensorTypeOf(emptyFields(1, 30_000_000)))),
    ],
    [
      'types of types, 3,000 deep',
      'MALFORMED_MODEL',
      () => ofGraph(valueField(11, 'x', nested(tensorTypeOf(), [1, 4], 3_000))),
    ],
    [
      'lists of axes and sizes that are as long as no list can be',
      2,
      () =>
        graph({
          input: [
            x,
            { name: 'axes', type: int64Type(2 ** 45) },
            { name: 'rows', type: floatType(2, 2 ** 40, 3) },
          ],
          node: [node('ReduceSum', ['x', 'axes'], ['y']), node('Reshape', ['rows', 'axes'], ['z'])],
        }),
    ],
    [
      'an argument that names 20 of 40 axes, none of which gives the declared output',
      1,
      () =>
        graph({
          input: [
            { name: 'x', type: floatType(...ones(40)) },
            { name: 'axes', type: int64Type(20) },
          ],
          node: [node('Squeeze', ['x', 'axes'], ['y'])],
          output: [{ name: 'y', type: floatType(...ones(19), 2) }],
        }),
    ],
    [
      '20,000 inputs with open dimensions',
      1,
      () =>
        graph({
          input: times(20_000, (at) => ({ name: `x${at}`, type: floatType(`total_seq_len_${at}`, 3) })),
          node: [
            node(
              'Concat',
              times(20_000, (at) => `x${at}`),
              ['y'],
              [int('axis', 0)],
            ),
          ],
          output: [y],
        }),
    ],
    [
      '20,000 inputs that are named like lengths',
      1,
      () =>
        graph({
          input: times(20_000, (at) => ({ name: `x${at}_len`, type: int64Type(1) })),
          node: [
            node(
              'Sum',
              times(20_000, (at) => `x${at}_len`),
              ['y'],
            ),
          ],
          output: [y],
        }),
    ],
    [
      '20,000 open dimensions, each equal to the next',
      19_999,
      () =>
        graph({
          input: times(20_000, (at) => ({ name: `x${at}`, type: floatType(`n${at}`) })),
          node: times(19_999, (at) => node('Add', [`x${at + 1}`, `x${at}`], [`y${at}`])),
        }),
    ],
    [
      '5,000 open dimensions, each twice the next',
      9_998,
      () =>
        graph({
          input: times(5_000, (at) => ({ name: `x${at}`, type: floatType(`n${at}`) })),
          node: times(4_999, (at) => [
            node('Concat', [`x${at + 1}`, `x${at + 1}`], [`c${at}`], [int('axis', 0)]),
            node('Add', [`x${at}`, `c${at}`], [`y${at}`]),
          ]).flat(),
        }),
    ],
    [
      'the same, last first',
      9_998,
      () =>
        graph({
          input: times(5_000, (at) => ({ name: `x${at}`, type: floatType(`n${at}`) })),
          node: times(4_999, (at) => [
            node('Concat', [`x${at}`, `x${at}`], [`c${at}`], [int('axis', 0)]),
            node('Add', [`x${at + 1}`, `c${at}`], [`y${at}`]),
          ]).flat(),
        }),
    ],
    [
      'boxes for 2^45 rows, blocks of 2^40 entries',
      2,
      () =>
        graph({
          input: [
            { name: 'p', type: floatType(1, 1, 8, 8) },
            { name: 'rois', type: floatType(2 ** 45, 5) },
            { name: 'columns', type: floatType(1, 2 ** 40, 4) },
            { name: 'block', type: int64Type(2) },
          ],
          initializer: [{ name: 'image', dims: [2], dataType: INT64, int64Data: [8, 8] }],
          node: [
            node('MaxRoiPool', ['p', 'rois'], ['y'], [ints('pooled_shape', [1, 1])]),
            node('Col2Im', ['columns', 'image', 'block'], ['z']),
          ],
          output: [{ name: 'z', type: floatType(1, 1, 8, 8) }],
        }),
    ],
    ...(
      [
        ['a sum of 200,000 symbols', Array(200_000).fill('n').join(' + ')],
        ['200,000 brackets', `${'('.repeat(200_000)}n${')'.repeat(200_000)}`],
      ] as const
    ).map(
      ([what, symbol]) =>
        [
          `a dimension that is ${what}`,
          1,
          () =>
            graph({
              input: [{ name: 'x', type: floatType(symbol) }],
              node: [node('Relu', ['x'], ['y'])],
              output: [y],
            }),
        ] as const,
    ),
    // shape arithmetic
    [
      '20,000 sums over 1,024 sizes of 32 axes',
      20_000,
      () => {
        const shape = [...ones(22), ...Array<number>(10).fill(2)]
        return graph({
          initializer: [{ name: 'v0', dims: shape, dataType: INT64, int64Data: ones(1024) }],
          node: times(20_000, (at) => node('Add', [`v${at}`, 'v0'], [`v${at + 1}`])),
        })
      },
    ],
    [
      '20,000 ranges that would be endless',
      20_000,
      () =>
        graph({
          initializer: [
            { name: 'zero', dims: [], dataType: INT64, int64Data: [0] },
            { name: 'one', dims: [], dataType: INT64, int64Data: [1] },
            { name: 'far', dims: [], dataType: INT64, int64Data: [2 ** 50] },
          ],
          node: times(20_000, (at) => node('Range', ['zero', 'far', 'one'], [`v${at}`])),
        }),
    ],
    [
      'a list of sizes that doubles 60 times',
      61,
      () =>
        graph({
          input: [{ name: 'x', type: floatType('n', 'm') }],
          node: [
            node('Shape', ['x'], ['v0']),
            ...times(60, (at) => node('Concat', [`v${at}`, `v${at}`], [`v${at + 1}`], [int('axis', 0)])),
          ],
        }),
    ],
    [
      'an open dimension that doubles 60 times',
      61,
      () =>
        graph({
          input: [
            { name: 'v0', type: floatType('n') },
            { name: 'x', type: floatType('m') },
          ],
          node: [
            ...times(60, (at) => node('Concat', [`v${at}`, `v${at}`], [`v${at + 1}`], [int('axis', 0)])),
            node('Add', ['v60', 'x'], ['y']),
          ],
        }),
    ],
    [
      'a chain of 20,000 windows over an open dimension',
      20_000,
      () =>
        graph({
          input: [{ name: 'v0', type: floatType(1, 1, 'n') }],
          node: times(20_000, (at) =>
            node('MaxPool', [`v${at}`], [`v${at + 1}`], [ints('kernel_shape', [2])]),
          ),
        }),
    ],
    // constants
    [
      'a list of 2,000,000 numbers in a Constant that 20 nodes read',
      20,
      () =>
        graph({
          node: [
            node('Constant', [], ['k'], [ints('value_ints', Array<number>(2_000_000).fill(1))]),
            ...times(20, (at) => node('Neg', ['k'], [`y${at}`])),
          ],
        }),
    ],
    [
      'a Constant with 50,000 values, of which one counts, read by 1,000 nodes',
      1_000,
      () =>
        graph({
          node: [
            node(
              'Constant',
              [],
              ['k'],
              times(50_000, () => tensor('value', ones(4))),
            ),
            ...times(1_000, (at) => node('Neg', ['k'], [`y${at}`])),
          ],
        }),
    ],
    [
      '10,000 readers of a list of 1,024 numbers',
      10_000,
      () =>
        graph({
          input: [x],
          initializer: [{ name: 'k', dims: [1024], dataType: INT64, int64Data: ones(1024) }],
          node: times(10_000, (at) => node('Reshape', ['x', 'k'], [`y${at}`])),
        }),
    ],
    // functions
    [
      'functions that call each other without end',
      1,
      () =>
        functions(
          [
            { name: 'f0', calls: ['f1', 'f1'] },
            { name: 'f1', calls: ['f0', 'f0'] },
          ],
          ['f0'],
        ),
    ],
    [
      '60 functions, each calling the next twice',
      1,
      () =>
        functions(
          times(60, (at) => ({
            name: `f${at}`,
            calls: Array<string>(2).fill(at < 59 ? `f${at + 1}` : 'Relu'),
          })),
          ['f0'],
        ),
    ],
    [
      'a chain of 20,000 functions',
      1,
      () =>
        functions(
          times(20_000, (at) => ({ name: `f${at}`, calls: [at < 19_999 ? `f${at + 1}` : 'Relu'] })),
          ['f0'],
        ),
    ],
    [
      '20,000 calls of 20,000 functions',
      20_000,
      () =>
        functions(
          times(20_000, (at) => ({ name: `f${at}`, calls: ['Relu'] })),
          times(20_000, (at) => `f${at}`),
        ),
    ],
    // what is unknown
    [
      '20,000 unknown fields beside 2,000 nodes',
      2_000,
      () =>
        ofGraph(
          emptyFields(99, 20_000),
          Buffer.concat(times(2_000, (at) => bytesField(1, bytesField(2, `y${at}`), bytesField(4, 'Odd')))),
        ),
    ],
  ]

const HEAD = Buffer.concat([varintField(1, 8), bytesField(8, varintField(2, 17))])

const RELU_BODY = { node: [{ opType: 'Relu', input: ['x'], output: ['r'] }], output: [{ name: 'r' }] }
const CONDITION = { name: 'c', type: { tensorType: { elemType: 9, shape: { dim: [] } } } }

function graph(content: object): Uint8Array {
  return encodeModel(modelOf(content as Graph))
}

/** A model of encoded fields of its graph. */
function ofGraph(...fields: Uint8Array[]): Uint8Array {
  return Buffer.concat([HEAD, bytesField(7, ...fields)])
}

function functions(
  bodies: readonly { name: string; calls: readonly string[] }[],
  called: readonly string[],
): Uint8Array {
  const all = bodies.map(({ name, calls }) => ({
    name,
    domain: 'local',
    input: ['v0'],
    output: [`v${calls.length}`],
    node: calls.map((callee, at) => call(callee, `v${at}`, `v${at + 1}`)),
    opsetImport: [{ domain: '', version: 17 }],
  }))
  const content = { input: [x], node: called.map((name, at) => call(name, 'x', `y${at}`)) }
  return encodeModel(modelOf(content as Graph, { functions: all } as object))
}

function call(opType: string, from: string, to: string): Node {
  return { opType, domain: opType === 'Relu' ? '' : 'local', input: [from], output: [to] }
}

function node(opType: string, input: string[], output: string[], attribute: object[] = []): object {
  return { opType, input, output, attribute }
}

function ifNode(body: object, output: string): object {
  const other = { node: [{ opType: 'Relu', input: ['x'], output: ['e'] }], output: [{ name: 'e' }] }
  const branches = [
    { name: 'then_branch', type: GRAPH, g: body },
    { name: 'else_branch', type: GRAPH, g: other },
  ]
  return node('If', ['c'], [output], branches)
}

const int = (name: string, i: number): object => ({ name, type: INT, i })
const ints = (name: string, values: number[]): object => ({ name, type: INTS, ints: values })
const graphs = (bodies: object[]): object => ({ name: 'bodies', type: GRAPHS, graphs: bodies })

function tensor(name: string, values: number[]): object {
  return { name, type: TENSOR, t: { dims: [values.length], dataType: INT64, int64Data: values } }
}

function int64Type(...dims: number[]): object {
  return { tensorType: { elemType: INT64, shape: { dim: dims.map((dimValue) => ({ dimValue })) } } }
}

/** TypeProto of a float tensor, its dimensions as encoded fields. */
function tensorTypeOf(dims: Uint8Array = new Uint8Array()): Uint8Array {
  return bytesField(1, varintField(1, FLOAT), bytesField(2, dims))
}

function valueField(number: number, name: string, type: Uint8Array): Uint8Array {
  return bytesField(number, bytesField(1, name), bytesField(2, type))
}

/** `count` empty fields of this number. */
function emptyFields(number: number, count: number): Uint8Array {
  const field = bytesField(number)
  return Buffer.alloc(field.length * count).fill(field)
}

function ones(length: number): number[] {
  return Array<number>(length).fill(1)
}

function times<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}
