/**
 * `<stem>.test.yaml`: what is set for one model.
 *
 *   shapes: { batch: [1, 4], seq: 16 }
 *   inputs:
 *     input_ids: { range: [0, 1000] }
 *     mask: { file: mask.npy }
 *   tolerance: fp16
 *   tolerances: [{ op: Softmax, target: webgpu, tolerance: 0.05 }]
 *   xfails: [model_layer_Softmax_3-webgpu-default owner/repo#17]
 */
import { dirname, relative } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { parseThresholds, type ThresholdTable } from '../compare/thresholds.ts'
import type { Tolerance } from '../compare/tolerance.ts'
import { ModelTestError } from '../errors.ts'
import type { DiscoveredModel } from './discover.ts'
import {
  groupsSchema,
  type InputsKind,
  type ResolvedConfig,
  sizesSchema,
  targetsOf,
  toleranceSchema,
} from './options.ts'
import { readText } from './read-text.ts'
import { type Xfail, xfailOf } from './xfails.ts'

export interface Sidecar {
  readonly shapes?: Readonly<Record<string, readonly number[]>> | undefined
  /** By the name of the model's input. */
  readonly inputs?: Readonly<Record<string, InputSettings>> | undefined
  /** What layers are fed. */
  readonly layerInputs?: InputsKind | undefined
  readonly seed?: number | undefined
  readonly tolerance?: number | string | Readonly<Record<string, unknown>> | undefined
  /** Rules as in thresholds.json; they go before its rules. */
  readonly tolerances?: readonly unknown[] | undefined
  readonly groups?: readonly (readonly string[])[] | undefined
  readonly dedup?: boolean | undefined
  readonly layers?: boolean | undefined
  readonly fullModel?: boolean | undefined
  /** Lines as in xfails.txt. */
  readonly xfails?: readonly string[] | undefined
  readonly targets?: readonly string[] | undefined
  readonly chips?: readonly string[] | undefined
  /** Leave out the model, or the tests whose names match; the text is the reason. */
  readonly skip?: boolean | string | Readonly<Record<string, string>> | undefined
}

export interface InputSettings {
  /** From the first up to, and without, the second. */
  readonly range?: readonly [number, number] | undefined
  readonly seed?: number | undefined
  /** `.npy`, `.pb` or `.safetensors`, relative to the sidecar. */
  readonly file?: string | undefined
}

const text = z.string({ error: 'must be a text' }).min(1, 'must not be empty')
const bool = z.boolean({ error: 'must be true or false' })
const seed = z
  .int({ error: 'must be a whole number from 0 on' })
  .nonnegative('must be a whole number from 0 on')
const texts = z.array(text, { error: 'must be a list of texts' })

const RANGE = 'must be two numbers such as [0, 100]'
const bound = z.number({ error: RANGE })

const inputSchema: z.ZodType<InputSettings> = z.strictObject(
  {
    range: z
      .tuple([bound, bound], { error: RANGE })
      .refine(([low, high]) => low < high, 'must have the smaller number first')
      .optional(),
    seed: seed.optional(),
    file: text.optional(),
  },
  { error: 'must be an object with range, seed or file' },
)

const sidecarSchema: z.ZodType<Sidecar> = z.strictObject({
  shapes: z
    .record(z.string(), sizesSchema, { error: 'must be an object such as { batch: [1, 4] }' })
    .optional(),
  inputs: z.record(z.string(), inputSchema, { error: 'must be an object of inputs' }).optional(),
  layerInputs: z.enum(['activations', 'random'], { error: 'must be activations or random' }).optional(),
  seed: seed.optional(),
  tolerance: toleranceSchema.optional(),
  tolerances: z.array(z.unknown(), { error: 'must be a list of rules' }).optional(),
  groups: groupsSchema.optional(),
  dedup: bool.optional(),
  layers: bool.optional(),
  fullModel: bool.optional(),
  xfails: texts.optional(),
  targets: texts.min(1, 'must name a target').optional(),
  chips: texts.min(1, 'must name a chip').optional(),
  skip: z
    .union([z.boolean(), z.string(), z.record(z.string(), z.string())], {
      error: 'must be true, a reason, or an object with a reason for each name or pattern of tests',
    })
    .optional(),
})

const FIELDS = Object.keys((sidecarSchema as unknown as z.ZodObject).shape)
const INPUT_FIELDS = Object.keys((inputSchema as unknown as z.ZodObject).shape)

export function parseSidecar(yaml: string, file: string): Sidecar {
  let written: unknown
  try {
    written = parse(yaml) ?? {}
  } catch (cause) {
    throw invalid(file, `is not YAML: ${(cause as Error).message.trim()}`, hintAt([]), cause)
  }
  const result = sidecarSchema.safeParse(written)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  const hint = hintAt(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => [...issue.path, key].map(String).join('.'))
    throw invalid(file, `${names.join(', ')}: there is no such field`, hint)
  }
  const place = issue.path.map(String).join('.')
  throw invalid(file, place === '' ? 'must be fields with values' : `${place}: ${issue.message}`, hint)
}

function hintAt([field, input]: readonly PropertyKey[]): string {
  if (field !== 'inputs' || input === undefined) return `The fields are ${FIELDS.join(', ')}.`
  return `An input has ${INPUT_FIELDS.join(', ')}; files go from the folder of the sidecar.`
}

/** An empty one if the model has none. */
export function readSidecar({ sidecar }: DiscoveredModel): Sidecar {
  return sidecar === undefined ? {} : parseSidecar(readText(sidecar), sidecar)
}

/** The configuration of a model: what the environment does not set, its sidecar may. */
export function modelConfig(
  model: DiscoveredModel,
  sidecar: Sidecar,
  config: ResolvedConfig,
): ResolvedConfig {
  const unless = <T>(setting: string, own: T | undefined, general: T): T =>
    own === undefined || config.fromEnvironment.includes(setting) ? general : own
  return {
    ...config,
    targets: unless(
      'targets',
      sidecar.targets && targetsOf(sidecar.targets, dirname(model.path), false),
      config.targets,
    ),
    chips: unless('chips', sidecar.chips, config.chips),
    groups: sidecar.groups ?? config.groups,
    dedup: sidecar.dedup ?? config.dedup,
    seed: unless('seed', sidecar.seed, config.seed),
    layers: unless('layers', sidecar.layers, config.layers),
    fullModel: unless('fullModel', sidecar.fullModel, config.fullModel),
    inputs: unless('inputs', sidecar.layerInputs, config.inputs),
  }
}

/** The tolerances of the sidecar as a table; `tolerance` is its most general rule. */
export function sidecarThresholds(
  { sidecar: file }: DiscoveredModel,
  { tolerance, tolerances = [] }: Sidecar,
  root: string,
  base?: Tolerance,
): ThresholdTable | undefined {
  const rules = [...(tolerance === undefined ? [] : [{ tolerance }]), ...tolerances]
  if (file === undefined || rules.length === 0) return undefined
  return parseThresholds({ rules }, relative(root, file), base)
}

export function sidecarXfails(
  { sidecar: file }: DiscoveredModel,
  { xfails = [] }: Sidecar,
  root: string,
): Xfail[] {
  const from = relative(root, file ?? '')
  return xfails.map((line) => xfailOf(line.trim().split(/\s+/), 'xfails', from))
}

function invalid(file: string, problem: string, hint: string, cause?: unknown): ModelTestError {
  return new ModelTestError('INVALID_OPTION', problem, { file, hint, cause })
}
