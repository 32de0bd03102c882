/** Under which name Vitest carries the configuration; apart, since the plugin must not load `vitest` itself. */
import type { ResolvedConfig } from '../suite/options.ts'

export const CONFIG_KEY = 'vitest-onnx:config'

declare module 'vitest' {
  interface ProvidedContext {
    /** @internal */
    'vitest-onnx:config'?: ResolvedConfig
  }
}
