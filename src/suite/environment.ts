/**
 * The environment variables `ONNX_TEST_*`: one table, from which they are read, checked and documented.
 *
 * An empty variable counts as not set. A bad value names the variable, the value and what is allowed.
 */
import { z } from 'zod'
import { ModelTestError } from '../errors.ts'

/** What was set, and nothing else. */
export interface EnvironmentSettings {
  readonly targets?: readonly string[]
  readonly chips?: readonly string[]
  readonly shapes?: Readonly<Record<string, readonly number[]>>
  readonly batchSizes?: readonly number[]
  readonly sequenceLengths?: readonly number[]
  readonly seed?: number
  readonly thresholds?: string
  readonly tolerance?: string
  readonly inputs?: 'activations' | 'random'
  readonly layers?: boolean
  readonly fullModel?: boolean
  readonly recompute?: boolean
  readonly cacheDir?: string
  readonly compileTimeout?: number
  readonly runTimeout?: number
  readonly tryXfails?: boolean
}

export interface EnvironmentVariable<Key extends keyof EnvironmentSettings = keyof EnvironmentSettings> {
  readonly name: `ONNX_TEST_${string}`
  /** An older name that works too. */
  readonly alias?: string
  readonly setting: Key
  /** What is allowed, as messages say it. */
  readonly allowed: string
  readonly default: string
  readonly about: string
  readonly example: string
  readonly schema: z.ZodType<Required<EnvironmentSettings>[Key]>
}

const text: z.ZodType<string> = z.string().trim().min(1)

const list: z.ZodType<readonly string[]> = z
  .string()
  .transform((written) => written.split(',').map((part) => part.trim()))
  .pipe(z.array(z.string().min(1)))

const numbers: z.ZodType<readonly number[]> = z
  .string()
  .transform((written) => written.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part))))
  .pipe(z.array(z.int().nonnegative()))

const wholeNumber: z.ZodType<number> = z
  .string()
  .regex(/^\s*\d+\s*$/)
  .transform(Number)
  .pipe(z.int())

/** A day. The limit of a test is several of these, and timers of Node end at 24 days. */
export const MAX_SECONDS = 86_400

const seconds: z.ZodType<number> = z
  .string()
  .trim()
  .min(1)
  .transform(Number)
  .pipe(z.number().positive().max(MAX_SECONDS))

const flag: z.ZodType<boolean> = z
  .string()
  .trim()
  .toLowerCase()
  .pipe(z.enum(['1', 'true', 'yes', 'on', '0', 'false', 'no', 'off']))
  .transform((word) => ['1', 'true', 'yes', 'on'].includes(word))

const shapes: z.ZodType<Readonly<Record<string, readonly number[]>>> = z
  .string()
  .transform((written) =>
    written
      .split(';')
      .filter((part) => part.trim() !== '')
      .map((part): [string, string] => {
        const at = part.lastIndexOf('=')
        return [part.slice(0, Math.max(at, 0)).trim(), part.slice(at + 1)]
      }),
  )
  .pipe(z.array(z.tuple([z.string().min(1), numbers as z.ZodType<readonly number[], string>])))
  .transform((entries) => Object.fromEntries(entries) as Record<string, readonly number[]>)

/** Checks that a row's schema gives what its setting holds. */
function row<Key extends keyof EnvironmentSettings>(variable: EnvironmentVariable<Key>): EnvironmentVariable {
  return variable as unknown as EnvironmentVariable
}

const FLAG = '1 or 0'
const SECONDS = `seconds, more than 0 and at most ${MAX_SECONDS}`

export const ENVIRONMENT_VARIABLES: readonly EnvironmentVariable[] = [
  row({
    name: 'ONNX_TEST_TARGETS',
    setting: 'targets',
    allowed: 'names of targets or paths of modules, with commas between',
    default: 'sim',
    about: 'The targets to test. One that is named here and not available is an error.',
    example: 'sim,webgpu',
    schema: list,
  }),
  row({
    name: 'ONNX_TEST_CHIPS',
    setting: 'chips',
    allowed: 'names of chips, `all`, or .group files, with commas between',
    default: 'default',
    about: 'The chips to test on.',
    example: 'default,float16',
    schema: list,
  }),
  row({
    name: 'ONNX_TEST_SHAPES',
    setting: 'shapes',
    allowed: 'symbol=size,size with semicolons between',
    default: '1 for batch-like symbols, a small size for others',
    about: 'Sizes of symbolic dimensions; every combination is tested.',
    example: 'batch=1,4;seq=16',
    schema: shapes,
  }),
  row({
    name: 'ONNX_TEST_BATCH_SIZES',
    alias: 'FMS_TEST_SHAPES_COMMON_BATCH_SIZES',
    setting: 'batchSizes',
    allowed: 'sizes with commas between',
    default: '1',
    about: 'Sizes of every batch-like dimension, whatever its name.',
    example: '1,4',
    schema: numbers,
  }),
  row({
    name: 'ONNX_TEST_SEQ_LENGTHS',
    alias: 'FMS_TEST_SHAPES_COMMON_SEQ_LENGTHS',
    setting: 'sequenceLengths',
    allowed: 'sizes with commas between',
    default: '8',
    about: 'Sizes of every sequence-like dimension, whatever its name.',
    example: '16,64',
    schema: numbers,
  }),
  row({
    name: 'ONNX_TEST_SEED',
    setting: 'seed',
    allowed: 'a whole number from 0 on',
    default: '1234',
    about: 'Seed of the random inputs.',
    example: '7',
    schema: wholeNumber,
  }),
  row({
    name: 'ONNX_TEST_TOLERANCE',
    setting: 'tolerance',
    allowed: 'a number, a name, or fields',
    default: 'default',
    about: 'Tolerance of every case, whatever threshold tables and sidecars say.',
    example: 'fp16',
    schema: text,
  }),
  row({
    name: 'ONNX_TEST_THRESHOLDS',
    setting: 'thresholds',
    allowed: 'the path of a file',
    default: 'the nearest thresholds.json',
    about: 'A threshold table for all models; its rules go before those of sidecars.',
    example: 'ci/thresholds.json',
    schema: text,
  }),
  row({
    name: 'ONNX_TEST_INPUTS',
    setting: 'inputs',
    allowed: 'activations or random',
    default: 'activations',
    about: 'What layers are fed: what flows through the model, or random values.',
    example: 'random',
    schema: z
      .string()
      .trim()
      .pipe(z.enum(['activations', 'random'])),
  }),
  row({
    name: 'ONNX_TEST_LAYERS',
    setting: 'layers',
    allowed: FLAG,
    default: '1',
    about: 'Whether layers are tested.',
    example: '0',
    schema: flag,
  }),
  row({
    name: 'ONNX_TEST_FULL_MODEL',
    setting: 'fullModel',
    allowed: FLAG,
    default: '1',
    about: 'Whether models are tested as a whole.',
    example: '0',
    schema: flag,
  }),
  row({
    name: 'ONNX_TEST_RECOMPUTE',
    setting: 'recompute',
    allowed: FLAG,
    default: '0',
    about: 'Make every fixture anew, whatever the cache holds.',
    example: '1',
    schema: flag,
  }),
  row({
    name: 'ONNX_TEST_CACHE_DIR',
    setting: 'cacheDir',
    allowed: 'the path of a folder',
    default: 'node_modules/.cache/vitest-onnx',
    about: 'Where fixtures are kept.',
    example: '/tmp/onnx-cache',
    schema: text,
  }),
  row({
    name: 'ONNX_TEST_COMPILE_TIMEOUT',
    setting: 'compileTimeout',
    allowed: SECONDS,
    default: '300',
    about: 'How long a compile may take.',
    example: '600',
    schema: seconds,
  }),
  row({
    name: 'ONNX_TEST_RUN_TIMEOUT',
    setting: 'runTimeout',
    allowed: SECONDS,
    default: '240',
    about: 'How long a run may take.',
    example: '60',
    schema: seconds,
  }),
  row({
    name: 'ONNX_TEST_TRY_XFAILS',
    setting: 'tryXfails',
    allowed: FLAG,
    default: '0',
    about: 'Run known failures too, to see which pass by now.',
    example: '1',
    schema: flag,
  }),
]

export function readEnvironment(env: NodeJS.ProcessEnv): EnvironmentSettings {
  const settings = ENVIRONMENT_VARIABLES.flatMap((variable) => {
    const name = [variable.name, variable.alias].find((candidate) => isSet(env, candidate))
    return name === undefined ? [] : [[variable.setting, parse(variable, name, env[name]!)] as const]
  })
  return Object.fromEntries(settings)
}

/** Names that look like ours and are not, with the one that was probably meant. */
export function environmentWarnings(env: NodeJS.ProcessEnv): string[] {
  const known = ENVIRONMENT_VARIABLES.map(({ name }) => name)
  return Object.keys(env)
    .filter((name) => name.startsWith('ONNX_TEST_') && !known.some((other) => other === name))
    .toSorted()
    .map((name) => `${name} is not known and has no effect; did you mean ${closest(name, known)}?`)
}

/** The table of the README. */
export function environmentTable(): string {
  const rows = ENVIRONMENT_VARIABLES.map(({ name, alias, allowed, default: fallback, about, example }) => [
    alias === undefined ? `\`${name}\`` : `\`${name}\` (also \`${alias}\`)`,
    `${about} Allowed: ${allowed}.`,
    fallback,
    `\`${example}\``,
  ])
  const lines = [['variable', 'what it does', 'default', 'example'], ['---', '---', '---', '---'], ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function isSet(env: NodeJS.ProcessEnv, name: string | undefined): name is string {
  return name !== undefined && (env[name] ?? '').trim() !== ''
}

function parse({ schema, allowed, example }: EnvironmentVariable, name: string, value: string): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new ModelTestError('INVALID_OPTION', `${name}=${value}: allowed is ${allowed}`, {
    hint: `For example ${name}=${/[;&| ]/.test(example) ? `'${example}'` : example}.`,
  })
}

function closest(name: string, known: readonly string[]): string {
  const ranked = known.map((other) => [editDistance(name, other), other] as const)
  return ranked.reduce((best, entry) => (entry[0] < best[0] ? entry : best))[1]
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      current.push(Math.min(change, previous[j]! + 1, current[j - 1]! + 1))
    }
    previous = current
  }
  return previous[b.length]!
}
