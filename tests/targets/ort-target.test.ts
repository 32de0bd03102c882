import { expect, test } from 'vitest'
import { cpuTarget, type OrtArtefact, providerTarget } from '../../src/targets/ort-target.ts'
import type { Chip, Target, TargetModel } from '../../src/targets/target.ts'

const MODEL: TargetModel = {
  bytes: new Uint8Array(),
  folder: '/models',
  outputs: ['y'],
  name: 'case',
  ranges: async () => ({}),
}

function sessionOf(target: Target, chip: Chip): OrtArtefact['settings'] {
  const context = { timeoutMs: 1, signal: new AbortController().signal }
  return (target.compile(MODEL, chip, context) as OrtArtefact).settings
}

const WEIGHTS = { model_external_initializers_file_folder_path: '/models' }

test('a provider is not allowed to leave nodes to the CPU, unless the chip says so', () => {
  const webgpu = providerTarget('webgpu')
  const [strict, lenient] = webgpu.chips!.map((chip) => sessionOf(webgpu, chip).session)
  expect(strict).toEqual({ extra: { session: { ...WEIGHTS, disable_cpu_ep_fallback: '1' } } })
  expect(lenient).toEqual({ extra: { session: WEIGHTS } })
  expect(sessionOf(cpuTarget, { name: 'default' }).session).toEqual({ extra: { session: WEIGHTS } })
})

test('a chip sets the session, and what it leaves out stays', () => {
  const chip = {
    name: 'slow',
    optimisation: 'basic',
    threads: 2,
    session: { enableMemPattern: false, extra: { session: { use_env_allocators: '1' } } },
  }
  expect(sessionOf(cpuTarget, chip)).toEqual({
    providers: ['cpu'],
    optimisation: 'basic',
    threads: 2,
    session: { enableMemPattern: false, extra: { session: { ...WEIGHTS, use_env_allocators: '1' } } },
  })
})

test.for([
  [{ optimisation: 'most' }, 'optimisation must be one of disabled, basic, extended, all'],
  [{ threads: 0 }, 'threads must be more than 0'],
  [{ threads: 1.5 }, 'threads must be a whole number'],
  [{ session: 'fast' }, 'session must be an object of session options'],
  [{ cpuFallback: 'yes' }, 'cpuFallback must be true or false'],
  [{ storage: 'float16' }, 'storage'],
] as [object, string][])('the chip %j is refused by its field', ([settings, message]) => {
  expect(() => sessionOf(cpuTarget, { name: 'odd', ...settings })).toThrow(message)
})

test('a provider that is not there says so, once and for all', async () => {
  const target = providerTarget('nonsense')
  const why = await target.unavailable!()
  expect(why).toBe('onnxruntime-node cannot use the provider "nonsense" on this machine: backend not found.')
  expect(await target.unavailable!()).toBe(why)
})
