/** bfloat16 data as float32, which holds each of its values. */
import { onnxFromDtype } from '../../tensor/dtype.ts'
import { type Tensor, tensor } from '../../tensor/tensor.ts'

/** TensorProto.DataType, before and after. */
export const NARROW: number = onnxFromDtype('bfloat16')
export const WIDE: number = onnxFromDtype('float32')

/** Other tensors stay as they are. NaNs keep their bits. */
export function upcastTensor(narrow: Tensor): Tensor {
  if (narrow.dtype !== 'bfloat16') return narrow
  const { shape, data } = narrow
  // A bfloat16 is the upper half of a float32; going by bits, and not by numbers, is fast too.
  const wide = new Uint32Array(data.length)
  for (let at = 0; at < data.length; at++) wide[at] = data[at]! << 16
  return tensor('float32', shape, new Float32Array(wide.buffer))
}
