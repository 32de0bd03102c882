/**
 * Two tensors of one dtype and shape -> blocks of doubles, a thousand elements at a time.
 *
 * This is the only place of the comparison that knows how dtypes lie in memory; what follows sees
 * doubles in arrays that are written again for every block, so nothing is allocated per element.
 *
 * What always holds: `distance` is 0 exactly where the two elements are equal (infinities too),
 * and it is exact for integers, also where a 64-bit value itself does not fit a double.
 */
import type { DType } from '../tensor/dtype.ts'
import { decodeFloats, type FloatFormat } from '../tensor/float-formats.ts'
import { type SubByteBits, unpackBits } from '../tensor/packed-integers.ts'
import type { Tensor } from '../tensor/tensor.ts'

/** A multiple of the elements in a byte of any dtype; five arrays of it fit the first-level cache. */
export const BLOCK_SIZE = 1024

export interface PairBlock {
  /** Values; for complex elements their magnitudes, for strings 1. */
  readonly expected: Float64Array
  /** As `expected`; for strings 1 where they are equal and 0 where not. */
  readonly actual: Float64Array
  /** |expected - actual|; NaN where one of them is NaN. */
  readonly distance: Float64Array
  /** expected * actual; for complex elements the real part of expected * conj(actual). */
  readonly product: Float64Array
  /** How many floats of the dtype lie between the two; 0 for dtypes that are no floats. */
  readonly ulps: Float64Array
}

export interface PairReader {
  /** Whether `ulps` means anything. */
  readonly hasUlps: boolean
  /** Elements [from, from + count) into the start of the block; `from` is a multiple of BLOCK_SIZE. */
  readonly fill: (block: PairBlock, from: number, count: number) => void
}

export function newBlock(count: number): PairBlock {
  const size = Math.min(count, BLOCK_SIZE)
  return {
    expected: new Float64Array(size),
    actual: new Float64Array(size),
    distance: new Float64Array(size),
    product: new Float64Array(size),
    ulps: new Float64Array(size),
  }
}

/** A reader for a pair that has one dtype and one shape; the caller has checked. */
export function pairReader(actual: Tensor, expected: Tensor): PairReader {
  const dtype = expected.dtype
  switch (dtype) {
    case 'string':
      return { hasUlps: false, fill: stringFill(actual.data as string[], expected.data) }
    case 'complex64':
    case 'complex128':
      return { hasUlps: false, fill: complexFill(actual.data as Float32Array, expected.data) }
    case 'int64':
    case 'uint64':
      return {
        hasUlps: false,
        fill: wideFill(actual.data as BigInt64Array, expected.data, dtype === 'int64'),
      }
    case 'float32':
      return { hasUlps: true, fill: float32Fill(actual.data as Float32Array, expected.data) }
    case 'float64':
      return { hasUlps: true, fill: float64Fill(actual.data as Float64Array, expected.data) }
    case 'uint4':
    case 'int4':
    case 'uint2':
    case 'int2':
      return { hasUlps: false, fill: packedFill(dtype, actual.data as Uint8Array, expected.data) }
    case 'bool':
    case 'uint8':
    case 'int8':
    case 'uint16':
    case 'int16':
    case 'uint32':
    case 'int32':
      return { hasUlps: false, fill: numberFill(actual.data as Int32Array, expected.data as Int32Array) }
    default:
      return { hasUlps: true, fill: patternFill(dtype, actual.data as Uint16Array, expected.data) }
  }
}

type Fill = PairReader['fill']

function numberFill(actual: Int32Array, expected: Int32Array): Fill {
  return (block, from, count) => {
    block.actual.set(actual.subarray(from, from + count))
    block.expected.set(expected.subarray(from, from + count))
    subtract(block, count)
  }
}

function float32Fill(actual: Float32Array, expected: Float32Array): Fill {
  const [a, e] = [int32View(actual), int32View(expected)]
  return (block, from, count) => {
    block.actual.set(actual.subarray(from, from + count))
    block.expected.set(expected.subarray(from, from + count))
    subtract(block, count)
    const { ulps } = block
    for (let i = 0; i < count; i++) {
      ulps[i] = Math.abs(orderOfWord(a[from + i]!) - orderOfWord(e[from + i]!))
    }
  }
}

function float64Fill(actual: Float64Array, expected: Float64Array): Fill {
  const [a, e] = [int32View(actual), int32View(expected)]
  return (block, from, count) => {
    block.actual.set(actual.subarray(from, from + count))
    block.expected.set(expected.subarray(from, from + count))
    subtract(block, count)
    for (let i = 0; i < count; i++) block.ulps[i] = wideUlps(a, e, 2 * (from + i))
  }
}

/** Positions of floats on the number line: -0 and 0 share one, and neighbours differ by one. */
function orderOfWord(word: number): number {
  return word < 0 ? -(word & 0x7fffffff) : word
}

/** Exact below 2^53 and rounded beyond, which keeps the order: words are subtracted before they are joined. */
function wideUlps(actual: Int32Array, expected: Int32Array, at: number): number {
  const [lowA, lowE] = [actual[at]! >>> 0, expected[at]! >>> 0]
  const [highA, highE] = [actual[at + 1]!, expected[at + 1]!]
  const [signA, signE] = [highA < 0 ? -1 : 1, highE < 0 ? -1 : 1]
  const high = signA * (highA & 0x7fffffff) - signE * (highE & 0x7fffffff)
  return Math.abs(high * 2 ** 32 + (signA * lowA - signE * lowE))
}

function patternFill(
  format: FloatFormat,
  actual: Uint16Array | Uint8Array,
  expected: Uint16Array | Uint8Array,
): Fill {
  const patterns = format === 'float4e2m1' ? nibbles : slice
  const signBit = SIGN_BITS[format] ?? 0x80
  return (block, from, count) => {
    const [a, e] = [patterns(actual, from, count), patterns(expected, from, count)]
    decodeFloats(format, a, block.actual)
    decodeFloats(format, e, block.expected)
    subtract(block, count)
    patternUlps(a, e, signBit, block.ulps)
  }
}

/** float8e8m0 has no sign: its patterns are in order as they are. */
const SIGN_BITS: Partial<Record<DType, number>> = {
  float16: 0x8000,
  bfloat16: 0x8000,
  float4e2m1: 0x8,
  float8e8m0: 0x100,
}

function patternUlps(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  signBit: number,
  ulps: Float64Array,
): void {
  const mask = signBit - 1
  for (let i = 0; i < actual.length; i++) {
    const a = actual[i]!
    const e = expected[i]!
    const orderA = a & signBit ? -(a & mask) : a
    const orderE = e & signBit ? -(e & mask) : e
    ulps[i] = Math.abs(orderA - orderE)
  }
}

function slice(data: Uint16Array | Uint8Array, from: number, count: number): Uint16Array | Uint8Array {
  return data.subarray(from, from + count)
}

function nibbles(data: Uint16Array | Uint8Array, from: number, count: number): Int8Array {
  return unpacked(data as Uint8Array, 4, false, from, count)
}

function packedFill(
  dtype: 'uint4' | 'int4' | 'uint2' | 'int2',
  actual: Uint8Array,
  expected: Uint8Array,
): Fill {
  const bits: SubByteBits = dtype.endsWith('4') ? 4 : 2
  const signed = dtype.startsWith('int')
  return (block, from, count) => {
    block.actual.set(unpacked(actual, bits, signed, from, count))
    block.expected.set(unpacked(expected, bits, signed, from, count))
    subtract(block, count)
  }
}

function unpacked(
  data: Uint8Array,
  bits: SubByteBits,
  signed: boolean,
  from: number,
  count: number,
): Int8Array {
  return unpackBits(data.subarray((from * bits) / 8), bits, signed, count)
}

/** 64-bit integers by their words: no BigInt per element, and differences that no rounding touches. */
function wideFill(
  actual: BigInt64Array | BigUint64Array,
  expected: BigInt64Array | BigUint64Array,
  signed: boolean,
): Fill {
  const [a, e] = [int32View(actual), int32View(expected)]
  return (block, from, count) => {
    for (let i = 0; i < count; i++) {
      const low = 2 * (from + i)
      const [lowA, lowE] = [a[low]! >>> 0, e[low]! >>> 0]
      const highA = signed ? a[low + 1]! : a[low + 1]! >>> 0
      const highE = signed ? e[low + 1]! : e[low + 1]! >>> 0
      block.actual[i] = highA * 2 ** 32 + lowA
      block.expected[i] = highE * 2 ** 32 + lowE
      block.distance[i] = Math.abs((highE - highA) * 2 ** 32 + (lowE - lowA))
      block.product[i] = block.actual[i]! * block.expected[i]!
    }
  }
}

function complexFill(actual: Float32Array | Float64Array, expected: Float32Array | Float64Array): Fill {
  return (block, from, count) => {
    for (let i = 0; i < count; i++) {
      const at = 2 * (from + i)
      const [reA, imA, reE, imE] = [actual[at]!, actual[at + 1]!, expected[at]!, expected[at + 1]!]
      block.actual[i] = magnitude(reA, imA)
      block.expected[i] = magnitude(reE, imE)
      block.distance[i] = magnitude(reE === reA ? 0 : reE - reA, imE === imA ? 0 : imE - imA)
      block.product[i] = reE * reA + imE * imA
    }
  }
}

/** Math.hypot has Infinity for a pair of Infinity and NaN; here a NaN part makes the element NaN. */
function magnitude(re: number, im: number): number {
  return re === re && im === im ? Math.hypot(re, im) : NaN
}

function stringFill(actual: readonly string[], expected: readonly string[]): Fill {
  return (block, from, count) => {
    for (let i = 0; i < count; i++) {
      const equal = actual[from + i] === expected[from + i] ? 1 : 0
      block.expected[i] = 1
      block.actual[i] = equal
      block.distance[i] = 1 - equal
      block.product[i] = equal
    }
  }
}

function subtract({ expected, actual, distance, product }: PairBlock, count: number): void {
  for (let i = 0; i < count; i++) {
    const e = expected[i]!
    const a = actual[i]!
    distance[i] = e === a ? 0 : Math.abs(e - a)
    product[i] = e * a
  }
}

function int32View(data: ArrayBufferView): Int32Array {
  return new Int32Array(data.buffer, data.byteOffset, data.byteLength / 4)
}
