/**
 * The options of `onnx({...})`, checked; with the environment and the defaults, the configuration of a run.
 *
 * A configuration is plain data: it travels to the workers as it is. What a sidecar sets for its
 * model is added by `modelConfig`. Precedence: environment, sidecar, options, defaults.
 */
import { basename, extname, isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { parseTolerance } from '../compare/parse-tolerance.ts'
import type { Tolerance } from '../compare/tolerance.ts'
import { ModelTestError } from '../errors.ts'
import { DEFAULT_GROUPS } from '../graph/split.ts'
import { type EnvironmentSettings, MAX_SECONDS, readEnvironment } from './environment.ts'

/** A number, the name of a tolerance, or its fields: see `parseTolerance`. */
export type WrittenTolerance = number | string | Readonly<Record<string, unknown>>

export type InputsKind = 'activations' | 'random'

export interface OnnxOptions {
  /** The folder of the models, relative to the project's root. @default 'testdata' */
  readonly testdata?: string | undefined
  /** Where the test files are written. @default '.vitest-onnx/tests' */
  readonly output?: string | undefined
  /** Names of targets, or paths of modules that default-export one. @default ['sim'] */
  readonly targets?: readonly string[] | undefined
  /** Names of chips, `all`, or `.group` files with one name a line. @default ['default'] */
  readonly chips?: readonly string[] | undefined
  /** Sizes of symbolic dimensions; every combination is tested. */
  readonly shapes?: Readonly<Record<string, number | readonly number[]>> | undefined
  /** Sequences of op types that are tested as one layer. @default [['Conv', 'Clip']] */
  readonly groups?: readonly (readonly string[])[] | undefined
  /** Test layers of equal content once. @default false */
  readonly dedup?: boolean | undefined
  /** Of the random inputs. @default 1234 */
  readonly seed?: number | undefined
  /** For cases that no threshold table names. */
  readonly tolerance?: WrittenTolerance | undefined
  /** A threshold table for all models, instead of the `thresholds.json` nearest to each. */
  readonly thresholds?: string | undefined
  /** Test the layers. @default true */
  readonly layers?: boolean | undefined
  /** Test the models as a whole. @default true */
  readonly fullModel?: boolean | undefined
  /** What layers are fed: what flows through the model, or random values. @default 'activations' */
  readonly inputs?: InputsKind | undefined
  /** In seconds, up to a day. @default { compile: 300, run: 240 } */
  readonly timeouts?: { readonly compile?: number | undefined; readonly run?: number | undefined } | undefined
  /** @default 'node_modules/.cache/vitest-onnx' */
  readonly cacheDir?: string | undefined
  /** A model with more tests gets several files, for workers and shards to share. @default 1000 */
  readonly maxTestsPerFile?: number | undefined
}

/** All paths are absolute. */
export interface ResolvedConfig {
  readonly root: string
  readonly testdata: string
  readonly output: string
  readonly targets: readonly ResolvedTarget[]
  /** As written; `chipNames` makes names of it. */
  readonly chips: readonly string[]
  readonly shapes: ShapeSettings
  readonly groups: readonly (readonly string[])[]
  readonly dedup: boolean
  readonly seed: number
  /** Undefined where nobody set one. */
  readonly tolerance?: Tolerance
  /** Who set it, for messages: `ONNX_TEST_TOLERANCE`, `the option tolerance`. */
  readonly toleranceOrigin?: string
  readonly thresholds?: string
  readonly layers: boolean
  readonly fullModel: boolean
  readonly inputs: InputsKind
  /** In seconds. */
  readonly timeouts: { readonly compile: number; readonly run: number }
  readonly cacheDir: string
  readonly maxTestsPerFile: number
  readonly recompute: boolean
  readonly tryXfails: boolean
  /** Which settings came from the environment, and so go before a sidecar's. */
  readonly fromEnvironment: readonly string[]
}

export interface ResolvedTarget {
  /** In the names of tests; that of a module is its file name without the extension. */
  readonly name: string
  readonly module?: string
  /** Named for this run, by `ONNX_TEST_TARGETS`: if it is not available that is an error, no reason to skip. */
  readonly isNamed: boolean
}

/** Sizes of dynamic dimensions, by symbol. */
export interface ShapeSettings {
  /** From the environment: they go before a sidecar's. */
  readonly forced: Readonly<Record<string, readonly number[]>>
  /** From the environment, for every symbol of that kind, whatever its name. */
  readonly batch?: readonly number[]
  readonly sequence?: readonly number[]
  /** From the options: a sidecar's go before them. */
  readonly general: Readonly<Record<string, readonly number[]>>
}

export function resolveConfig(
  options: OnnxOptions | undefined,
  root: string,
  env: NodeJS.ProcessEnv,
): ResolvedConfig {
  const given = checkOptions(options ?? {})
  const environment = readEnvironment(env)
  const path = (text: string): string => resolve(root, text)
  const thresholds = environment.thresholds ?? given.thresholds
  return {
    root: resolve(root),
    testdata: path(given.testdata ?? 'testdata'),
    output: path(given.output ?? '.vitest-onnx/tests'),
    targets: targetsOf(
      environment.targets ?? given.targets ?? ['sim'],
      root,
      environment.targets !== undefined,
    ),
    chips: environment.chips ?? given.chips ?? ['default'],
    shapes: shapesOf(environment, given),
    groups: given.groups ?? DEFAULT_GROUPS,
    dedup: given.dedup ?? false,
    seed: environment.seed ?? given.seed ?? 1234,
    ...toleranceOf(environment, given),
    ...(thresholds === undefined ? {} : { thresholds: path(thresholds) }),
    layers: environment.layers ?? given.layers ?? true,
    fullModel: environment.fullModel ?? given.fullModel ?? true,
    inputs: environment.inputs ?? given.inputs ?? 'activations',
    timeouts: {
      compile: environment.compileTimeout ?? given.timeouts?.compile ?? 300,
      run: environment.runTimeout ?? given.timeouts?.run ?? 240,
    },
    cacheDir: path(environment.cacheDir ?? given.cacheDir ?? 'node_modules/.cache/vitest-onnx'),
    maxTestsPerFile: given.maxTestsPerFile ?? 1000,
    recompute: environment.recompute ?? false,
    tryXfails: environment.tryXfails ?? false,
    fromEnvironment: Object.keys(environment),
  }
}

/** Targets as written -> names and modules. A path is told by its slash or its extension. */
export function targetsOf(written: readonly string[], folder: string, isNamed: boolean): ResolvedTarget[] {
  const targets = written.map((text): ResolvedTarget => {
    if (!/[/\\]|\.[cm]?[jt]s$/.test(text)) return { name: text, isNamed }
    const name = basename(text, extname(text)).replaceAll(/[^A-Za-z0-9_.]/g, '_')
    return { name, module: isAbsolute(text) ? text : resolve(folder, text), isNamed }
  })
  return targets.filter(({ name }, at) => targets.findIndex((other) => other.name === name) === at)
}

const SIZES = 'must be a size such as 4, or a list of sizes'

const size = z.int({ error: SIZES }).nonnegative(SIZES)

export const sizesSchema: z.ZodType<readonly number[]> = z
  .union([size, z.array(size, { error: SIZES }).min(1, SIZES)], { error: SIZES })
  .transform((sizes) => (typeof sizes === 'number' ? [sizes] : sizes))

const GROUPS = 'must be a list of groups, such as [["Conv", "Relu"]]'
const OP = 'must be an op type such as "Conv"'

export const groupsSchema: z.ZodType<readonly (readonly string[])[]> = z.array(
  z.array(z.string({ error: OP }).min(1, OP), { error: GROUPS }).min(2, 'must have two or more op types'),
  { error: GROUPS },
)

const text = z.string({ error: 'must be a text' }).min(1, 'must not be empty')
const bool = z.boolean({ error: 'must be true or false' })
const SECONDS = `must be more than 0 and at most ${MAX_SECONDS} seconds`
const seconds = z.number({ error: SECONDS }).positive(SECONDS).max(MAX_SECONDS, SECONDS)

export const toleranceSchema: z.ZodType<WrittenTolerance> = z.union(
  [z.number(), z.string(), z.record(z.string(), z.unknown())],
  { error: 'must be a number, the name of a tolerance, or its fields' },
)

type CheckedOptions = Omit<OnnxOptions, 'shapes'> & {
  readonly shapes?: Readonly<Record<string, readonly number[]>> | undefined
}

const optionsSchema: z.ZodType<CheckedOptions> = z.strictObject({
  testdata: text.optional(),
  output: text.optional(),
  targets: z.array(text, { error: 'must be a list of names' }).min(1, 'must name a target').optional(),
  chips: z.array(text, { error: 'must be a list of names' }).min(1, 'must name a chip').optional(),
  shapes: z
    .record(z.string(), sizesSchema, { error: 'must be an object such as { batch: [1, 4] }' })
    .optional(),
  groups: groupsSchema.optional(),
  dedup: bool.optional(),
  seed: z
    .int({ error: 'must be a whole number from 0 on' })
    .nonnegative('must be a whole number from 0 on')
    .optional(),
  tolerance: toleranceSchema.optional(),
  thresholds: text.optional(),
  layers: bool.optional(),
  fullModel: bool.optional(),
  inputs: z.enum(['activations', 'random'], { error: 'must be "activations" or "random"' }).optional(),
  timeouts: z
    .strictObject(
      { compile: seconds.optional(), run: seconds.optional() },
      { error: 'must be an object such as { compile: 300, run: 240 }' },
    )
    .optional(),
  cacheDir: text.optional(),
  maxTestsPerFile: z
    .int({ error: 'must be a whole number from 1 on' })
    .min(1, 'must be a whole number from 1 on')
    .optional(),
})

function checkOptions(options: unknown): CheckedOptions {
  const result = optionsSchema.safeParse(options)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  const place = issue.path.map(String).join('.')
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => [...issue.path, key].map(String).join('.'))
    const known =
      place === 'timeouts' ? 'timeouts has compile and run' : `The options are ${OPTION_NAMES.join(', ')}`
    throw new ModelTestError('INVALID_OPTION', `onnx({ ${names.join(', ')} }): there is no such option`, {
      hint: `${known}.`,
    })
  }
  const written = shown(valueAt(options, issue.path))
  throw new ModelTestError(
    'INVALID_OPTION',
    place === ''
      ? `onnx(${written}): must be called with an object of options`
      : `onnx({ ${place}: ${written} }): ${issue.message}`,
    { hint: `The options are ${OPTION_NAMES.join(', ')}; the README shows their use.` },
  )
}

const OPTION_NAMES = Object.keys((optionsSchema as unknown as z.ZodObject).shape)

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value)
}

function shown(value: unknown): string {
  const isJson = typeof value === 'string' || (typeof value === 'object' && value !== null)
  const json = isJson ? JSON.stringify(value) : String(value)
  return json.length > 60 ? `${json.slice(0, 60)}…` : json
}

function shapesOf(environment: EnvironmentSettings, given: CheckedOptions): ShapeSettings {
  return {
    forced: environment.shapes ?? {},
    general: given.shapes ?? {},
    ...(environment.batchSizes === undefined ? {} : { batch: environment.batchSizes }),
    ...(environment.sequenceLengths === undefined ? {} : { sequence: environment.sequenceLengths }),
  }
}

function toleranceOf(
  environment: EnvironmentSettings,
  given: CheckedOptions,
): { tolerance: Tolerance; toleranceOrigin: string } | undefined {
  if (environment.tolerance !== undefined) {
    const tolerance = parseTolerance(environment.tolerance, { what: 'ONNX_TEST_TOLERANCE' })
    return { tolerance, toleranceOrigin: 'ONNX_TEST_TOLERANCE' }
  }
  if (given.tolerance === undefined) return undefined
  const tolerance = parseTolerance(given.tolerance, { what: 'onnx({ tolerance })' })
  return { tolerance, toleranceOrigin: 'the option tolerance' }
}
