import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  captureSignature,
  parseSignature,
  renderSignature,
  signatureDifferences,
  signatureOf,
} from '../../src/compare/signature.ts'
import { DTYPES } from '../../src/tensor/dtype.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { anyTensor } from '../tensor/any-tensor.ts'

describe('the signature', () => {
  test.each<[string, number[], number[], number[], number[]]>([
    ['rank 3: max - min of the last axis, from zero', [1, 2, 3], [1, 5, 2, 0, 1, 9], [2], [0, 5]],
    ['rank 4, axes of one gone', [1, 2, 1, 2], [0, 3, 0, 1], [2], [2, 0]],
    ['rank 2: the output itself, from zero', [2, 2], [4, 5, 6, 3], [2, 2], [1, 2, 3, 0]],
    ['rank 0', [], [4], [], [0]],
    ['no elements', [0, 4], [], [0, 4], []],
  ])('%s', (_, shape, values, signatureShape, expected) => {
    const signature = signatureOf(float32(shape, values))
    expect(signature.signatureShape).toEqual(signatureShape)
    expect([...signature.values]).toEqual(expected)
  })

  test('of several outputs joins their last axes', () => {
    const signature = signatureOf(float32([1, 2, 1], [1, 2]), float32([1, 2, 2], [3, 4, 9, 9]))
    expect(signature).toMatchObject({ shape: [1, 2, 3], signatureShape: [2] })
    expect([...signature.values]).toEqual([0, 4])
    expect(() => signatureOf(float32([2, 1], [1, 2]), float32([1, 2], [1, 2]))).toThrow(
      /\[2, 1\] and \[1, 2\] cannot be joined/,
    )
  })
})

describe('the line', () => {
  const output = float32([1, 3, 2], [1, 2.5, 3, 9.25, 0, 0.125])

  test('is short and readable', () => {
    expect(renderSignature(captureSignature(output))).toMatchInlineSnapshot(
      `"float32[1, 3, 2] signature[3] mean=2.5 rms=3.62428154 max=6.125 at=0:1.375,1:6.125,2:0"`,
    )
  })

  test('read again matches what it was made from, for every dtype with numbers', () => {
    fc.assert(
      fc.property(anyTensor(DTYPES.filter((dtype) => dtype !== 'string')), (t) => {
        const digest = captureSignature(t)
        const again = parseSignature(renderSignature(digest))
        expect(signatureDifferences(digest, again)).toEqual([])
        expect(renderSignature(again)).toBe(renderSignature(digest))
      }),
      { numRuns: 300 },
    )
  })

  test.each(['', 'float32[1]', 'float99[1] signature[1] mean=1 rms=1 max=1 at=0:1'])(
    '"%s" is refused',
    (line) => {
      expect(() => parseSignature(line)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    },
  )
})

describe('a match', () => {
  const values = [1, 2.5, 3, 9.25, 0, 0.125]
  const captured = captureSignature(float32([2, 3], values))
  const withFirst = (
    change: (value: number) => number,
    dtype: 'float32' | 'float64' = 'float32',
  ): string[] => {
    const changed = values.map((value, i) => (i === 3 ? change(value) : value))
    const t: Tensor =
      dtype === 'float32' ? float32([2, 3], changed) : tensor('float64', [2, 3], Float64Array.from(changed))
    return signatureDifferences(captureSignature(t), captured)
  }

  test('is within rtol 1.3e-6 and atol 1e-5 for float32', () => {
    expect(withFirst((value) => value + 1e-5)).toEqual([])
    expect(withFirst((value) => value + 1e-3)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^the maximum is 9.251.*, expected is 9.25$/)]),
    )
  })

  test('needs the same form and the same values that are not finite', () => {
    expect(withFirst((value) => value, 'float64')).toEqual([
      'the output is float64[2, 3] with signature[2, 3], expected is float32[2, 3] with signature[2, 3]',
    ])
    expect(withFirst(() => NaN)).toEqual(
      expect.arrayContaining([expect.stringMatching(/not finite is 1, expected is 0/)]),
    )
  })

  test('of NaN with NaN is one', () => {
    const digest = captureSignature(float32([2], [NaN, 1]))
    expect(signatureDifferences(digest, parseSignature(renderSignature(digest)))).toEqual([])
  })

  test('of an infinity with a number is none', () => {
    const infinite = captureSignature(float32([2], [Infinity, 1]))
    const finite = { ...infinite, samples: captureSignature(float32([2], [5, 1])).samples }
    expect(signatureDifferences(finite, infinite)).toEqual(['value 0 is 4, expected is Infinity'])
    expect(signatureDifferences(infinite, finite)).toEqual(['value 0 is Infinity, expected is 4'])
  })

  test('is looser for float16', () => {
    const digest = { ...captured, dtype: 'float16' as const }
    expect(signatureDifferences({ ...digest, max: digest.max * 1.0005 }, digest)).toEqual([])
    expect(signatureDifferences({ ...captured, max: captured.max * 1.0005 }, captured)).toHaveLength(1)
  })
})

function float32(shape: readonly number[], values: readonly number[]): Tensor {
  return tensor('float32', shape, Float32Array.from(values))
}
