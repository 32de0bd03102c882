/** The up-cast model gives what the same model written in float32 gives, bit for bit. */
import fc from 'fast-check'
import onnxProto from 'onnx-proto'
import { basename, dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bytesSource } from '../../../src/bytes/byte-source.ts'
import { openFile } from '../../../src/files/file-source.ts'
import { inferTypes } from '../../../src/graph/infer-types.ts'
import { resolveModel } from '../../../src/graph/resolve.ts'
import type { WeightPolicy } from '../../../src/graph/weights.ts'
import { graphAsModel } from '../../../src/graph/whole.ts'
import { indexModel } from '../../../src/onnx/model-index.ts'
import { AS_IT_IS } from '../../../src/targets/sim/rewrite-model.ts'
import { upcastModel } from '../../../src/targets/upcast/upcast-model.ts'
import { upcastPart } from '../../../src/targets/upcast/upcast-part.ts'
import { carriesBfloat16 } from '../../../src/targets/upcast/carries-bfloat16.ts'
import { upcastTensor } from '../../../src/targets/upcast/upcast-tensor.ts'
import { onnxFromDtype } from '../../../src/tensor/dtype.ts'
import { writeFileAtomic } from '../../../src/files/write-file.ts'
import { elementCount, fromFloat64, type Tensor, tensor, toFloat64 } from '../../../src/tensor/tensor.ts'
import { buildModel, floats, ints, type ModelSpec, op } from '../../../testdata/onnx-builder.ts'
import { tempFolder, tempModelBytes } from '../../support/temp-model.ts'
import { run } from '../sim/simulate.ts'

const { onnx } = onnxProto

type Float = 'bfloat16' | 'float32'

/** Values that bfloat16 has, in either dtype. */
function values(dtype: Float, shape: readonly number[], seed = 1): Tensor {
  const numbers = Float64Array.from({ length: elementCount(shape) }, (_, at) => Math.sin(at * 7.3 + seed) * 3)
  const narrow = fromFloat64('bfloat16', shape, numbers)
  return dtype === 'bfloat16' ? narrow : upcastTensor(narrow)
}

const MODELS: Readonly<Record<string, (dtype: Float) => ModelSpec>> = {
  'MatMul, Add and LayerNormalization with weights': (dtype) => ({
    nodes: [
      op('MatMul', ['x', 'w'], ['m']),
      op('Add', ['m', 'b'], ['a']),
      op('LayerNormalization', ['a', 'scale', 'bias'], ['y'], { stash_type: onnxFromDtype(dtype) }),
    ],
    inputs: { x: [dtype, [2, 8]] },
    outputs: { y: [dtype, [2, 16]] },
    valueInfos: { m: [dtype, [2, 16]], a: [dtype, [2, 16]] },
    initializers: {
      w: values(dtype, [8, 16]),
      b: values(dtype, [16], 2),
      scale: values(dtype, [16], 3),
      bias: values(dtype, [16], 4),
    },
  }),
  'bodies of If with weights, constants and captured values': (dtype) => ({
    nodes: [
      op('ReduceSum', ['x'], ['sum'], { keepdims: 0 }),
      op('Constant', [], ['zero'], { value: { tensor: values(dtype, []) } }),
      op('Greater', ['sum', 'zero'], ['condition']),
      op('If', ['condition'], ['y'], {
        then_branch: {
          graph: {
            nodes: [op('Mul', ['x', 'inner'], ['t']), op('Add', ['t', 'w'], ['taken'])],
            outputs: { taken: [dtype, [4]] },
            valueInfos: { t: [dtype, [4]] },
            initializers: { inner: values(dtype, [4], 5) },
          },
        },
        else_branch: {
          graph: {
            nodes: [
              op('Constant', [], ['c'], { value: { tensor: values(dtype, [4], 6) } }),
              op('Sub', ['x', 'c'], ['other']),
            ],
            outputs: { other: [dtype, [4]] },
          },
        },
      }),
    ],
    inputs: { x: [dtype, [4]] },
    outputs: { y: [dtype, [4]] },
    initializers: { w: values(dtype, [4], 7) },
  }),
  'Casts and other operators that name or take a dtype': (dtype) => ({
    opset: 19,
    ir: 9,
    nodes: [
      op('Cast', ['x'], ['wide'], { to: onnxFromDtype('float32') }),
      op('Exp', ['wide'], ['e']),
      op('Cast', ['e'], ['narrow'], { to: onnxFromDtype(dtype) }),
      op('Cast', ['n'], ['counted'], { to: onnxFromDtype(dtype) }),
      op('CastLike', ['wide', 'counted'], ['like']),
      op('ConstantOfShape', ['shape'], ['filled'], { value: { tensor: values(dtype, [1], 8) } }),
      op('EyeLike', ['filled'], ['eye'], { dtype: onnxFromDtype(dtype) }),
      op('QuantizeLinear', ['x', 'step', 'origin'], ['q']),
      op('DequantizeLinear', ['q', 'step', 'origin'], ['d']),
      op('Sum', ['narrow', 'counted', 'like', 'd'], ['s']),
      op('Gemm', ['s', 'eye', 'filled'], ['y']),
    ],
    inputs: { x: [dtype, [4, 4]], n: ['int64', [4, 4]] },
    outputs: { y: [dtype, [4, 4]], q: ['int8', [4, 4]] },
    initializers: {
      shape: ints([2], [4, 4]),
      step: fromFloat64(dtype, [], Float64Array.of(0.25)),
      origin: tensor('int8', [], Int8Array.of(3)),
    },
  }),
  functions: (dtype) => ({
    opsets: { local: 1 },
    nodes: [op('Twice', ['x'], ['y'], {}, { domain: 'local' })],
    inputs: { x: [dtype, [3]] },
    outputs: { y: [dtype, [3]] },
    functions: [
      {
        domain: 'local',
        name: 'Twice',
        inputs: ['a'],
        outputs: ['b'],
        nodes: [
          op('Constant', [], ['two'], { value: { tensor: values(dtype, [], 9) } }),
          op('Cast', ['a'], ['c'], { to: onnxFromDtype(dtype) }),
          op('Mul', ['c', 'two'], ['b']),
        ],
      },
    ],
  }),
  sequences: (dtype) => ({
    nodes: [
      op('SequenceEmpty', [], ['none'], { dtype: onnxFromDtype(dtype) }),
      op('SequenceInsert', ['none', 'x'], ['one']),
      op('ConcatFromSequence', ['one'], ['y'], { axis: 0 }),
    ],
    inputs: { x: [dtype, [3]] },
    outputs: { y: [dtype, [3]] },
  }),
}

/** The model as another library reads it. */
function decoded(bytes: Uint8Array): Record<string, unknown> {
  return onnx.ModelProto.toObject(onnx.ModelProto.decode(bytes), {
    longs: Number,
    bytes: String,
    defaults: true,
  })
}

function hasBfloat16(bytes: Uint8Array): boolean {
  return /"(dataType|elemType)":16\b|"name":"(to|dtype|stash_type)"[^{}]*"i":16\b/.test(
    JSON.stringify(decoded(bytes)),
  )
}

function feedsOf({ inputs = {} }: ModelSpec, seed = 10): Map<string, Tensor> {
  return new Map(
    Object.entries(inputs).map(([name, type]) => {
      const [dtype, dims] = type!
      const shape = dims as number[]
      const count = elementCount(shape)
      if (dtype !== 'int64') return [name, values('float32', shape, seed)]
      return [
        name,
        ints(
          shape,
          Array.from({ length: count }, (_, at) => at),
        ),
      ]
    }),
  )
}

describe.each(Object.keys(MODELS))('%s', (name) => {
  const [narrow, wide] = [MODELS[name]!('bfloat16'), MODELS[name]!('float32')]

  it('gives what the model in float32 gives', async () => {
    const { bytes, upcast } = upcastModel(buildModel(narrow), AS_IT_IS)
    expect(upcast).toBe(true)
    for (const seed of [10, -40]) {
      const feeds = feedsOf(narrow, seed)
      expect(await run(bytes, feeds)).toEqual(await run(buildModel(wide), feeds))
    }
  })

  it('is the same model as the one in float32', () => {
    const { bytes } = upcastModel(buildModel(narrow), AS_IT_IS)
    expect(decoded(bytes)).toEqual(decoded(buildModel(wide)))
    expect(hasBfloat16(buildModel(narrow))).toBe(true)
    expect(hasBfloat16(bytes)).toBe(false)
  })

  it('is known to carry bfloat16', () => {
    for (const [spec, expected] of [
      [narrow, true],
      [wide, false],
    ] as const) {
      const index = indexModel(bytesSource(buildModel(spec)))
      expect(carriesBfloat16(index, inferTypes(resolveModel(index)))).toBe(expected)
    }
  })

  it('is left alone where it has no bfloat16', () => {
    const before = buildModel(wide)
    const after = upcastModel(before, AS_IT_IS)
    expect(after.upcast).toBe(false)
    expect(after.bytes).toEqual(before)
    expect(after.changed).toEqual({ inputs: {}, outputs: {} })
  })
})

describe('weights', () => {
  const spec = MODELS['MatMul, Add and LayerNormalization with weights']!
  const [narrow, wide] = [spec('bfloat16'), spec('float32')]
  const inFile = tempModelBytes(buildModel(narrow))
  const folder = dirname(inFile.path)
  const reference: WeightPolicy = { kind: 'reference', location: basename(inFile.path), minBytes: 64 }

  it('stay in the model file, behind a Cast', async () => {
    const { bytes } = upcastModel(inFile.model.source, reference)
    const { initializers } = indexModel(bytesSource(bytes)).graph
    const kept = initializers.filter(({ info }) => info.external !== undefined)
    expect(kept.map((one) => one.name)).toEqual(['w__bfloat16'])
    const feeds = feedsOf(narrow)
    expect(await run(bytes, feeds, { folder })).toEqual(await run(buildModel(wide), feeds))
  })

  it('that lie outside already stay there', async () => {
    const graph = resolveModel(inFile.model)
    const types = inferTypes(graph)
    const cut = graphAsModel(graph, graph.outputs, (value) => types.get(value), reference).toBytes()
    const { bytes } = upcastModel(cut, AS_IT_IS)
    expect(
      indexModel(bytesSource(bytes)).graph.initializers.filter(({ info }) => info.external),
    ).toHaveLength(1)
    const feeds = feedsOf(narrow)
    expect(await run(bytes, feeds, { folder })).toEqual(await run(buildModel(wide), feeds))
  })

  it('are taken in where all is to be in the model', async () => {
    const graph = resolveModel(inFile.model)
    const types = inferTypes(graph)
    const cut = graphAsModel(graph, graph.outputs, (value) => types.get(value), reference).toBytes()
    const external = (): ReturnType<typeof openFile> => openFile(inFile.path)
    const { bytes } = upcastModel(cut, { kind: 'inline', external })
    expect(hasBfloat16(bytes)).toBe(false)
    const feeds = feedsOf(narrow)
    expect(await run(bytes, feeds)).toEqual(await run(buildModel(wide), feeds))
  })

  it('of a part are decoded up to a limit, and stay outside beyond it', async () => {
    const graph = resolveModel(inFile.model)
    const types = inferTypes(graph)
    const cut = graphAsModel(graph, graph.outputs, (value) => types.get(value), reference).toBytes()
    const external = inFile.external.bind(inFile)
    const [decodedAll, kept] = [upcastPart(cut, external), upcastPart(cut, external, 100)]
    expect(hasBfloat16(decodedAll)).toBe(false)
    expect(hasBfloat16(kept)).toBe(true)
    const feeds = feedsOf(narrow)
    const expected = await run(buildModel(wide), feeds)
    expect(await run(decodedAll, feeds)).toEqual(expected)
    expect(await run(kept, feeds, { folder })).toEqual(expected)
  })

  it('of bodies are never put outside, where runtimes do not look for them', async () => {
    const body = MODELS['bodies of If with weights, constants and captured values']!
    const model = tempModelBytes(buildModel(body('bfloat16')))
    const weights = { ...reference, location: basename(model.path), minBytes: 1 }
    const { bytes } = upcastModel(model.model.source, weights)
    const bodies = indexModel(bytesSource(bytes)).graph.nodes.flatMap(({ subgraphs }) => subgraphs)
    const inner = bodies.flatMap(({ graph }) => graph.initializers.map(({ info }) => info))
    expect(inner.map(({ name, external }) => [name, external])).toEqual([['inner', undefined]])
    const feeds = feedsOf(body('bfloat16'))
    expect(await run(bytes, feeds, { folder })).toEqual(await run(buildModel(body('float32')), feeds))
  })

  it('can be put into a file beside', async () => {
    const beside = tempFolder()
    const placed: Uint8Array[] = []
    const { bytes } = upcastModel(buildModel(narrow), {
      kind: 'beside',
      location: 'weights.bin',
      minBytes: 64,
      external: () => expect.unreachable(),
      place: ({ source, start, stop }) => {
        placed.push(source.read(start, stop - start))
        return 0
      },
    })
    writeFileAtomic(`${beside}/weights.bin`, placed)
    const feeds = feedsOf(narrow)
    expect(await run(bytes, feeds, { folder: beside })).toEqual(await run(buildModel(wide), feeds))
  })

  it('that are also inputs, and names that are taken, give no clash', async () => {
    const model = tempModelBytes(
      buildModel({
        nodes: [op('Add', ['x', 'w'], ['w__bfloat16']), op('Add', ['w__bfloat16', 'w'], ['y'])],
        inputs: { x: ['bfloat16', [64]], w: ['bfloat16', [64]] },
        outputs: { y: ['bfloat16', [64]] },
        initializers: { w: values('bfloat16', [64]) },
      }),
    )
    const weights = { ...reference, location: basename(model.path) }
    const { bytes, changed } = upcastModel(model.model.source, weights)
    const x = values('float32', [64], 3)
    const [sum, w] = [toFloat64(x), toFloat64(values('float32', [64]))]
    const expected = sum.map((value, at) => Math.fround(Math.fround(value + w[at]!) + w[at]!))
    const results = await run(bytes, new Map([['x', x]]), { folder: dirname(model.path) })
    expect(toFloat64(results.get('y')!)).toEqual(expected)
    expect(changed.outputs).toEqual({ y: 'bfloat16' })
  })
})

it('changes a dtype that a function takes as an attribute', async () => {
  const [narrow, wide] = (['bfloat16', 'float32'] as const).map((dtype) => {
    const nodes = [op('Twice', ['x'], ['y'], { kind: onnxFromDtype(dtype), other: 16 }, { domain: 'local' })]
    const proto = onnx.ModelProto.decode(buildModel({ ...MODELS['functions']!(dtype), nodes }))
    const [twice] = proto.functions
    twice!.attribute = ['kind', 'other']
    twice!.node![1]!.attribute = [{ name: 'to', refAttrName: 'kind', type: 2 }]
    return onnx.ModelProto.encode(proto).finish()
  })
  const { bytes } = upcastModel(narrow!, AS_IT_IS)
  expect(decoded(bytes)).toEqual(decoded(wide!))
  const feeds = new Map([['x', values('float32', [3])]])
  expect(await run(bytes, feeds)).toEqual(await run(wide!, feeds))
})

it('changes bodies that are given as a list', () => {
  const [narrow, wide] = (['bfloat16', 'float32'] as const).map((dtype) => {
    const body = MODELS['bodies of If with weights, constants and captured values']!
    const proto = onnx.ModelProto.decode(buildModel(body(dtype)))
    for (const attribute of proto.graph!.node![3]!.attribute!) {
      attribute.graphs = [attribute.g!, attribute.g!]
      delete attribute.g
    }
    return onnx.ModelProto.encode(proto).finish()
  })
  expect(decoded(upcastModel(narrow!, AS_IT_IS).bytes)).toEqual(decoded(wide!))
})

it('knows of bfloat16 that is only inside of a function', () => {
  const [narrow, wide] = (['bfloat16', 'float32'] as const).map((dtype) => {
    const { functions = [], ...rest } = MODELS['functions']!(dtype)
    const outside: ModelSpec = { ...rest, inputs: { x: ['float32', [3]] }, outputs: { y: ['float32', [3]] } }
    const index = indexModel(bytesSource(buildModel({ ...outside, functions })))
    return carriesBfloat16(index, new Map())
  })
  expect([narrow, wide]).toEqual([true, false])
})

it('says which inputs and outputs had another dtype', () => {
  const spec = MODELS['Casts and other operators that name or take a dtype']!('bfloat16')
  expect(upcastModel(buildModel(spec), AS_IT_IS).changed).toEqual({
    inputs: { x: 'bfloat16' },
    outputs: { y: 'bfloat16' },
  })
})

it('leaves an integer attribute that is 16 but no dtype', () => {
  const [narrow, wide] = (['bfloat16', 'float32'] as const).map((dtype) =>
    buildModel({
      nodes: [op('Concat', ['x', 'x'], ['y'], { axis: 16 })],
      inputs: { x: [dtype, [1]] },
      outputs: { y: [dtype] },
    }),
  )
  expect(decoded(upcastModel(narrow!, AS_IT_IS).bytes)).toEqual(decoded(wide!))
})

it('up-casts every bfloat16 to the float32 of the same value', () => {
  fc.assert(
    fc.property(fc.uint16Array({ maxLength: 64 }), (bits) => {
      const narrow = tensor('bfloat16', [bits.length], bits)
      const wide = upcastTensor(narrow)
      expect(wide.dtype).toBe('float32')
      expect(toFloat64(wide)).toEqual(toFloat64(narrow))
    }),
  )
  const other = floats([1], [1])
  expect(upcastTensor(other)).toBe(other)
})
