/**
 * The configuration on its way from the plugin to the tests: Vitest carries it into every worker.
 *
 * Where no plugin provides one, as for generated files that are run on their own, it is made of the
 * defaults and the environment.
 */
import { inject } from 'vitest'
import { type ResolvedConfig, resolveConfig } from '../suite/options.ts'
import { CONFIG_KEY, PROCESSES_KEY } from './config-key.ts'

/** The configuration that holds for the test that runs. */
export function currentConfig(): ResolvedConfig {
  return inject(CONFIG_KEY) ?? resolveConfig(undefined, process.cwd(), process.env)
}

/** How many processes of onnxruntime this worker may have. */
export function processesPerWorker(): number {
  return inject(PROCESSES_KEY) ?? 1
}
