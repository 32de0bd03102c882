import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeFloat,
  decodeFloats,
  encodeFloat,
  encodeFloats,
  type FloatFormat,
} from '../../src/tensor/float-formats.ts'
import { DEFINITIONS, nearestPattern, valueOf } from './float-oracle.ts'
import { bytesOf, readVectors } from './read-vectors.ts'

const signed = Object.entries(DEFINITIONS).map(([name, definition]) => {
  const bits = 1 + definition.exponentBits + definition.mantissaBits
  return { name: name as keyof typeof DEFINITIONS, definition, bits, signBit: 2 ** (bits - 1) }
})

describe.each(signed)('$name', ({ name, definition, bits, signBit }) => {
  const patterns = Array.from({ length: 2 ** bits }, (_, pattern) => pattern)
  const values = patterns.map((pattern) => valueOf(definition, pattern))

  test('every pattern decodes to the value of its definition', () => {
    const wrong = patterns.filter((pattern) => !Object.is(decodeFloat(name, pattern), values[pattern]))
    expect(wrong).toEqual([])
  })

  test('every number of the format encodes to its own pattern', () => {
    const wrong = patterns.filter(
      (pattern) =>
        !Number.isNaN(values[pattern]) &&
        encodeFloat(name, values[pattern]!, { saturate: false }) !== pattern,
    )
    expect(wrong).toEqual([])
  })

  test('halfway between neighbours goes to the even pattern, a hair off goes to the nearer', () => {
    for (let below = 0; below + 1 < signBit; below++) {
      const [low, high] = [values[below]!, values[below + 1]!]
      if (!Number.isFinite(low) || !Number.isFinite(high)) continue
      const half = (low + high) / 2
      const even = below % 2 === 0 ? below : below + 1
      expect(encodeFloat(name, half)).toBe(even)
      expect(encodeFloat(name, half * (1 - 2 ** -52))).toBe(below)
      expect(encodeFloat(name, half * (1 + 2 ** -52))).toBe(below + 1)
    }
  })

  test('any double encodes to the nearest pattern', () => {
    const near = fc
      .tuple(fc.double({ min: -1, max: 1, noNaN: true }), fc.integer({ min: -40, max: 40 }))
      .map(([fraction, exponent]) => fraction * 2 ** exponent)
    fc.assert(
      fc.property(fc.oneof(near, fc.double({ noNaN: true }), fc.float({ noNaN: true })), (value) => {
        const nearest = nearestPattern(definition, Math.abs(value))
        if (nearest === 'overflow') return
        const negative = value < 0 || Object.is(value, -0)
        const expected = definition.fnuz && nearest === 0 ? 0 : nearest + (negative ? signBit : 0)
        expect(encodeFloat(name, value)).toBe(expected)
      }),
      { numRuns: 3000 },
    )
  })

  test('NaN of any payload becomes the one NaN, if there is one', () => {
    const payload = new Float64Array(new BigUint64Array([0xfff0_dead_0000_0001n]).buffer)[0]!
    const decoded = decodeFloat(name, encodeFloat(name, payload))
    expect(decoded).toBe(name === 'float4e2m1' ? 6 : NaN)
  })

  test('many at once are the same as one by one', () => {
    const finite = Float64Array.from(values.filter((value) => !Number.isNaN(value)))
    const encoded = encodeFloats(name, finite)
    expect([...encoded]).toEqual(Array.from(finite, (value) => encodeFloat(name, value)))
    const decoded = decodeFloats(name, encoded, new Float32Array(finite.length))
    expect([...decoded]).toEqual(Array.from(encoded, (pattern) => decodeFloat(name, pattern)))
  })
})

describe('overflow', () => {
  const saturating: [FloatFormat, number, number][] = [
    ['float16', 65519.99, 65504],
    ['float16', 65520, Infinity],
    ['bfloat16', 3.4e38, Infinity],
    ['float8e4m3fn', 464, 448],
    ['float8e4m3fn', 1e9, 448],
    ['float8e4m3fn', -Infinity, -448],
    ['float8e4m3fnuz', 1e9, 240],
    ['float8e4m3fnuz', -Infinity, -240],
    ['float8e5m2', 61440, 57344],
    ['float8e5m2', Infinity, 57344],
    ['float8e5m2fnuz', -1e9, -57344],
    ['float4e2m1', 1e9, 6],
    ['float4e2m1', -Infinity, -6],
    ['float8e8m0', 1e300, 2 ** 127],
    ['float8e8m0', Infinity, NaN],
  ]
  test.each(saturating)('%s of %d saturates at %d', (format, value, expected) => {
    expect(decodeFloat(format, encodeFloat(format, value))).toBe(expected)
  })

  const plain: [FloatFormat, number, number][] = [
    ['float16', -65520, -Infinity],
    ['float8e4m3fn', 464, 448],
    ['float8e4m3fn', 464.1, NaN],
    ['float8e4m3fn', Infinity, NaN],
    ['float8e4m3fnuz', 248, NaN],
    ['float8e4m3fnuz', -Infinity, NaN],
    ['float8e5m2', 61439, 57344],
    ['float8e5m2', -61440, -Infinity],
    ['float8e5m2fnuz', 61440, NaN],
    ['float4e2m1', 1e9, 6],
    ['float8e8m0', 1e300, NaN],
  ]
  test.each(plain)('%s of %d without saturation is %d', (format, value, expected) => {
    expect(decodeFloat(format, encodeFloat(format, value, { saturate: false }))).toBe(expected)
  })

  test('float8e4m3fn keeps the sign of what it cannot hold', () => {
    expect(encodeFloat('float8e4m3fn', -1e9, { saturate: false })).toBe(0xff)
  })
})

describe('float16 as numpy has it', () => {
  test('about a thousand doubles round to the same patterns', () => {
    const vectors = readVectors<{ float64: string; float16: string }>('float16')
    const values = new Float64Array(bytesOf(vectors.float64).buffer)
    expect(encodeFloats('float16', values)).toEqual(new Uint16Array(bytesOf(vectors.float16).buffer))
  })

  test('rounding twice, by way of float32, would differ', () => {
    const value = 1 + 2 ** -11 + 2 ** -40
    expect(encodeFloat('float16', value)).toBe(0x3c01)
    expect(encodeFloat('float16', Math.fround(value))).toBe(0x3c00)
  })
})

describe('bfloat16', () => {
  test('is the upper half of a float32, rounded to even', () => {
    fc.assert(
      fc.property(fc.float({ noNaN: true }), (value) => {
        const bits = new Uint32Array(Float32Array.of(value).buffer)[0]!
        expect(encodeFloat('bfloat16', value)).toBe(((bits + 0x7fff + ((bits >>> 16) & 1)) / 65536) | 0)
      }),
      { numRuns: 3000 },
    )
  })
})

describe('float8e8m0', () => {
  test('every pattern is a power of two, the last is NaN', () => {
    for (let pattern = 0; pattern < 255; pattern++) {
      expect(decodeFloat('float8e8m0', pattern)).toBe(2 ** (pattern - 127))
      expect(encodeFloat('float8e8m0', 2 ** (pattern - 127))).toBe(pattern)
    }
    expect(decodeFloat('float8e8m0', 255)).toBe(NaN)
    expect(encodeFloat('float8e8m0', NaN)).toBe(255)
  })

  test.each([
    ['up', 1.01, 2],
    ['up', 3.99, 4],
    ['down', 1.99, 1],
    ['nearest', 1.49, 1],
    ['nearest', 1.5, 2],
    ['nearest', 3, 4],
  ] as const)('rounding %s: %d becomes %d', (powerRounding, value, expected) => {
    expect(decodeFloat('float8e8m0', encodeFloat('float8e8m0', value, { powerRounding }))).toBe(expected)
  })

  test('zero and what is smaller than the smallest power become it; signs are dropped', () => {
    expect([0, -0, 1e-300, -4].map((value) => encodeFloat('float8e8m0', value))).toEqual([0, 0, 0, 129])
  })
})
