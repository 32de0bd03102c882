/**
 * Makes the models under testdata/onnx_models: `npm run testdata`.
 *
 * Small, and each with something that real models have. The weights are random from a fixed
 * seed, so the files are the same wherever they are made.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultRng } from '../src/tensor/random.ts'
import { type Tensor, tensor } from '../src/tensor/tensor.ts'
import {
  buildModel,
  floats,
  type GraphSpec,
  ints,
  type ModelSpec,
  type NodeSpec,
  op,
} from './onnx-builder.ts'

const rng = defaultRng(20)

/** Uniform in ±1/sqrt(fan-in), so that activations keep their size through the layers. */
function weight(...shape: number[]): Tensor {
  const count = shape.reduce((product, dim) => product * dim, 1)
  const bound = 1 / Math.sqrt(count / shape[0]! || 1)
  return tensor('float32', shape, Float32Array.from(rng.uniform(-bound, bound, count)))
}

const scalar = (value: number): Tensor => floats([], [value])
const int8 = (value: number): Tensor => tensor('int8', [], Int8Array.of(value))

const MODELS: Readonly<Record<string, ModelSpec>> = {
  'example-matmul': {
    inputs: { x: ['float32', [4, 8]] },
    outputs: { y: ['float32', [4, 16]] },
    initializers: { w: weight(8, 16), b: weight(16) },
    nodes: [
      op('MatMul', ['x', 'w'], ['xw'], {}, { name: 'matmul' }),
      op('Add', ['xw', 'b'], ['y'], {}, { name: 'bias' }),
    ],
  },
  'conv-net': {
    inputs: { image: ['float32', [1, 3, 16, 16]] },
    outputs: { probabilities: ['float32', [1, 10]] },
    initializers: {
      w1: weight(8, 3, 3, 3),
      b1: weight(8),
      w2: weight(16, 8, 3, 3),
      low: scalar(0),
      high: scalar(6),
      fc: weight(16, 10),
      fcb: weight(10),
      gamma: floats(
        [16],
        Array.from({ length: 16 }, (_, at) => 1 + at / 32),
      ),
      beta: weight(16),
      mean: weight(16),
      variance: floats(
        [16],
        Array.from({ length: 16 }, (_, at) => 0.5 + at / 16),
      ),
    },
    nodes: [
      op(
        'Conv',
        ['image', 'w1', 'b1'],
        ['c1'],
        { kernel_shape: [3, 3], pads: [1, 1, 1, 1] },
        { name: 'stem' },
      ),
      op('Clip', ['c1', 'low', 'high'], ['r1'], {}, { name: 'stem_relu6' }),
      op('MaxPool', ['r1'], ['p1'], { kernel_shape: [2, 2], strides: [2, 2] }),
      op('Conv', ['p1', 'w2'], ['c2'], { kernel_shape: [3, 3], pads: [1, 1, 1, 1] }),
      op('BatchNormalization', ['c2', 'gamma', 'beta', 'mean', 'variance'], ['n2']),
      op('Relu', ['n2'], ['r2']),
      op('GlobalAveragePool', ['r2'], ['g']),
      op('Flatten', ['g'], ['f'], { axis: 1 }),
      op('Gemm', ['f', 'fc', 'fcb'], ['logits']),
      op('Softmax', ['logits'], ['probabilities'], { axis: -1 }),
    ],
  },
  'attention-block': {
    inputs: { hidden: ['float32', [1, 6, 16]], mask: ['float32', [1, 1, 6, 6]] },
    outputs: { out: ['float32', [1, 6, 16]] },
    initializers: {
      wq: weight(16, 16),
      wk: weight(16, 16),
      wv: weight(16, 16),
      wo: weight(16, 16),
      heads: ints([4], [0, 0, 4, 4]),
      merged: ints([3], [0, 0, 16]),
      scale: scalar(0.5),
      gain: floats(
        [16],
        Array.from({ length: 16 }, () => 1),
      ),
      shift: floats(
        [16],
        Array.from({ length: 16 }, () => 0),
      ),
    },
    nodes: [
      op('LayerNormalization', ['hidden', 'gain', 'shift'], ['normed'], { axis: -1 }, { name: 'norm' }),
      ...['q', 'k', 'v'].flatMap((name): NodeSpec[] => [
        op('MatMul', ['normed', `w${name}`], [`${name}_flat`], {}, { name: `${name}_proj` }),
        op('Reshape', [`${name}_flat`, 'heads'], [`${name}_split`]),
        op('Transpose', [`${name}_split`], [name], { perm: name === 'k' ? [0, 2, 3, 1] : [0, 2, 1, 3] }),
      ]),
      op('MatMul', ['q', 'k'], ['scores'], {}, { name: 'scores' }),
      op('Mul', ['scores', 'scale'], ['scaled']),
      op('Add', ['scaled', 'mask'], ['masked']),
      op('Softmax', ['masked'], ['weights'], { axis: -1 }, { name: 'attention' }),
      op('MatMul', ['weights', 'v'], ['context']),
      op('Transpose', ['context'], ['context_t'], { perm: [0, 2, 1, 3] }),
      op('Reshape', ['context_t', 'merged'], ['joined']),
      op('MatMul', ['joined', 'wo'], ['projected'], {}, { name: 'out_proj' }),
      op('Add', ['projected', 'hidden'], ['out'], {}, { name: 'residual' }),
    ],
  },
  lstm: {
    inputs: { sequence: ['float32', [5, 1, 4]] },
    outputs: { tagged: ['float32', [5, 1, 3]] },
    initializers: {
      w: weight(1, 24, 4),
      r: weight(1, 24, 6),
      b: weight(1, 48),
      axes: ints([1], [1]),
      fc: weight(6, 3),
    },
    nodes: [
      op('LSTM', ['sequence', 'w', 'r', 'b'], ['y', '', ''], { hidden_size: 6 }, { name: 'lstm' }),
      op('Squeeze', ['y', 'axes'], ['steps']),
      op('MatMul', ['steps', 'fc'], ['tagged'], {}, { name: 'tagger' }),
    ],
  },
  'quantised-qdq': {
    inputs: { x: ['float32', [2, 8]] },
    outputs: { y: ['float32', [2, 4]] },
    initializers: {
      x_scale: scalar(0.05),
      y_scale: scalar(0.1),
      w_scale: scalar(0.01),
      zero: int8(0),
      w: tensor('int8', [8, 4], Int8Array.from(rng.uniform(-100, 100, 32), Math.round)),
    },
    nodes: [
      op('QuantizeLinear', ['x', 'x_scale', 'zero'], ['xq']),
      op('DequantizeLinear', ['xq', 'x_scale', 'zero'], ['xd']),
      op('DequantizeLinear', ['w', 'w_scale', 'zero'], ['wd']),
      op('MatMul', ['xd', 'wd'], ['product']),
      op('Relu', ['product'], ['active']),
      op('QuantizeLinear', ['active', 'y_scale', 'zero'], ['yq']),
      op('DequantizeLinear', ['yq', 'y_scale', 'zero'], ['y']),
    ],
  },
  'dynamic-shapes': {
    inputs: { ids: ['int64', ['batch', 'seq']] },
    outputs: { pooled: ['float32', ['batch', 8]] },
    initializers: {
      embedding: weight(32, 8),
      minus: ints([1], [-1]),
      one: ints([], [1]),
      axes: ints([1], [0]),
      width: ints([1], [8]),
    },
    nodes: [
      op('Gather', ['embedding', 'ids'], ['embedded'], { axis: 0 }, { name: 'embed' }),
      op('Shape', ['ids'], ['shape']),
      op('Gather', ['shape', 'one'], ['length'], { axis: 0 }),
      op('Unsqueeze', ['length', 'axes'], ['length_1d']),
      op('Concat', ['minus', 'length_1d', 'width'], ['target'], { axis: 0 }),
      op('Reshape', ['embedded', 'target'], ['reshaped']),
      op('ReduceMean', ['reshaped'], ['pooled'], { axes: [1], keepdims: 0 }, { name: 'pool' }),
    ],
  },
  'if-loop': {
    inputs: { x: ['float32', [4]], flag: ['bool', []] },
    outputs: { y: ['float32', [4]] },
    initializers: { trips: ints([], [3]), half: scalar(0.5) },
    nodes: [
      op('Mul', ['x', 'half'], ['start']),
      op(
        'Loop',
        ['trips', '', 'start'],
        ['looped'],
        { body: { graph: loopBody() } },
        { name: 'three_times' },
      ),
      op('If', ['flag'], ['y'], {
        then_branch: {
          graph: {
            name: 'then',
            nodes: [op('Add', ['looped', 'x'], ['sum'])],
            outputs: { sum: ['float32', [4]] },
          },
        },
        else_branch: {
          graph: {
            name: 'else',
            nodes: [op('Sub', ['looped', 'x'], ['difference']), op('Abs', ['difference'], ['distance'])],
            outputs: { distance: ['float32', [4]] },
          },
        },
      }),
    ],
  },
}

function loopBody(): GraphSpec {
  return {
    name: 'body',
    inputs: { turn: ['int64', []], go_on: ['bool', []], state: ['float32', [4]] },
    nodes: [
      op('Identity', ['go_on'], ['again']),
      op('Tanh', ['state'], ['squashed']),
      op('Add', ['squashed', 'x'], ['next']),
    ],
    outputs: { again: ['bool', []], next: ['float32', [4]] },
  }
}

for (const [name, spec] of Object.entries(MODELS)) {
  const bytes = buildModel(spec)
  writeFileSync(join(import.meta.dirname, 'onnx_models', `${name}.onnx`), bytes)
  process.stdout.write(`${name}.onnx  ${bytes.length} bytes\n`)
}
