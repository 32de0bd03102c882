// A target of your own: float32 inputs are rounded to float16, then onnxruntime runs the model.
import { defineTarget, fromFloat64, tensor, toFloat64 } from 'vitest-onnx'

export default defineTarget({
  name: 'half-inputs',
  version: () => '1', // part of the cache key: raise it when results change
  compile: ({ bytes, folder, outputs }) => ({ bytes, folder, outputs }),
  async load({ bytes, folder, outputs }) {
    process.env.ORT_DISABLE_TELEMETRY ??= '1'
    const { default: ort } = await import('onnxruntime-node')
    const extra = { session: { model_external_initializers_file_folder_path: folder } }
    const session = await ort.InferenceSession.create(bytes, { extra, logSeverityLevel: 4 })
    return {
      async run(inputs) {
        const feeds = {}
        for (const [name, value] of inputs) {
          const { dtype, shape, data } = value.dtype === 'float32' ? roundToHalf(value) : value
          feeds[name] = new ort.Tensor(dtype, data, shape)
        }
        const results = await session.run(feeds, outputs)
        return new Map(outputs.map((name) => [name, fromOrt(results[name])]))
      },
      dispose: () => session.release(),
    }
  },
})

function roundToHalf({ shape, ...rest }) {
  const half = fromFloat64('float16', shape, toFloat64({ shape, ...rest }))
  return fromFloat64('float32', shape, toFloat64(half))
}

function fromOrt({ type, dims, data }) {
  return tensor(type, dims, data)
}
