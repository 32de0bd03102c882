/** Targets by name: the built-in ones, any provider of onnxruntime-node, and modules of the user. */
import { pathToFileURL } from 'node:url'
import { ModelTestError } from '../errors.ts'
import { cpuTarget, providerTarget } from './ort-target.ts'
import { simTarget } from './sim-target.ts'
import type { Target } from './target.ts'
import { wasmTarget } from './wasm-target.ts'

const BUILT_IN: ReadonlyMap<string, Target> = new Map(
  [simTarget, cpuTarget, wasmTarget].map((target) => [target.name, target]),
)

/** What onnxruntime-node knows, on some platform at least. */
const PROVIDERS = new Set([
  'webgpu',
  'cuda',
  'tensorrt',
  'coreml',
  'dml',
  'openvino',
  'qnn',
  'xnnpack',
  'webnn',
])

/** The target of a name, or of a module that default-exports one. */
export async function findTarget(name: string, module: string | undefined): Promise<Target> {
  if (module !== undefined) return importTarget(module)
  checkTargetName(name)
  return BUILT_IN.get(name) ?? providerTarget(name)
}

/** Throws where there is no target of that name; `setting` is who names it. */
export function checkTargetName(name: string, setting?: string): void {
  if (BUILT_IN.has(name) || PROVIDERS.has(name)) return
  const where = setting === undefined ? '' : `${setting}: `
  throw new ModelTestError('INVALID_OPTION', `${where}there is no target "${name}"`, {
    hint: `Use one of ${[...BUILT_IN.keys(), ...PROVIDERS].join(', ')}, or the path of a module that default-exports a target.`,
  })
}

async function importTarget(path: string): Promise<Target> {
  const { default: target } = await importModule(path)
  if (typeof target?.compile === 'function' && typeof target.load === 'function') return target
  throw new ModelTestError('INVALID_OPTION', 'the module does not default-export a target', {
    file: path,
    hint: "Write: export default defineTarget({ name: '…', version, compile, load })",
  })
}

async function importModule(path: string): Promise<{ default?: Target }> {
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(path).href)) as { default?: Target }
  } catch (cause) {
    throw new ModelTestError(
      'INVALID_OPTION',
      `the module of a target cannot be loaded (${(cause as Error).message})`,
      {
        file: path,
        hint: 'Paths of targets go from the folder of the Vitest config; the module is JavaScript, unless Node itself runs TypeScript.',
        cause,
      },
    )
  }
}
