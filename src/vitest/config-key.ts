/** Under which names Vitest carries things to the tests; apart, since the plugin must not load `vitest` itself. */
import type { ResolvedConfig } from '../suite/options.ts'

export const CONFIG_KEY = 'vitest-onnx:config'
/** How many processes of onnxruntime a worker may have. */
export const PROCESSES_KEY = 'vitest-onnx:processes'

declare module 'vitest' {
  interface ProvidedContext {
    /** @internal */
    'vitest-onnx:config'?: ResolvedConfig
    /** @internal */
    'vitest-onnx:processes'?: number
  }
}
