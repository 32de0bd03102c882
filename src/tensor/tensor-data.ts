/**
 * How each dtype lies in memory: the JavaScript array that holds it, and its bytes.
 *
 * | dtype | array | one entry is |
 * | --- | --- | --- |
 * | integers and floats JavaScript has | the typed array of that name | a value |
 * | bool | Uint8Array | 0 or 1 |
 * | float16, bfloat16 | Uint16Array | a bit pattern |
 * | float8 of any kind | Uint8Array | a bit pattern |
 * | 4-bit and 2-bit types | Uint8Array | two or four elements, the first in the low bits |
 * | complex64, complex128 | Float32Array, Float64Array | real and imaginary parts in turn |
 * | string | string[] | a value |
 *
 * Bytes are little-endian, as in every file format here and on every machine that runs ONNX models.
 */
import { byteLength, type DType } from './dtype.ts'

interface DataByDType {
  float32: Float32Array
  uint8: Uint8Array
  int8: Int8Array
  uint16: Uint16Array
  int16: Int16Array
  int32: Int32Array
  int64: BigInt64Array
  string: string[]
  bool: Uint8Array
  float16: Uint16Array
  float64: Float64Array
  uint32: Uint32Array
  uint64: BigUint64Array
  complex64: Float32Array
  complex128: Float64Array
  bfloat16: Uint16Array
  float8e4m3fn: Uint8Array
  float8e4m3fnuz: Uint8Array
  float8e5m2: Uint8Array
  float8e5m2fnuz: Uint8Array
  uint4: Uint8Array
  int4: Uint8Array
  float4e2m1: Uint8Array
  float8e8m0: Uint8Array
  uint2: Uint8Array
  int2: Uint8Array
}

export type TensorData<D extends DType = DType> = DataByDType[D]

/** Every dtype but string: those that have bytes. */
export type FixedSizeDType = Exclude<DType, 'string'>

interface TypedArrayConstructor<T> {
  readonly name: string
  readonly BYTES_PER_ELEMENT: number
  new (length: number): T
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T
}

const ARRAYS: { readonly [D in FixedSizeDType]: TypedArrayConstructor<TensorData<D>> } = {
  float32: Float32Array,
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
  float16: Uint16Array,
  float64: Float64Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  complex64: Float32Array,
  complex128: Float64Array,
  bfloat16: Uint16Array,
  float8e4m3fn: Uint8Array,
  float8e4m3fnuz: Uint8Array,
  float8e5m2: Uint8Array,
  float8e5m2fnuz: Uint8Array,
  uint4: Uint8Array,
  int4: Uint8Array,
  float4e2m1: Uint8Array,
  float8e8m0: Uint8Array,
  uint2: Uint8Array,
  int2: Uint8Array,
}

/** The name of the array type that holds a dtype, for checks and messages. */
export function arrayName(dtype: DType): string {
  return dtype === 'string' ? 'Array' : ARRAYS[dtype].name
}

/** How many array entries `count` elements take. */
export function dataLength(dtype: DType, count: number): number {
  return dtype === 'string' ? count : byteLength(dtype, count) / ARRAYS[dtype].BYTES_PER_ELEMENT
}

/** Zeros for `count` elements. */
export function newData<D extends FixedSizeDType>(dtype: D, count: number): TensorData<D> {
  return new ARRAYS[dtype](dataLength(dtype, count)) as TensorData<D>
}

/** The bytes as the dtype's array: a view, or a copy where the bytes are not aligned for one. */
export function dataFromBytes<D extends FixedSizeDType>(dtype: D, bytes: Uint8Array): TensorData<D> {
  const array: TypedArrayConstructor<TensorData> = ARRAYS[dtype]
  const aligned = bytes.byteOffset % array.BYTES_PER_ELEMENT === 0 ? bytes : Uint8Array.from(bytes)
  const length = aligned.byteLength / array.BYTES_PER_ELEMENT
  return new array(aligned.buffer, aligned.byteOffset, length) as TensorData<D>
}

/** The bytes of an array: always a view. */
export function bytesOfData(data: ArrayBufferView): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}
