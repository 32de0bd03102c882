/**
 * onnxruntime-node and onnxruntime-web, loaded on first use.
 *
 * The telemetry of the first is switched off before the library loads. When the package is not there, the
 * error says how to get it without its install script, which downloads CUDA files.
 */
import { ModelTestError } from '../errors.ts'

export type Ort = typeof import('onnxruntime-node')

export async function loadOrt(): Promise<Ort> {
  process.env['ORT_DISABLE_TELEMETRY'] ??= '1'
  try {
    const module = (await import('onnxruntime-node')) as Ort & { default?: Ort }
    return withPlainFloat16(module.default ?? module)
  } catch (cause) {
    throw new ModelTestError(
      'RUNTIME_MISSING',
      `onnxruntime-node cannot be loaded (${(cause as Error).message})`,
      {
        hint: 'Install it without its install script: npm install --save-dev --ignore-scripts onnxruntime-node',
        cause,
      },
    )
  }
}

export async function loadOrtWeb(): Promise<Ort> {
  try {
    const web = (await import('onnxruntime-web' as string)) as Ort
    // More threads need cross-origin isolation in browsers, and change results from run to run.
    web.env.wasm.numThreads = 1
    return web
  } catch (cause) {
    throw new ModelTestError(
      'RUNTIME_MISSING',
      `onnxruntime-web cannot be loaded (${(cause as Error).message})`,
      { hint: 'npm install --save-dev onnxruntime-web brings it', cause },
    )
  }
}

/**
 * Where the global `Float16Array` exists (Node 24), onnxruntime takes only that for float16 and then
 * reads nothing of it (1.30). It looks for the global once, when the first tensor is made.
 */
function withPlainFloat16(ort: Ort): Ort {
  const float16 = Object.getOwnPropertyDescriptor(globalThis, 'Float16Array')
  if (float16 === undefined) return ort
  Reflect.deleteProperty(globalThis, 'Float16Array')
  try {
    void new ort.Tensor('float16', new Uint16Array(1), [1])
  } finally {
    Object.defineProperty(globalThis, 'Float16Array', float16)
  }
  return ort
}
