/** vitest-onnx as a library: models, layers, tensors. */
export { ModelTestError, type ErrorCode, type ErrorDetails } from './errors.ts'

export { type ModelFile, openModel } from './files/model-file.ts'
export { type ModelSummary, summarizeModel, type ValueSummary } from './onnx/summary.ts'
export type { Dim, TensorType, ValueType } from './onnx/value-type.ts'

export {
  type Layer,
  layerModel,
  type LayerOptions,
  layersOf,
  type TypedModel,
  typeModel,
} from './suite/layers.ts'
export type { Part } from './graph/part.ts'
export type { WeightPolicy } from './graph/weights.ts'

export { type DType, DTYPES } from './tensor/dtype.ts'
export {
  bytesOfTensor,
  fromFloat64,
  type Tensor,
  tensor,
  tensorFromBytes,
  toFloat64,
} from './tensor/tensor.ts'
export { type NamedTensor, tensorFromProtoBytes, tensorProtoBytes } from './tensor/tensor-proto.ts'
export { defaultRng, type Random, tweakedRandom } from './tensor/random.ts'

export { onnx } from './vitest/plugin.ts'
export type { OnnxOptions } from './suite/options.ts'
export {
  type Artefact,
  type Chip,
  defineTarget,
  type Runner,
  type Target,
  type TargetContext,
  type TargetModel,
  type Tensors,
  type ValueRanges,
} from './targets/target.ts'
export { inlineWeights } from './targets/inline-weights.ts'
