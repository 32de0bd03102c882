import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { packBits, unpackBits } from '../../src/tensor/packed-integers.ts'

describe('packing below a byte', () => {
  test('the first element is in the low bits, and the rest of the last byte is zero', () => {
    expect([...packBits([1, 2, 15], 4)]).toEqual([0x21, 0x0f])
    expect([...packBits([1, 2, 3, 0, 2], 2)]).toEqual([0b00_11_10_01, 0b10])
  })

  test('negative numbers are kept in two’s complement', () => {
    expect([...packBits([-1, -8], 4)]).toEqual([0x8f])
    expect([...unpackBits(Uint8Array.of(0x8f), 4, true, 2)]).toEqual([-1, -8])
  })

  test.each([
    [4, true],
    [4, false],
    [2, true],
    [2, false],
  ] as const)('%i bits, signed %s: what is packed is unpacked', (bits, signed) => {
    const low = signed ? -(2 ** (bits - 1)) : 0
    const values = fc.array(fc.integer({ min: low, max: low + 2 ** bits - 1 }))
    fc.assert(
      fc.property(values, (list) => {
        expect([...unpackBits(packBits(list, bits), bits, signed, list.length)]).toEqual(list)
      }),
    )
  })
})
