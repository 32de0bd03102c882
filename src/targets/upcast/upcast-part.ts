/**
 * A model cut from a file, up-cast: its weights become float32 data inside where they fit.
 *
 * That way they stay weights, which compilers treat unlike what a Cast computes: the simulator
 * rounds them once, and onnxruntime folds and packs them. Beyond the limit they stay outside.
 */
import { bytesSource } from '../../bytes/byte-source.ts'
import type { OpenExternal } from '../../graph/weights.ts'
import { indexModel } from '../../onnx/model-index.ts'
import { AS_IT_IS } from '../sim/rewrite-model.ts'
import { upcastModel } from './upcast-model.ts'
import { NARROW } from './upcast-tensor.ts'

/** bfloat16 data, which doubles. A message may have 2 GB, and other things are in it too. */
const MAX_DECODED_BYTES = 256 * 1024 * 1024

export function upcastPart(
  bytes: Uint8Array,
  external: OpenExternal,
  maxDecodedBytes: number = MAX_DECODED_BYTES,
): Uint8Array {
  const { initializers } = indexModel(bytesSource(bytes)).graph
  const narrow = initializers.filter(({ info }) => info.dataType === NARROW)
  const total = narrow.reduce((sum, { info }) => sum + info.dataBytes, 0)
  return upcastModel(bytes, total <= maxDecodedBytes ? { kind: 'inline', external } : AS_IT_IS).bytes
}
