/**
 * Targets that are onnxruntime-node with other settings: the optimised CPU, and any provider.
 *
 * They run in the processes of `ort-pool.ts`, and can leave their results in a file there, so
 * that large tensors are not sent back and forth. A provider runs all nodes of a model or the
 * model is an error: what onnxruntime moves to its CPU provider would be tested against itself.
 */
import { createRequire } from 'node:module'
import { z } from 'zod'
import { ModelTestError } from '../errors.ts'
import type { StoredTensor } from '../files/tensor-file.ts'
import type { OrtJob, OrtModel, OrtRuntime, OrtSettings } from './ort-jobs.ts'
import { type OrtPool, type OrtReply, sharedOrtPool } from './ort-pool.ts'
import type { Chip, Runner, Target, TargetContext, TargetModel, Tensors } from './target.ts'

type StoredTensors = ReadonlyMap<string, StoredTensor>

/** A runner that can write its results itself. */
export interface FileRunner extends Runner {
  /** Of outputs that equal `expected` bit for bit the file holds the names; when all do, there is no file. */
  runToFile(inputs: StoredTensors, path: string, expected?: StoredTensors): Promise<void>
}

export function isFileRunner(runner: Runner): runner is FileRunner {
  return 'runToFile' in runner
}

export interface OrtArtefact {
  /** @default 'node' */
  readonly runtime?: OrtRuntime
  readonly model: OrtModel
  readonly settings: OrtSettings
  /** Names of the outputs, in order. */
  readonly outputs: readonly string[]
}

/** The CPU provider with all optimisations: finds bugs of fusions. */
export const cpuTarget: Target = ortTarget('cpu', { providers: ['cpu'], optimisation: 'all' })

/** Any execution provider that onnxruntime-node has: `webgpu`, `cuda`, `coreml`, `dml`, … */
export function providerTarget(provider: string): Target {
  const target = ortTarget(provider, { providers: [provider], optimisation: 'all' }, () =>
    unusableProvider(provider),
  )
  return {
    ...target,
    version: () => `${PROVIDER_REVISION} on ${ortVersion()}`,
    chips: [{ name: 'default' }, { name: 'cpu-fallback', cpuFallback: true }],
  }
}

/** Raise when providers are used with other settings. */
const PROVIDER_REVISION = 2

export function ortTarget(
  name: string,
  settings: OrtSettings,
  unavailable: () => Promise<string | undefined> = async () => undefined,
): Target {
  return {
    name,
    version: ortVersion,
    chips: [{ name: 'default' }],
    unavailable,
    compile: (model, chip) => ({
      model: { bytes: model.bytes },
      settings: sessionSettings(settings, parseChip(name, chip), model),
      outputs: model.outputs,
    }),
    load: (artefact, context) => loadOrtArtefact(artefact as OrtArtefact, context),
  }
}

export function loadOrtArtefact(
  { runtime, model, settings, outputs }: OrtArtefact,
  { timeoutMs }: TargetContext,
): FileRunner {
  const job = { model, settings, fetches: outputs } as const
  const ask = (asked: OrtJob): Promise<OrtReply> =>
    poolFor(settings, runtime)
      .ask(asked, timeoutMs)
      .catch((error: unknown) => {
        throw explainFallback(error, settings)
      })
  return {
    async runToFile(inputs, path, known = new Map()): Promise<void> {
      const [feeds, expected] = [Object.fromEntries(inputs), Object.fromEntries(known)]
      await ask({ ...job, kind: 'store', feeds, expected, path })
    },
    async run(inputs: Tensors): Promise<Tensors> {
      const answer = await ask({ ...job, kind: 'run', feeds: Object.fromEntries(inputs) })
      // By name: an object puts names that are numbers first.
      return new Map(outputs.map((name) => [name, (answer as Ran).outputs[name]!]))
    },
  }
}

type Ran = Extract<OrtReply, { kind: 'ran' }>

/** Part of every cache key, and the same as long as the process lives. */
export function ortVersion(): string {
  return (installed ??= readOrtVersion())
}

let installed: string | undefined

function readOrtVersion(): string {
  const require = createRequire(import.meta.url)
  try {
    return (require('onnxruntime-node/package.json') as { version: string }).version
  } catch (cause) {
    throw new ModelTestError('RUNTIME_MISSING', 'onnxruntime-node is not installed', {
      hint: 'Install it without its install script: npm install --save-dev --ignore-scripts onnxruntime-node',
      cause,
    })
  }
}

const OPTIMISATIONS = ['disabled', 'basic', 'extended', 'all'] as const

/** What a chip file may say. */
const ortChip = z.strictObject({
  name: z.string(),
  optimisation: z.enum(OPTIMISATIONS, `must be one of ${OPTIMISATIONS.join(', ')}`).optional(),
  threads: z.int('must be a whole number').positive('must be more than 0').optional(),
  cpuFallback: z.boolean('must be true or false').optional(),
  session: z.record(z.string(), z.unknown(), 'must be an object of session options').optional(),
})

type OrtChip = z.infer<typeof ortChip>

function parseChip(target: string, chip: Chip): OrtChip {
  const { data, error } = ortChip.safeParse(chip)
  if (data !== undefined) return data
  const problems = error.issues.map(({ path, message }) => [...path.map(String), message].join(' '))
  throw new ModelTestError(
    'INVALID_OPTION',
    `chip "${chip.name}" does not fit the target ${target}: ${problems.join('; ')}`,
    { hint: 'A chip of onnxruntime is like { "optimisation": "basic", "threads": 2, "session": {} }.' },
  )
}

/**
 * The folder of external data goes in here and not with the model: it shares the field `extra`
 * with what the chip sets and with the fallback.
 */
function sessionSettings(
  { session: own = {}, ...settings }: OrtSettings,
  { optimisation = settings.optimisation, threads, cpuFallback, session = {} }: OrtChip,
  { folder }: TargetModel,
): OrtSettings {
  const extra = (session['extra'] ?? {}) as { readonly session?: object }
  const entries = {
    model_external_initializers_file_folder_path: folder,
    ...(isCpu(settings) || cpuFallback === true ? {} : { disable_cpu_ep_fallback: '1' }),
    ...extra.session,
  }
  return {
    ...settings,
    optimisation,
    ...(threads === undefined ? {} : { threads }),
    session: { ...own, ...session, extra: { ...extra, session: entries } },
  }
}

function isCpu({ providers }: OrtSettings): boolean {
  return providers.length === 1 && providers[0] === 'cpu'
}

function poolFor(settings: OrtSettings, runtime?: OrtRuntime): OrtPool {
  const isOnCpu = isCpu(settings) || runtime === 'web'
  return sharedOrtPool(isOnCpu ? 'cpu' : JSON.stringify(settings.providers), runtime)
}

function explainFallback(error: unknown, { providers }: OrtSettings): unknown {
  if (!(error instanceof ModelTestError) || !error.message.includes('fallback to CPU EP')) return error
  return new ModelTestError(
    'COMPILE_FAILED',
    `the provider ${providers.map(String).join(', ')} lacks an operator, type or shape of the model; onnxruntime would run that part on its CPU provider`,
    {
      hint: 'Use the chip "cpu-fallback" (ONNX_TEST_CHIPS) to allow it; then not all of the model is tested on the provider.',
      cause: error,
    },
  )
}

/** Asked once per process: that a provider is compiled in does not say that its device is there. */
function unusableProvider(provider: string): Promise<string | undefined> {
  const known = probed.get(provider) ?? probe(provider)
  probed.set(provider, known)
  return known
}

const probed = new Map<string, Promise<string | undefined>>()

async function probe(provider: string): Promise<string | undefined> {
  const settings = { providers: [provider], optimisation: 'disabled' } as const
  try {
    await poolFor(settings).ask({ kind: 'describe', model: { bytes: RELU }, settings }, PROBE_TIMEOUT_MS)
    return undefined
  } catch (error) {
    if (!(error instanceof ModelTestError)) throw error
    if (error.code === 'RUNTIME_MISSING') return error.message
    return `onnxruntime-node cannot use the provider "${provider}" on this machine: ${shortReason(error.message)}`
  }
}

/** A first session compiles shaders or loads drivers, which takes seconds on slow machines. */
const PROBE_TIMEOUT_MS = 60_000

/** y = Relu(x) of one float32, opset 13. */
const RELU: Uint8Array = Buffer.from(
  'CAc6OwoQCgF4EgF5GgAiBFJlbHU6ABIFZ3JhcGhaDwoBeBIKCggIARIECgIIAWIPCgF5EgoKCAgBEgQKAggBQgQKABAN',
  'base64',
)

/** Without the source position and the condition that onnxruntime puts in front. */
function shortReason(message: string): string {
  const [line = ''] = message.replace(/^onnxruntime cannot load the model: /, '').split('\n')
  return line.replace(/^.* was false\. /, '').replace(/^no available backend found\. ERR: \[\w+\] /, '')
}
