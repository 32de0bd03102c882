import { describe, expect, test } from 'vitest'
import { compileForSim, type SimRanges } from '../../../src/targets/sim/compile.ts'
import type { SimChip } from '../../../src/targets/sim/chip.ts'
import type { DType } from '../../../src/tensor/dtype.ts'
import { defaultRng, tweakedRandom } from '../../../src/tensor/random.ts'
import { fromFloat64, tensor, type Tensor, toFloat64 } from '../../../src/tensor/tensor.ts'
import type { FixedSizeDType } from '../../../src/tensor/tensor-data.ts'
import { buildModel, floats, type ModelSpec, op } from '../../../testdata/onnx-builder.ts'
import { run } from './simulate.ts'

const FLOAT16: SimChip = { name: 'half', storage: 'float16' }
const BFLOAT16: SimChip = { name: 'brain', storage: 'bfloat16' }
const INT8: SimChip = { name: 'byte', storage: 'int8' }

/** Ties, the edges of the formats, subnormals, infinities, and what is in between. */
const EDGES = [
  0,
  1,
  -1,
  1 / 3,
  2049,
  2051,
  65504,
  65519.99,
  65520,
  -1e6,
  1.00390625,
  1.01171875,
  3e-8,
  2.9e-8,
  6e-5,
  1e-40,
  9e-41,
  3.3895e38,
  3.4e38,
  Infinity,
  -Infinity,
  NaN,
]
const RANDOM = toFloat64(tweakedRandom(defaultRng(7), 'float32', [500]))
const X = floats([EDGES.length + 500], [...EDGES, ...RANDOM])
const SHAPE = [...X.shape]

const rounded = (dtype: FixedSizeDType, values: Float64Array): Float64Array =>
  toFloat64(fromFloat64(dtype, [values.length], values))

/** -0 and 0 are one number to a test of values. */
const unsigned = (values: Iterable<number>): number[] => Array.from(values, (value) => value + 0)

describe('the sum of two stored values is stored in turn', () => {
  const weight = floats(SHAPE, [...(X.data as Float32Array)].toReversed())
  const spec = (opset: number): ModelSpec => ({
    opset,
    ir: opset < 13 ? 3 : 8,
    inputs: { x: ['float32', SHAPE], ...(opset < 13 ? { w: ['float32', SHAPE] as const } : {}) },
    initializers: { w: weight },
    nodes: [op('Add', ['x', 'w'], ['y']), op('Mul', ['y', 'y'], ['z'])],
    outputs: { y: ['float32', SHAPE], z: ['float32', SHAPE] },
  })

  test.each(
    [7, 9, 11, 12, 13, 17, 21].flatMap((opset) => [[FLOAT16, opset] as const, [BFLOAT16, opset] as const]),
  )('as the nearest number: $storage, opset %i', async ({ storage, ...rest }, opset) => {
    const dtype = storage as 'float16' | 'bfloat16'
    const { bytes } = compileForSim(buildModel(spec(opset)), { storage, ...rest })
    const results = await run(bytes, new Map([['x', X]]))
    const [a, b] = [rounded(dtype, toFloat64(X)), rounded(dtype, toFloat64(weight))]
    const y = rounded(
      dtype,
      a.map((value, at) => Math.fround(value + b[at]!)),
    )
    const z = rounded(
      dtype,
      y.map((value) => Math.fround(value * value)),
    )
    expect(unsigned(toFloat64(results.get('y')!))).toEqual(unsigned(y))
    expect(unsigned(toFloat64(results.get('z')!))).toEqual(unsigned(z))
  })
})

const negation = (opset: number, shape: readonly number[] = [5]): Uint8Array =>
  buildModel({
    opset,
    ir: 8,
    inputs: { x: ['float32', shape] },
    nodes: [op('Neg', ['x'], ['y'])],
    outputs: { y: ['float32', shape] },
  })

const giveInt8 = async (bytes: Uint8Array, x: Tensor, ranges: SimRanges = {}): Promise<number[]> =>
  unsigned(toFloat64((await run(compileForSim(bytes, INT8, ranges).bytes, new Map([['x', x]]))).get('y')!))

describe('int8', () => {
  test.each([7, 12, 13, 17, 21])('takes its scale from the range that was seen: opset %i', async (opset) => {
    const x = floats([5], [1.26, -2.5, 0.49, 127, 500])
    const ranges = { x: { min: -100, max: 127 }, y: { min: -127, max: 100 } }
    expect(await giveInt8(negation(opset), x, ranges)).toEqual([-1, 2, 0, -127, -127])
  })

  test.each([7, 12, 13, 17, 21])('takes its scale from the tensor without one: opset %i', async (opset) => {
    const x = floats([5], [1.26, -2.5, 0.49, -254, 3])
    expect(await giveInt8(negation(opset), x)).toEqual([-2, 2, 0, 254, -4])
  })

  test('keeps zeros, and infinities out of the scale', async () => {
    expect(await giveInt8(negation(17), floats([5], [0, 0, 0, 0, 0]))).toEqual([0, 0, 0, 0, 0])
    const [infinite, ...rest] = await giveInt8(negation(17), floats([5], [-Infinity, 1, 2, 3, 4]))
    expect(infinite).toBeGreaterThan(3e38)
    expect(rest).toEqual([0, 0, 0, 0])
  })

  test.each([[[0]], [[2, 0]], [[]]])('runs on the shape %j', async (shape) => {
    const x = floats(shape, shape.length === 0 ? [3] : [])
    const y = await giveInt8(negation(17, shape), x)
    expect(y).toHaveLength(x.data.length)
    if (y.length > 0) expect(y[0]).toBeCloseTo(-3, 5)
  })

  test('stays within half a step of each value', async () => {
    const x = tweakedRandom(defaultRng(3), 'float32', [5])
    const y = await giveInt8(negation(17), x)
    const step = Math.max(...toFloat64(x).map(Math.abs)) / 127
    for (const [at, value] of toFloat64(x).entries())
      expect(Math.abs(value + y[at]!)).toBeLessThan(0.51 * step)
  })
})

const difference = (dtype: DType, opset = 17): Uint8Array =>
  buildModel({
    opset,
    inputs: { x: [dtype, [1]], one: [dtype, [1]] },
    nodes: [op('Add', ['x', 'one'], ['t']), op('Sub', ['t', 'x'], ['y'])],
    outputs: { y: [dtype, [1]] },
  })

const giveFloat = async (dtype: FixedSizeDType, chip: SimChip, x: number, one = 1): Promise<number> => {
  const feeds = new Map<string, Tensor>([
    ['x', fromFloat64(dtype, [1], Float64Array.of(x))],
    ['one', fromFloat64(dtype, [1], Float64Array.of(one))],
  ])
  const results = await run(compileForSim(difference(dtype), chip).bytes, feeds)
  return toFloat64(results.get('y')!)[0]!
}

describe('models of other floats', () => {
  test('float16 on a float16 chip loses what float16 cannot hold, which onnxruntime alone keeps', async () => {
    const feeds = new Map<string, Tensor>([
      ['x', tensor('float16', [1], Uint16Array.of(0x6800))],
      ['one', tensor('float16', [1], Uint16Array.of(0x3c00))],
    ])
    expect(toFloat64((await run(difference('float16'), feeds)).get('y')!)).toEqual(Float64Array.of(1))
    expect(await giveFloat('float16', FLOAT16, 2048)).toBe(0)
  })

  test('float16 on a bfloat16 chip', async () => {
    expect(await giveFloat('float16', BFLOAT16, 256)).toBe(0)
  })

  test.each([
    ['float32', 2 ** 24, 0],
    ['float16', 2 ** 11, 0],
    ['bfloat16', 2 ** 8, 0],
    ['float16', 2 ** 10, 1],
  ] as const)('float64 on a %s chip: %f + 1 - itself is %i', async (storage, x, y) => {
    expect(await giveFloat('float64', { name: 'chip', storage }, x)).toBe(y)
  })

  test.each(['float16', 'float32', 'float64'] as const)('%s on an int8 chip', async (dtype) => {
    expect(await giveFloat(dtype, INT8, 2)).toBeCloseTo(1, 1)
  })

  test.each(['float16', 'float32'] as const)('%s is not touched by a float32 chip', (dtype) => {
    const chip: SimChip = { name: 'float32', storage: 'float32' }
    expect(compileForSim(difference(dtype), chip).report.roundedValues).toBe(0)
  })
})

test('float64 sums are rounded once: what cancels in float32 does not', async () => {
  const bytes = buildModel({
    inputs: { x: ['float32', [1, 3]] },
    initializers: { w: floats([3, 1], [1, 1, 1]) },
    nodes: [op('MatMul', ['x', 'w'], ['y'])],
    outputs: { y: ['float32', [1, 1]] },
  })
  const feeds = new Map([['x', floats([1, 3], [2 ** 24, 1, -(2 ** 24)])]])
  const give = async (accumulate: 'float32' | 'float64'): Promise<number> => {
    const { bytes: compiled } = compileForSim(bytes, { name: 'chip', storage: 'float32', accumulate })
    return toFloat64((await run(compiled, feeds)).get('y')!)[0]!
  }
  expect(await give('float32')).toBe(0)
  expect(await give('float64')).toBe(1)
})
