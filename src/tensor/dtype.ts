/**
 * Element types: ONNX's TensorProto.DataType codes as names, and how many bits each takes.
 *
 * The order of the names is the order of the codes, 1 to 26; 0 is "undefined" and has no name.
 */
import { ModelTestError } from '../errors.ts'

const BITS = {
  float32: 32,
  uint8: 8,
  int8: 8,
  uint16: 16,
  int16: 16,
  int32: 32,
  int64: 64,
  string: 0,
  bool: 8,
  float16: 16,
  float64: 64,
  uint32: 32,
  uint64: 64,
  complex64: 64,
  complex128: 128,
  bfloat16: 16,
  float8e4m3fn: 8,
  float8e4m3fnuz: 8,
  float8e5m2: 8,
  float8e5m2fnuz: 8,
  uint4: 4,
  int4: 4,
  float4e2m1: 4,
  float8e8m0: 8,
  uint2: 2,
  int2: 2,
} as const

export type DType = keyof typeof BITS

/** Every dtype, in the order of the ONNX codes: `DTYPES[i]` has the code `i + 1`. */
export const DTYPES: readonly DType[] = Object.keys(BITS) as DType[]

const CODES = new Map(DTYPES.map((dtype, index) => [dtype, index + 1]))

/** The name for a TensorProto.DataType code; undefined for 0 and for codes newer than this list. */
export function dtypeFromOnnx(code: number): DType | undefined {
  return DTYPES[code - 1]
}

export function onnxFromDtype(dtype: DType): number {
  return CODES.get(dtype)!
}

/** Bits one element takes in raw data. Strings have no fixed size: UNSUPPORTED_DTYPE. */
export function bitsPerElement(dtype: DType): number {
  if (dtype !== 'string') return BITS[dtype]
  throw new ModelTestError('UNSUPPORTED_DTYPE', 'a string tensor has no fixed element size', {
    hint: 'Handle dtype "string" before asking for a size in bytes.',
  })
}

/** Bytes that `count` packed elements take; the last byte of a sub-byte dtype may be partly used. */
export function byteLength(dtype: DType, count: number): number {
  const bits = bitsPerElement(dtype)
  return bits < 8 ? Math.ceil(count / (8 / bits)) : count * (bits / 8)
}
