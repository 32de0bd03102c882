/**
 * A tensor: dtype, shape and data, and the ways in and out of it (bytes, numbers, integers).
 *
 * What always holds: the shape is a list of non-negative safe integers, the data is the array that
 * tensor-data.ts names for the dtype, of exactly the length that the shape asks for, and bools are
 * 0 or 1. Whoever makes a tensor gets MALFORMED_TENSOR otherwise; whoever has one need not check.
 */
import { ModelTestError } from '../errors.ts'
import { bitsPerElement, byteLength, type DType } from './dtype.ts'
import { decodeFloats, encodeFloats, type FloatFormat } from './float-formats.ts'
import { packBits, type SubByteBits, unpackBits } from './packed-integers.ts'
import {
  arrayName,
  bytesOfData,
  dataFromBytes,
  dataLength,
  type FixedSizeDType,
  newData,
  type TensorData,
} from './tensor-data.ts'

/** A tensor; `Tensor` alone is a union, so that checking `dtype` narrows `data`. */
export type Tensor<D extends DType = DType> = {
  [K in D]: { readonly dtype: K; readonly shape: readonly number[]; readonly data: TensorData<K> }
}[D]

/** A tensor over the given data, which is not copied. */
export function tensor<D extends DType>(dtype: D, shape: readonly number[], data: TensorData<D>): Tensor<D> {
  const wanted = dataLength(dtype, elementCount(shape))
  if (arrayKind(data) !== arrayName(dtype)) {
    throw malformed(`${dtype} data is a ${arrayKind(data)} where ${arrayName(dtype)} belongs`)
  }
  if (data.length !== wanted) {
    throw malformed(`${describe(dtype, shape)} takes ${wanted} array entries, but there are ${data.length}`)
  }
  if (dtype === 'bool' && !isZeroOne(data as Uint8Array)) throw malformed('bool data holds more than 0 and 1')
  return { dtype, shape: [...shape], data } as Tensor<D>
}

/** The number of elements of a shape; 1 for a scalar. Throws for what is no shape. */
export function elementCount(shape: readonly number[]): number {
  for (const dim of shape) {
    if (!Number.isSafeInteger(dim) || dim < 0) throw malformed(`${dim} is no size of a dimension`, shape)
  }
  if (shape.includes(0)) return 0
  const count = shape.reduce((product, dim) => product * dim, 1)
  if (!Number.isSafeInteger(count)) throw malformed('a tensor has more than 2^53 elements', shape)
  return count
}

/**
 * A tensor over little-endian bytes, packed as ONNX raw_data is. The bytes are viewed, and copied
 * only when they are not aligned for the dtype, or when bools hold something other than 0 and 1.
 */
export function tensorFromBytes<D extends FixedSizeDType>(
  dtype: D,
  shape: readonly number[],
  bytes: Uint8Array,
): Tensor<D> {
  const wanted = byteLength(dtype, elementCount(shape))
  if (bytes.length !== wanted) {
    throw malformed(`${describe(dtype, shape)} takes ${wanted} bytes, but there are ${bytes.length}`)
  }
  const tidy = dtype === 'bool' && !isZeroOne(bytes) ? bytes.map((byte) => (byte === 0 ? 0 : 1)) : bytes
  return tensor(dtype, shape, dataFromBytes(dtype, tidy))
}

/** The little-endian bytes of a tensor: a view of its data. Strings have none: UNSUPPORTED_DTYPE. */
export function bytesOfTensor(t: Tensor): Uint8Array {
  if (t.dtype === 'string') throw unsupported('string', 'has no fixed-size bytes')
  return bytesOfData(t.data)
}

/**
 * The elements as doubles. Exact but for int64 and uint64 beyond 2^53, which round. Complex
 * tensors give real and imaginary parts in turn. Strings: UNSUPPORTED_DTYPE.
 */
export function toFloat64(t: Tensor): Float64Array {
  switch (t.dtype) {
    case 'string':
      throw unsupported('string', 'has no numbers')
    case 'int64':
    case 'uint64':
      return numbersOfBigInts(t.data)
    case 'float16':
    case 'bfloat16':
    case 'float8e4m3fn':
    case 'float8e4m3fnuz':
    case 'float8e5m2':
    case 'float8e5m2fnuz':
    case 'float8e8m0':
      return decodeFloats(t.dtype, t.data, new Float64Array(t.data.length))
    case 'float4e2m1': {
      const patterns = unpackBits(t.data, 4, false, elementCount(t.shape))
      return decodeFloats(t.dtype, patterns, new Float64Array(patterns.length))
    }
    case 'uint4':
    case 'int4':
    case 'uint2':
    case 'int2':
      return Float64Array.from(unpackElements(t))
    default:
      return new Float64Array(t.data)
  }
}

/** The elements of an integer or bool tensor. A uint64 beyond 2^63 - 1 does not fit: MALFORMED_TENSOR. */
export function toBigInt64(t: Tensor): BigInt64Array {
  switch (t.dtype) {
    case 'int64':
      return t.data.slice()
    case 'uint64':
      return signedOfUnsigned(t.data)
    case 'uint4':
    case 'int4':
    case 'uint2':
    case 'int2':
      return BigInt64Array.from(unpackElements(t), BigInt)
    case 'bool':
    case 'uint8':
    case 'int8':
    case 'uint16':
    case 'int16':
    case 'uint32':
    case 'int32':
      return bigIntsOfNumbers(t.data)
    default:
      throw unsupported(t.dtype, 'holds no integers')
  }
}

/**
 * A tensor with the nearest values that the dtype has.
 *
 * - Floats round to nearest, ties to even. float32, float16 and bfloat16 overflow to infinity;
 *   the smaller ones saturate (float-formats.ts). Complex tensors take parts in turn.
 * - Integers round to nearest, ties to even, and saturate at their bounds; NaN becomes 0.
 * - bool: everything but 0 is 1, NaN included.
 */
export function fromFloat64<D extends FixedSizeDType>(
  dtype: D,
  shape: readonly number[],
  values: Float64Array,
): Tensor<D> {
  const wanted = elementCount(shape) * (dtype.startsWith('complex') ? 2 : 1)
  if (values.length !== wanted) {
    throw malformed(`${describe(dtype, shape)} takes ${wanted} values, but there are ${values.length}`)
  }
  return tensor(dtype, shape, dataOfNumbers(dtype, values) as TensorData<D>)
}

function dataOfNumbers(dtype: FixedSizeDType, values: Float64Array): TensorData {
  switch (dtype) {
    case 'float64':
    case 'complex128':
      return values.slice()
    case 'float32':
    case 'complex64':
      return new Float32Array(values)
    case 'float16':
    case 'bfloat16':
    case 'float8e4m3fn':
    case 'float8e4m3fnuz':
    case 'float8e5m2':
    case 'float8e5m2fnuz':
    case 'float8e8m0':
      return encodeFloats(dtype satisfies FloatFormat, values)
    case 'float4e2m1':
      return packBits(encodeFloats(dtype, values), 4)
    case 'bool':
      return Uint8Array.from(values, (value) => (value === 0 ? 0 : 1))
    case 'int64':
      return BigInt64Array.from(values, (value) => saturateBigInt(value, -(2n ** 63n), 2n ** 63n - 1n))
    case 'uint64':
      return BigUint64Array.from(values, (value) => saturateBigInt(value, 0n, 2n ** 64n - 1n))
    default:
      return integersOfNumbers(dtype, values)
  }
}

type NumberIntegerDType = 'uint8' | 'int8' | 'uint16' | 'int16' | 'uint32' | 'int32' | SubByteInteger

function integersOfNumbers(dtype: NumberIntegerDType, values: Float64Array): TensorData {
  const bits = bitsPerElement(dtype)
  const low = isSigned(dtype) ? -(2 ** (bits - 1)) : 0
  const high = low + 2 ** bits - 1
  // NaN passes through here and becomes 0 where it is stored.
  const integers = values.map((value) => Math.min(Math.max(roundHalfEven(value), low), high))
  if (bits < 8) return packBits(integers, bits as SubByteBits)
  const data = newData(dtype, values.length)
  data.set(integers)
  return data
}

type SubByteInteger = 'uint4' | 'int4' | 'uint2' | 'int2'

function unpackElements(t: Tensor<SubByteInteger>): Int8Array {
  const bits = bitsPerElement(t.dtype) as SubByteBits
  return unpackBits(t.data, bits, isSigned(t.dtype), elementCount(t.shape))
}

function isSigned(dtype: NumberIntegerDType): boolean {
  return dtype.startsWith('int')
}

/** Ties go to the even neighbour; from 2^52 on every double is an integer already. */
function roundHalfEven(value: number): number {
  if (Math.abs(value) >= 2 ** 52) return value
  return value < 0 ? value - 2 ** 52 + 2 ** 52 : value + 2 ** 52 - 2 ** 52
}

function saturateBigInt(value: number, low: bigint, high: bigint): bigint {
  if (value !== value) return 0n
  if (value <= Number(low)) return low
  return value >= Number(high) ? high : BigInt(roundHalfEven(value))
}

function numbersOfBigInts(values: BigInt64Array | BigUint64Array): Float64Array {
  const numbers = new Float64Array(values.length)
  for (let i = 0; i < values.length; i++) numbers[i] = Number(values[i])
  return numbers
}

function bigIntsOfNumbers(values: ArrayLike<number>): BigInt64Array {
  const integers = new BigInt64Array(values.length)
  for (let i = 0; i < values.length; i++) integers[i] = BigInt(values[i]!)
  return integers
}

function signedOfUnsigned(values: BigUint64Array): BigInt64Array {
  const signed = new BigInt64Array(values)
  const at = signed.findIndex((value) => value < 0n)
  if (at === -1) return signed
  throw malformed(`element ${at} is ${values[at]}, beyond the signed 64-bit range`)
}

function isZeroOne(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (bytes[i]! > 1) return false
  return true
}

/** By tag, not by constructor: arrays of another realm are as good. */
function arrayKind(data: TensorData): string {
  return Array.isArray(data) ? 'Array' : Object.prototype.toString.call(data).slice(8, -1)
}

function describe(dtype: DType, shape: readonly number[]): string {
  return `a ${dtype} tensor of shape [${shape.join(', ')}]`
}

function malformed(message: string, shape?: readonly number[]): ModelTestError {
  const place = shape === undefined ? '' : ` (shape [${shape.join(', ')}])`
  return new ModelTestError('MALFORMED_TENSOR', `${message}${place}`, {
    hint: 'Compare the shape, the dtype and the length of the data with what made the tensor.',
  })
}

function unsupported(dtype: DType, why: string): ModelTestError {
  return new ModelTestError('UNSUPPORTED_DTYPE', `a ${dtype} tensor ${why}`, {
    hint: 'Check the dtype before converting the data.',
  })
}

/** Same dtype, same shape, same bits. */
export function equalTensors(a: Tensor, b: Tensor): boolean {
  if (a.dtype !== b.dtype || a.shape.length !== b.shape.length) return false
  if (!a.shape.every((dim, axis) => dim === b.shape[axis])) return false
  if (a.dtype === 'string' || b.dtype === 'string') return JSON.stringify(a.data) === JSON.stringify(b.data)
  return Buffer.compare(bytesOfTensor(a), bytesOfTensor(b)) === 0
}
