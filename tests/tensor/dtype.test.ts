import { describe, expect, test } from 'vitest'
import { bitsPerElement, byteLength, dtypeFromOnnx, DTYPES, onnxFromDtype } from '../../src/tensor/dtype.ts'

describe('dtypes', () => {
  test.each([
    [1, 'float32'],
    [7, 'int64'],
    [8, 'string'],
    [9, 'bool'],
    [11, 'float64'],
    [16, 'bfloat16'],
    [20, 'float8e5m2fnuz'],
    [21, 'uint4'],
    [23, 'float4e2m1'],
    [24, 'float8e8m0'],
    [26, 'int2'],
  ] as const)('ONNX code %i is %s', (code, dtype) => {
    expect(dtypeFromOnnx(code)).toBe(dtype)
    expect(onnxFromDtype(dtype)).toBe(code)
  })

  test('there are 26 codes, and each names itself', () => {
    expect(DTYPES.map((dtype) => onnxFromDtype(dtype))).toEqual(Array.from({ length: 26 }, (_, i) => i + 1))
  })

  test.each([0, 27, -1, 1.5, NaN])('%s is no code', (code) => {
    expect(dtypeFromOnnx(code)).toBeUndefined()
  })

  test.each([
    ['float32', 3, 12],
    ['complex128', 2, 32],
    ['bool', 5, 5],
    ['int4', 3, 2],
    ['uint2', 5, 2],
    ['uint2', 4, 1],
    ['float4e2m1', 0, 0],
  ] as const)('%s × %i takes %i bytes', (dtype, count, bytes) => {
    expect(byteLength(dtype, count)).toBe(bytes)
  })

  test('strings have no size', () => {
    expect(() => bitsPerElement('string')).toThrow(expect.objectContaining({ code: 'UNSUPPORTED_DTYPE' }))
  })
})
