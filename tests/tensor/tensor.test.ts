import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import {
  bytesOfTensor,
  elementCount,
  fromFloat64,
  tensor,
  tensorFromBytes,
  toBigInt64,
  toFloat64,
} from '../../src/tensor/tensor.ts'
import { DTYPES } from '../../src/tensor/dtype.ts'
import { anyTensor } from './any-tensor.ts'

const malformed = expect.objectContaining({ code: 'MALFORMED_TENSOR' })
const unsupported = expect.objectContaining({ code: 'UNSUPPORTED_DTYPE' })

describe('shapes', () => {
  test.each([
    [[], 1],
    [[0], 0],
    [[2, 3, 4], 24],
    [[2 ** 40, 0, 2 ** 40], 0],
    [[2 ** 26, 2 ** 26], 2 ** 52],
  ])('%j has %i elements', (shape, count) => {
    expect(elementCount(shape)).toBe(count)
  })

  test.each([[[-1]], [[1.5]], [[NaN]], [[Infinity]], [[2 ** 53]], [[2 ** 30, 2 ** 30]], [[0, -1]]])(
    '%j is refused',
    (shape) => {
      expect(() => elementCount(shape)).toThrow(malformed)
    },
  )
})

describe('a tensor', () => {
  test('keeps the data it is given and copies the shape', () => {
    const shape = [2]
    const data = new Float32Array(2)
    const t = tensor('float32', shape, data)
    shape[0] = 9
    expect(t.data).toBe(data)
    expect(t.shape).toEqual([2])
  })

  test.each([
    ['too few values', () => tensor('float32', [3], new Float32Array(2))],
    ['too many values', () => tensor('float32', [], new Float32Array(2))],
    ['the wrong kind of array', () => tensor('float32', [2], new Float64Array(2) as never)],
    ['bits where numbers belong', () => tensor('float16', [1], new Float32Array(1) as never)],
    ['no array', () => tensor('string', [1], 'a' as never)],
    ['a bool of 2', () => tensor('bool', [2], Uint8Array.of(0, 2))],
    ['unpacked int4', () => tensor('int4', [4], new Uint8Array(4))],
    ['half a complex number', () => tensor('complex64', [2], new Float32Array(3))],
    ['too few bytes', () => tensorFromBytes('int64', [2], new Uint8Array(15))],
  ])('is refused with %s', (_, make) => {
    expect(make).toThrow(malformed)
  })

  test('a Buffer is as good as a Uint8Array', () => {
    expect(tensor('uint8', [2], Buffer.from([1, 2])).data[1]).toBe(2)
  })
})

describe('bytes', () => {
  test('aligned bytes are viewed, others copied', () => {
    const bytes = new Uint8Array(17)
    expect(tensorFromBytes('int64', [2], bytes.subarray(0, 16)).data.buffer).toBe(bytes.buffer)
    const copy = tensorFromBytes('int64', [2], bytes.subarray(1))
    expect(copy.data.buffer).not.toBe(bytes.buffer)
  })

  test('are little-endian', () => {
    const bytes = Uint8Array.of(0, 0, 0x80, 0x3f, 1, 0, 0, 0)
    expect([...tensorFromBytes('float32', [2], bytes).data]).toEqual([1, 2 ** -149])
    expect([...tensorFromBytes('int32', [2], bytes).data]).toEqual([0x3f800000, 1])
  })

  test('any bool byte but 0 reads as 1, and the bytes given stay as they are', () => {
    const bytes = Uint8Array.of(0, 1, 255)
    expect([...tensorFromBytes('bool', [3], bytes).data]).toEqual([0, 1, 1])
    expect([...bytes]).toEqual([0, 1, 255])
  })

  test('strings have none', () => {
    expect(() => bytesOfTensor(tensor('string', [1], ['a']))).toThrow(unsupported)
  })

  test('a tensor is made again from its bytes', () => {
    const fixedSize = DTYPES.filter((dtype) => dtype !== 'string')
    fc.assert(
      fc.property(anyTensor(fixedSize), (t) => {
        const again = tensorFromBytes(t.dtype as FixedSizeDType, t.shape, bytesOfTensor(t).slice())
        expect(bytesOfTensor(again)).toEqual(bytesOfTensor(t))
      }),
    )
  })
})

describe('widening to doubles', () => {
  test.each([
    ['bool', tensor('bool', [2], Uint8Array.of(1, 0)), [1, 0]],
    ['int64', tensor('int64', [2], BigInt64Array.of(-5n, 2n ** 62n)), [-5, 2 ** 62]],
    ['uint64', tensor('uint64', [1], BigUint64Array.of(2n ** 64n - 1n)), [2 ** 64]],
    ['float16', tensor('float16', [3], Uint16Array.of(0x3c00, 0x8001, 0xfc00)), [1, -(2 ** -24), -Infinity]],
    ['bfloat16', tensor('bfloat16', [2], Uint16Array.of(0x4049, 0xff80)), [3.140625, -Infinity]],
    ['float8e4m3fn', tensor('float8e4m3fn', [2], Uint8Array.of(0x7e, 0x81)), [448, -(2 ** -9)]],
    ['int4', tensor('int4', [3], Uint8Array.of(0x8f, 0x07)), [-1, -8, 7]],
    ['uint4', tensor('uint4', [3], Uint8Array.of(0x8f, 0x07)), [15, 8, 7]],
    ['int2', tensor('int2', [5], Uint8Array.of(0b00_01_10_11, 0b01)), [-1, -2, 1, 0, 1]],
    ['uint2', tensor('uint2', [4], Uint8Array.of(0b00_01_10_11)), [3, 2, 1, 0]],
    ['float4e2m1', tensor('float4e2m1', [3], Uint8Array.of(0xf1, 0x06)), [0.5, -6, 4]],
    ['complex64', tensor('complex64', [1], Float32Array.of(1, -2)), [1, -2]],
  ])('%s', (_, t, values) => {
    expect([...toFloat64(t)]).toEqual(values)
  })

  test('strings have no numbers', () => {
    expect(() => toFloat64(tensor('string', [1], ['1']))).toThrow(unsupported)
  })
})

describe('widening to 64-bit integers', () => {
  test.each([
    ['int8', tensor('int8', [2], Int8Array.of(-128, 127)), [-128n, 127n]],
    ['uint32', tensor('uint32', [1], Uint32Array.of(2 ** 32 - 1)), [2n ** 32n - 1n]],
    ['int64', tensor('int64', [1], BigInt64Array.of(-(2n ** 63n))), [-(2n ** 63n)]],
    ['bool', tensor('bool', [2], Uint8Array.of(0, 1)), [0n, 1n]],
    ['int4', tensor('int4', [1], Uint8Array.of(0x0f)), [-1n]],
  ])('%s', (_, t, values) => {
    expect([...toBigInt64(t)]).toEqual(values)
  })

  test('a uint64 that does not fit is an error, not a negative number', () => {
    expect(() => toBigInt64(tensor('uint64', [1], BigUint64Array.of(2n ** 63n)))).toThrow(malformed)
  })

  test('floats are refused', () => {
    expect(() => toBigInt64(tensor('float32', [1], Float32Array.of(1)))).toThrow(unsupported)
  })
})

describe('narrowing from doubles', () => {
  test.each([
    ['int8', [0.5, 1.5, -0.5, -2.5, 200, -200, NaN], [0, 2, 0, -2, 127, -128, 0]],
    ['uint8', [-1, 254.5, 255.5, Infinity, -Infinity], [0, 254, 255, 255, 0]],
    ['int4', [-9, 8, 2.5, -1], [-8, 7, 2, -1]],
    ['uint4', [16, -1, 3], [15, 0, 3]],
    ['int2', [5, -5, 1], [1, -2, 1]],
    ['uint32', [2 ** 33, 4294967294.5], [4294967295, 4294967294]],
    ['int64', [2 ** 53, -0.5, 1e30, -1e30, NaN], [2 ** 53, 0, 2 ** 63, -(2 ** 63), 0]],
    ['uint64', [1e30, -3, 2 ** 63], [2 ** 64, 0, 2 ** 63]],
    ['bool', [0, -0, 0.1, NaN, -3], [0, 0, 1, 1, 1]],
    ['float32', [1e39, 0.1, -0], [Infinity, Math.fround(0.1), -0]],
    ['float16', [65504, 65520, 1e-8], [65504, Infinity, 0]],
    ['float8e4m3fn', [1000, -Infinity], [448, -448]],
    ['float4e2m1', [5, -0.25, 7], [4, -0, 6]],
    ['complex128', [1, 2], [1, 2]],
  ] as const)('%s', (dtype, values, expected) => {
    const count = dtype === 'complex128' ? 1 : values.length
    expect([...toFloat64(fromFloat64(dtype, [count], Float64Array.from(values)))]).toEqual(expected)
  })

  test('the number of values must fit the shape', () => {
    expect(() => fromFloat64('float32', [2], new Float64Array(3))).toThrow(malformed)
  })

  test('every numeric tensor but the 64-bit integers comes back, infinities of float8e5m2 saturated', () => {
    const exact = DTYPES.filter((dtype) => !['string', 'int64', 'uint64'].includes(dtype))
    fc.assert(
      fc.property(anyTensor(exact), (t) => {
        const values = toFloat64(t)
        const again = fromFloat64(t.dtype as FixedSizeDType, t.shape, values)
        const expected = t.dtype === 'float8e5m2' ? values.map(withoutInfinity) : values
        expect(toFloat64(again)).toEqual(expected)
      }),
    )
  })
})

function withoutInfinity(value: number): number {
  return Number.isNaN(value) ? NaN : Math.max(-57344, Math.min(57344, value))
}
