/**
 * Small models with something of everything, encoded by onnx-proto: for tests that damage,
 * truncate or compare.
 */
import onnxProto from 'onnx-proto'

const { ModelProto } = onnxProto.onnx

type Model = Parameters<typeof ModelProto.encode>[0]

const FLOAT = 1
const INT64 = 7
const [TENSOR, GRAPH, INTS, INT, FLOATS, STRINGS] = [4, 5, 7, 2, 6, 8]

export function encodeModel(model: Model): Uint8Array {
  return Uint8Array.from(ModelProto.encode(model).finish())
}

export const floatType = (...dims: (number | string)[]): object => ({
  tensorType: {
    elemType: FLOAT,
    shape: { dim: dims.map((dim) => (typeof dim === 'number' ? { dimValue: dim } : { dimParam: dim })) },
  },
})

const int64s = (name: string, ...values: number[]): object => ({
  name,
  dims: [values.length],
  dataType: INT64,
  int64Data: values,
})

/** The least that counts as a model. */
export function modelOf(graph: Model['graph'], rest: Partial<Model> = {}): Model {
  return { irVersion: 8, opsetImport: [{ domain: '', version: 17 }], graph, ...rest } as Model
}

/** Two nodes, an initializer, inner value infos, documentation and metadata. */
export const chain: Model = modelOf(
  {
    name: 'chain',
    docString: 'two nodes',
    input: [{ name: 'x', type: floatType('batch', 4) }],
    output: [{ name: 'y', type: floatType('batch', 4) }],
    valueInfo: [{ name: 'h', type: floatType('batch', 4) }],
    initializer: [{ name: 'w', dims: [4], dataType: FLOAT, floatData: [1, 2, 3, 4] }],
    node: [
      { name: 'scale', opType: 'Mul', input: ['x', 'w'], output: ['h'], docString: 'by four numbers' },
      {
        name: 'soft',
        opType: 'Softmax',
        input: ['h'],
        output: ['y'],
        attribute: [{ name: 'axis', type: INT, i: -1 }],
      },
    ],
  },
  {
    producerName: 'by hand',
    producerVersion: '1',
    docString: 'a chain',
    metadataProps: [{ key: 'author', value: 'nobody' }],
  },
)

/** If in Loop, each capturing what is outside. */
export const controlFlow: Model = modelOf({
  name: 'control',
  input: [{ name: 'x', type: floatType(2) }],
  output: [{ name: 'y', type: floatType(2) }],
  initializer: [int64s('turns', 3), { name: 'go', dims: [], dataType: 9, int32Data: [1] }],
  node: [
    {
      opType: 'Loop',
      input: ['turns', 'go', 'x'],
      output: ['y'],
      attribute: [
        {
          name: 'body',
          type: GRAPH,
          g: {
            name: 'body',
            input: [{ name: 'i' }, { name: 'c' }, { name: 'state', type: floatType(2) }],
            output: [{ name: 'c' }, { name: 'next' }],
            node: [
              {
                opType: 'If',
                input: ['c'],
                output: ['next'],
                attribute: [branch('then_branch', 'Relu'), branch('else_branch', 'Neg')],
              },
            ],
          },
        },
      ],
    },
  ],
})

function branch(name: string, opType: string): object {
  const node = { opType, input: ['state'], output: [`${name}_out`] }
  return { name, type: GRAPH, g: { name, output: [{ name: `${name}_out` }], node: [node] } }
}

/** Shape arithmetic with constants of every form. */
export const shapes: Model = modelOf({
  name: 'shapes',
  input: [{ name: 'x', type: floatType(2, 3, 4) }],
  output: [{ name: 'y' }],
  initializer: [int64s('zero', 0), int64s('axis', 0)],
  node: [
    { opType: 'Shape', input: ['x'], output: ['shape'] },
    { opType: 'Gather', input: ['shape', 'zero'], output: ['batch'] },
    {
      opType: 'Constant',
      output: ['rest'],
      attribute: [{ name: 'value_ints', type: INTS, ints: [-1] }],
    },
    {
      opType: 'Concat',
      input: ['batch', 'rest'],
      output: ['target'],
      attribute: [{ name: 'axis', type: INT, i: 0 }],
    },
    { opType: 'Reshape', input: ['x', 'target'], output: ['y'] },
    { opType: 'Unsqueeze', input: ['target', 'axis'], output: ['more'] },
    { opType: 'Slice', input: ['shape', 'zero', 'batch'], output: ['some'] },
    {
      opType: 'ConstantOfShape',
      input: ['target'],
      output: ['ones'],
      attribute: [{ name: 'value', type: TENSOR, t: int64s('', 1) }],
    },
  ],
})

/** Functions that call functions, in a domain of their own. */
export const functions: Model = modelOf(
  {
    name: 'functions',
    input: [{ name: 'x', type: floatType(2) }],
    output: [{ name: 'y' }],
    node: [{ opType: 'Outer', domain: 'local', input: ['x'], output: ['y'] }],
  },
  {
    opsetImport: [
      { domain: '', version: 17 },
      { domain: 'local', version: 1 },
    ],
    functions: [
      {
        name: 'Outer',
        domain: 'local',
        input: ['a'],
        output: ['b'],
        attribute: ['alpha'],
        opsetImport: [{ domain: '', version: 17 }],
        node: [
          { opType: 'Inner', domain: 'local', input: ['a'], output: ['m'] },
          {
            opType: 'LeakyRelu',
            input: ['m'],
            output: ['b'],
            attribute: [{ name: 'alpha', type: 1, refAttrName: 'alpha' }],
          },
        ],
      },
      {
        name: 'Inner',
        domain: 'local',
        input: ['a'],
        output: ['b'],
        node: [{ opType: 'Relu', input: ['a'], output: ['b'] }],
      },
    ],
  } as Partial<Model>,
)

/** Sequences, sparse and external weights, lists of every kind, one name defined twice. */
export const odds: Model = modelOf({
  name: 'odds',
  input: [
    { name: 'x', type: floatType(3) },
    { name: 's', type: { sequenceType: { elemType: floatType(3) } } },
  ],
  output: [{ name: 'y' }, { name: 'many' }],
  initializer: [
    {
      name: 'outside',
      dims: [3],
      dataType: FLOAT,
      dataLocation: 1,
      externalData: [
        { key: 'location', value: 'weights.bin' },
        { key: 'offset', value: '16' },
        { key: 'length', value: '12' },
      ],
    },
    { name: 'raw', dims: [3], dataType: FLOAT, rawData: new Uint8Array(12) },
  ],
  sparseInitializer: [
    {
      values: { name: 'sparse', dims: [1], dataType: FLOAT, floatData: [2] },
      indices: { dims: [1], dataType: INT64, int64Data: [1] },
      dims: [3],
    },
  ],
  node: [
    { opType: 'Add', input: ['x', 'outside'], output: ['t'] },
    { opType: 'Add', input: ['t', 'sparse'], output: ['t'] },
    { opType: 'Sub', input: ['t', 'raw'], output: ['y'] },
    { opType: 'SequenceInsert', input: ['s', 'y'], output: ['more'] },
    { opType: 'SequenceAt', input: ['more', 'zero'], output: ['many'] },
    { opType: 'Constant', output: ['zero'], attribute: [{ name: 'value_int', type: INT, i: 0 }] },
    {
      opType: 'TfIdfVectorizer',
      input: ['x'],
      output: ['unused'],
      attribute: [
        { name: 'weights', type: FLOATS, floats: [0.5, 2] },
        { name: 'pool_strings', type: STRINGS, strings: [Buffer.from('a'), Buffer.from('b')] },
        { name: 'mode', type: 3, s: Buffer.from('TF') },
        { name: 'pool_int64s', ints: [1, -1, 1_000_000] },
      ],
    },
  ],
})

export const builtModels: Readonly<Record<string, Uint8Array>> = {
  chain: encodeModel(chain),
  controlFlow: encodeModel(controlFlow),
  shapes: encodeModel(shapes),
  functions: encodeModel(functions),
  odds: encodeModel(odds),
}
