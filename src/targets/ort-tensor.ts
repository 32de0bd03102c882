/** Tensor <-> the tensors of onnxruntime-node, which names dtypes alike and shares the data. */
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import type { DType } from '../tensor/dtype.ts'
import { type Tensor, tensor } from '../tensor/tensor.ts'
import type { Ort } from './ort-runtime.ts'

/** What onnxruntime-node can be fed and fetched. Others (bfloat16, float8, complex) stay inside a model. */
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
  uint4: true,
  int4: true,
}

export function isCarriedByOrt(dtype: DType | undefined): dtype is CarriedDType {
  return dtype !== undefined && Object.hasOwn(CARRIED, dtype)
}

export function toOrtTensor(ort: Ort, { dtype, shape, data }: Tensor): OrtTensor {
  if (!isCarriedByOrt(dtype)) throw notCarried(dtype)
  return new ort.Tensor(dtype, data as never, [...shape])
}

export function fromOrtTensor({
  type,
  dims,
  data,
}: InferenceSession.OnnxValueMapType[string] & OrtTensor): Tensor {
  if (!isCarriedByOrt(type as DType)) throw notCarried(type)
  return tensor(type as CarriedDType, dims, data as never)
}

function notCarried(dtype: string): ModelTestError {
  return new ModelTestError('UNSUPPORTED_DTYPE', `onnxruntime-node cannot be fed ${dtype} tensors`, {
    hint: 'Cast at the edge of the model, for example to float32.',
  })
}
