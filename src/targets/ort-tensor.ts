/** Tensor <-> the tensors of onnxruntime-node, which names dtypes alike and shares the data. */
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node'
import { ModelTestError } from '../errors.ts'
import type { DType } from '../tensor/dtype.ts'
import { type Tensor, tensor } from '../tensor/tensor.ts'
import type { Ort } from './ort-runtime.ts'

/** What onnxruntime-node can be fed and fetched. Others (bfloat16, float8, complex) stay inside a model. */
const CARRIED = [
  'float32',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'int32',
  'int64',
  'string',
  'bool',
  'float16',
  'float64',
  'uint32',
  'uint64',
  'uint4',
  'int4',
] as const satisfies readonly DType[]

type CarriedDType = (typeof CARRIED)[number]

const carried: ReadonlySet<string> = new Set(CARRIED)

export function isCarriedByOrt(dtype: DType | undefined): dtype is CarriedDType {
  return dtype !== undefined && carried.has(dtype)
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
