/**
 * onnxruntime-node, loaded on first use.
 *
 * Its telemetry is switched off before the library loads. When the package is not there, the
 * error says how to get it without its install script, which downloads CUDA files.
 */
import { ModelTestError } from '../errors.ts'

export type Ort = typeof import('onnxruntime-node')

export async function loadOrt(): Promise<Ort> {
  process.env['ORT_DISABLE_TELEMETRY'] ??= '1'
  try {
    const module = (await import('onnxruntime-node')) as Ort & { default?: Ort }
    return module.default ?? module
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
