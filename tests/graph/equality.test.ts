import { describe, expect, test } from 'vitest'
import { dropTwins, partDigest } from '../../src/graph/equality.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { splitGraph } from '../../src/graph/split.ts'
import { bytesOfTensor, type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { floats, type GraphSpec, type ModelSpec, type NodeSpec, op } from '../../testdata/onnx-builder.ts'
import { tempModel, tempModelBytes } from '../support/temp-model.ts'
import onnxProto from 'onnx-proto'

const FLOAT = ['float32', [2]] as const

/** How many different parts a model has. */
function kinds(spec: ModelSpec): number {
  return kindsOf(tempModel(spec))
}

function kindsOf(file: ReturnType<typeof tempModel>): number {
  const graph = resolveModel(file.model)
  const types = inferTypes(graph)
  const parts = splitGraph(graph, { stem: 'm', typeOf: (value) => types.get(value) })
  return dropTwins(parts, (part) => partDigest(part, (value) => types.get(value), file.external)).length
}

const two = (first: NodeSpec, second: NodeSpec, initializers: Record<string, Tensor> = {}): ModelSpec => ({
  inputs: { x: FLOAT, y: FLOAT, z: ['float32', [3]] },
  outputs: { a: undefined, b: undefined },
  nodes: [first, second],
  initializers,
})

describe('parts are equal', () => {
  test.each<[string, ModelSpec]>([
    [
      'when only names differ',
      two(op('Relu', ['x'], ['a'], {}, { name: 'one' }), op('Relu', ['y'], ['b'], {}, { name: 'two' })),
    ],
    [
      'when attributes stand in another order',
      two(
        op('Gemm', ['u', 'u'], ['a'], { transA: 1, transB: 0 }),
        op('Gemm', ['u', 'u'], ['b'], { transB: 0, transA: 1 }),
        {
          u: floats([2, 2], [1, 2, 3, 4]),
        },
      ),
    ],
    [
      'when weights are equal in content',
      two(op('Add', ['x', 'u'], ['a']), op('Add', ['y', 'v'], ['b']), {
        u: floats([2], [1, 2]),
        v: floats([2], [1, 2]),
      }),
    ],
  ])('%s', (_, spec) => {
    expect(kinds(spec)).toBe(1)
  })

  test('when a weight is stored in another way', () => {
    const { ModelProto } = onnxProto.onnx
    const spec = two(op('Add', ['x', 'u'], ['a']), op('Add', ['y', 'v'], ['b']), {
      u: floats([2], [1, 2]),
      v: floats([2], [1, 2]),
    })
    const model = ModelProto.decode(tempModel(spec).model.source.read(0, tempModel(spec).model.source.size))
    const v = model.graph!.initializer!.find(({ name }) => name === 'v')!
    v.floatData = [1, 2]
    v.rawData = new Uint8Array(0)
    delete (v as { rawData?: unknown }).rawData
    expect(kindsOf(tempModelBytes(ModelProto.encode(model).finish()))).toBe(1)
  })
})

describe('parts differ', () => {
  test.each<[string, ModelSpec]>([
    ['by operator', two(op('Relu', ['x'], ['a']), op('Neg', ['y'], ['b']))],
    [
      'by attribute',
      two(
        op('LeakyRelu', ['x'], ['a'], { alpha: { float: 0.1 } }),
        op('LeakyRelu', ['y'], ['b'], { alpha: { float: 0.2 } }),
      ),
    ],
    ['by the shape of an input', two(op('Relu', ['x'], ['a']), op('Relu', ['z'], ['b']))],
    ['by wiring', two(op('Sub', ['x', 'y'], ['a']), op('Sub', ['x', 'x'], ['b']))],
    [
      'by which input is left out',
      two(op('Clip', ['x', 'u', ''], ['a']), op('Clip', ['x', '', 'u'], ['b']), { u: floats([], [1]) }),
    ],
    [
      'by a weight',
      two(op('Add', ['x', 'u'], ['a']), op('Add', ['y', 'v'], ['b']), {
        u: floats([2], [1, 2]),
        v: floats([2], [1, 3]),
      }),
    ],
    [
      'by the dtype of a weight of the same bytes',
      two(op('Cast', ['u'], ['a'], { to: 1 }), op('Cast', ['v'], ['b'], { to: 1 }), {
        u: floats([2], [1, 2]),
        v: tensor('int32', [2], new Int32Array(bytesOfTensor(floats([2], [1, 2])).slice().buffer)),
      }),
    ],
  ])('%s', (_, spec) => {
    expect(kinds(spec)).toBe(2)
  })

  test('by the body of a subgraph, but not by the names in it', () => {
    expect([kinds(ifModel('Add', 'Add')), kinds(ifModel('Add', 'Mul'))]).toEqual([3, 5])
  })
})

function branch(type: string, out: string): { graph: GraphSpec } {
  return { graph: { nodes: [op(type, ['x', 'x'], [out])], outputs: { [out]: FLOAT } } }
}

function ifNode(type: string, name: string): NodeSpec {
  return op('If', ['c'], [name], {
    then_branch: branch(type, `${name}t`),
    else_branch: branch('Sub', `${name}e`),
  })
}

function ifModel(first: string, second: string): ModelSpec {
  return {
    inputs: { x: FLOAT, c: ['bool', []] },
    outputs: { a: undefined, b: undefined },
    nodes: [ifNode(first, 'a'), ifNode(second, 'b')],
  }
}
