/** Tensor <-> the tensors of onnxruntime-node, which names dtypes alike and shares the data. */
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import type { DType } from '../tensor/dtype.ts'
import { type Tensor, tensor } from '../tensor/tensor.ts'
import type { Ort } from './ort-runtime.ts'

/**
 * What onnxruntime-node can be fed and fetched. Others stay inside a model: bfloat16, float8 and
 * complex are refused, and fetching a 4-bit tensor ends the process (1.30).
 */
type CarriedDType = Exclude<
  DType,
  | 'bfloat16'
  | 'complex64'
  | 'complex128'
  | 'float8e4m3fn'
  | 'float8e4m3fnuz'
  | 'float8e5m2'
  | 'float8e5m2fnuz'
  | 'float8e8m0'
  | 'float4e2m1'
  | 'uint4'
  | 'int4'
  | 'uint2'
  | 'int2'
>

const CARRIED: Readonly<Record<CarriedDType, true>> = {
  float32: true,
  uint8: true,
  int8: true,
  uint16: true,
  int16: true,
  int32: true,
  int64: true,
  string: true,
  bool: true,
  float16: true,
  float64: true,
  uint32: true,
  uint64: true,
}

export function isCarriedByOrt(dtype: DType | undefined): dtype is CarriedDType {
  return dtype !== undefined && Object.hasOwn(CARRIED, dtype)
}

export function toOrtTensor(ort: Ort, { dtype, shape, data }: Tensor): OrtTensor {
  if (!isCarriedByOrt(dtype)) throw notCarried(dtype)
  return new ort.Tensor(dtype, aligned(data) as never, [...shape])
}

export function fromOrtTensor({
  type,
  dims,
  data,
}: InferenceSession.OnnxValueMapType[string] & OrtTensor): Tensor {
  if (!isCarriedByOrt(type as DType)) throw notCarried(type)
  return tensor(type as CarriedDType, dims, data as never)
}

/**
 * Kernels read the data where it lies, and some (InstanceNormalization, ReduceLogSum) sum in
 * another order when it is not aligned, as in a view of a received message.
 */
function aligned(data: Tensor['data']): Tensor['data'] {
  return ArrayBuffer.isView(data) && data.byteOffset % ALIGNMENT !== 0 ? data.slice() : data
}

const ALIGNMENT = 16

function notCarried(dtype: string): ModelTestError {
  return new ModelTestError('UNSUPPORTED_DTYPE', `onnxruntime-node cannot be fed ${dtype} tensors`, {
    hint: 'Cast at the edge of the model, for example to float32.',
  })
}
