/** Small models that every target is asked to run, each with its inputs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import onnxProto from 'onnx-proto'
import { fromFloat64, type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { buildModel, floats, ints, type ModelSpec, op } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

export interface ContractModel {
  readonly name: string
  readonly bytes: Uint8Array
  readonly folder: string
  readonly inputs: Readonly<Record<string, Tensor>>
  readonly outputs: readonly string[]
}

/** Numbers between -1 and 1 that repeat only after a while. */
function wave(...shape: number[]): Tensor {
  const count = shape.reduce((product, dim) => product * dim, 1)
  return floats(
    shape,
    Array.from({ length: count }, (_, at) => Math.sin(at * 1.7 + count)),
  )
}

const half = (shape: number[], values: number[]): Tensor =>
  fromFloat64('float16', shape, Float64Array.from(values))
const bools = (shape: number[], values: number[]): Tensor => tensor('bool', shape, Uint8Array.from(values))

interface Entry {
  readonly spec: ModelSpec
  readonly inputs?: Readonly<Record<string, Tensor>>
  /** In the file; a literal puts names that are numbers first. */
  readonly order?: readonly string[]
  /** Moves the weights into a file beside the model. */
  readonly isExternal?: boolean
}

const matMulAdd: ModelSpec = {
  nodes: [op('MatMul', ['x', 'w'], ['xw']), op('Add', ['xw', 'b'], ['y'])],
  inputs: { x: ['float32', [3, 4]] },
  outputs: { y: ['float32', [3, 5]] },
  initializers: { w: wave(4, 5), b: wave(5) },
}

const twice = { x: ['float32', [2, 2]] } as const

const ENTRIES: Readonly<Record<string, Entry>> = {
  'MatMul and Add': { spec: matMulAdd, inputs: { x: wave(3, 4) } },
  Conv: {
    spec: {
      nodes: [op('Conv', ['x', 'w', 'b'], ['c'], { pads: [1, 1, 1, 1] }), op('Relu', ['c'], ['y'])],
      inputs: { x: ['float32', [1, 2, 5, 5]] },
      outputs: { y: ['float32', [1, 3, 5, 5]] },
      initializers: { w: wave(3, 2, 3, 3), b: wave(3) },
    },
    inputs: { x: wave(1, 2, 5, 5) },
  },
  LSTM: {
    spec: {
      nodes: [op('LSTM', ['x', 'w', 'r'], ['y', 'h', 'c'], { hidden_size: 4 })],
      inputs: { x: ['float32', [3, 1, 2]] },
      outputs: { y: ['float32', [3, 1, 1, 4]], h: ['float32', [1, 1, 4]], c: ['float32', [1, 1, 4]] },
      initializers: { w: wave(1, 16, 2), r: wave(1, 16, 4) },
    },
    inputs: { x: wave(3, 1, 2) },
  },
  int64: {
    spec: {
      nodes: [op('Add', ['x', 'one'], ['y'])],
      inputs: { x: ['int64', [3]] },
      outputs: { y: ['int64', [3]] },
      initializers: { one: ints([1], [1]) },
    },
    inputs: { x: ints([3], [-1, 0, 2 ** 40]) },
  },
  bool: {
    spec: {
      nodes: [op('Not', ['x'], ['y'])],
      inputs: { x: ['bool', [2, 2]] },
      outputs: { y: ['bool', [2, 2]] },
    },
    inputs: { x: bools([2, 2], [1, 0, 0, 1]) },
  },
  float16: {
    spec: {
      nodes: [op('Mul', ['x', 'x'], ['y'])],
      inputs: { x: ['float16', [3]] },
      outputs: { y: ['float16', [3]] },
    },
    inputs: { x: half([3], [1.5, -2, 0.25]) },
  },
  string: {
    spec: {
      nodes: [op('Identity', ['x'], ['y'])],
      inputs: { x: ['string', [2]] },
      outputs: { y: ['string', [2]] },
    },
    inputs: { x: tensor('string', [2], ['', 'naïve']) },
  },
  scalar: {
    spec: {
      nodes: [op('Mul', ['x', 'x'], ['y'])],
      inputs: { x: ['float32', []] },
      outputs: { y: ['float32', []] },
    },
    inputs: { x: floats([], [1.5]) },
  },
  'zero size': {
    spec: {
      nodes: [op('Relu', ['x'], ['y'])],
      inputs: { x: ['float32', [0, 3]] },
      outputs: { y: ['float32', [0, 3]] },
    },
    inputs: { x: floats([0, 3], []) },
  },
  'no inputs': {
    spec: {
      nodes: [op('Constant', [], ['k'], { value: { tensor: wave(2, 2) } }), op('Relu', ['k'], ['y'])],
      outputs: { y: ['float32', [2, 2]] },
    },
  },
  'several outputs': {
    spec: {
      nodes: [op('Relu', ['x'], ['b']), op('Neg', ['x'], ['10']), op('Abs', ['x'], ['2'])],
      inputs: twice,
      outputs: { b: ['float32', [2, 2]], '10': ['float32', [2, 2]], '2': ['float32', [2, 2]] },
    },
    inputs: { x: wave(2, 2) },
    order: ['b', '10', '2'],
  },
  'external weights': {
    spec: {
      ...matMulAdd,
      inputs: { x: ['float32', [2, 64]] },
      outputs: { y: ['float32', [2, 64]] },
      initializers: { w: wave(64, 64), b: wave(64) },
    },
    inputs: { x: wave(2, 64) },
    isExternal: true,
  },
  If: {
    spec: {
      nodes: [
        op('If', ['isLarge'], ['y'], {
          then_branch: {
            graph: { nodes: [op('Add', ['x', 'x'], ['a'])], outputs: { a: ['float32', [2, 2]] } },
          },
          else_branch: {
            graph: { nodes: [op('Neg', ['x'], ['n'])], outputs: { n: ['float32', [2, 2]] } },
          },
        }),
      ],
      inputs: { ...twice, isLarge: ['bool', []] },
      outputs: { y: ['float32', [2, 2]] },
    },
    inputs: { x: wave(2, 2), isLarge: bools([], [1]) },
  },
  Loop: {
    spec: {
      nodes: [
        op('Loop', ['turns', 'go', 'x'], ['y'], {
          body: {
            graph: {
              nodes: [op('Add', ['state', 'x'], ['next']), op('Identity', ['goOn'], ['stay'])],
              inputs: { turn: ['int64', []], goOn: ['bool', []], state: ['float32', [2, 2]] },
              outputs: { stay: ['bool', []], next: ['float32', [2, 2]] },
            },
          },
        }),
      ],
      inputs: twice,
      outputs: { y: ['float32', [2, 2]] },
      initializers: { turns: ints([], [3]), go: bools([], [1]) },
    },
    inputs: { x: wave(2, 2) },
  },
}

export function contractModels(): ContractModel[] {
  return Object.entries(ENTRIES).map(([name, { spec, inputs = {}, isExternal = false, order }]) => {
    const folder = tempFolder()
    const outputs = order ?? Object.keys(spec.outputs)
    const ordered = orderOutputs(buildModel(spec), outputs)
    return { name, bytes: isExternal ? moveWeightsOut(ordered, folder) : ordered, folder, inputs, outputs }
  })
}

function orderOutputs(bytes: Uint8Array, names: readonly string[]): Uint8Array {
  const model = onnxProto.onnx.ModelProto.decode(bytes)
  const { output } = model.graph!
  model.graph!.output = names.map((name) => output!.find((info) => info.name === name)!)
  return onnxProto.onnx.ModelProto.encode(model).finish()
}

const EXTERNAL = 1

function moveWeightsOut(bytes: Uint8Array, folder: string): Uint8Array {
  const model = onnxProto.onnx.ModelProto.decode(bytes)
  for (const [at, weight] of model.graph!.initializer!.entries()) {
    const location = `weights-${at}.bin`
    writeFileSync(join(folder, location), weight.rawData!)
    weight.externalData = [
      { key: 'location', value: location },
      { key: 'length', value: String(weight.rawData!.length) },
    ] as never
    weight.dataLocation = EXTERNAL
    weight.rawData = new Uint8Array()
  }
  return onnxProto.onnx.ModelProto.encode(model).finish()
}
