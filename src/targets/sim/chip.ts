/**
 * The chips of the simulated accelerator: a JSON file -> SimChip.
 *
 * Pure. Unknown fields are refused: a misspelt limit would otherwise be no limit. What is wrong
 * becomes INVALID_OPTION with the file and every field.
 */
import { z } from 'zod'
import { ModelTestError } from '../../errors.ts'

const SIM_STORAGES = ['float32', 'float16', 'bfloat16', 'int8'] as const
export type SimStorage = (typeof SIM_STORAGES)[number]

const SIM_ACCUMULATORS = ['float32', 'float64'] as const
export type SimAccumulator = (typeof SIM_ACCUMULATORS)[number]

export interface SimChip {
  /** In test names, so letters, digits and `_ . -` only. */
  readonly name: string
  /** What floats are rounded to wherever they are stored: inputs, weights, results of nodes. */
  readonly storage: SimStorage
  /**
   * What sums are kept in while a node runs. Narrower ones than float32 cannot be had from
   * onnxruntime's kernels. @default 'float32'
   */
  readonly accumulate?: SimAccumulator | undefined
  /** `Conv`, or `com.microsoft.Attention` for other domains. @default [] */
  readonly unsupportedOps?: readonly string[] | undefined
  /** A model that needs more does not compile. @default no limit */
  readonly memoryBytes?: number | undefined
  /** Additions and multiplications a second, for the estimate of time. */
  readonly opsPerSecond?: number | undefined
  /** Bytes a second between memory and processor, for the estimate of time. */
  readonly bytesPerSecond?: number | undefined
}

/**
 * `default` stores float32 and sums in float64: results differ from the reference in their last
 * bits, as on any other float32 machine, and a healthy layer stays within the default tolerance.
 * Narrower storage does not: the tolerance is relative and holds for every element, and where
 * terms cancel, the rounding of the inputs alone is more than 1 % of what is left. The others
 * are for tests of the tolerances that such chips need.
 */
export const DEFAULT_CHIPS: readonly SimChip[] = [
  { name: 'default', storage: 'float32', accumulate: 'float64' },
  { name: 'float32', storage: 'float32' },
  { name: 'float16', storage: 'float16' },
  { name: 'bfloat16', storage: 'bfloat16' },
  { name: 'int8', storage: 'int8' },
]

const positive = z.number('must be a number').positive('must be more than 0')

export const simChip: z.ZodType<SimChip> = z.strictObject(
  {
    name: z
      .string('must be a text')
      .max(100, 'must have at most 100 characters')
      .regex(/^[\w.-]+$/, 'must be made of letters, digits and _ . -'),
    storage: z.enum(SIM_STORAGES, `must be one of ${SIM_STORAGES.join(', ')}`),
    accumulate: z.enum(SIM_ACCUMULATORS, `must be one of ${SIM_ACCUMULATORS.join(', ')}`).optional(),
    unsupportedOps: z.array(z.string('must be the name of an op').min(1), 'must be a list of ops').optional(),
    memoryBytes: positive.int('must be a whole number of bytes').optional(),
    opsPerSecond: positive.optional(),
    bytesPerSecond: positive.optional(),
  },
  // Without this, unknown fields keep their own message.
  {
    error: (issue) => (issue.code === 'invalid_type' ? 'must be an object that describes a chip' : undefined),
  },
)

/** Reads the text of `chips/<name>.json`; the file may leave out the name. */
export function parseSimChip(text: string, file: string): SimChip {
  const raw = readJson(text, file)
  const isObject = typeof raw === 'object' && raw !== null && !Array.isArray(raw)
  const result = simChip.safeParse(isObject ? { name: stem(file), ...raw } : raw)
  if (result.success) return result.data
  throw invalid(file, result.error.issues.map(describeIssue).join('; '))
}

function readJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw invalid(file, `is not JSON: ${(cause as Error).message}`, cause)
  }
}

function stem(file: string): string {
  return file.replace(/^.*[/\\]/, '').replace(/\.json$/i, '')
}

function describeIssue({ path, message }: z.core.$ZodIssue): string {
  return path.length === 0 ? message : `${path.map(String).join('.')} ${message}`
}

function invalid(file: string, message: string, cause?: unknown): ModelTestError {
  return new ModelTestError('INVALID_OPTION', message, {
    file,
    hint: 'A chip file is like { "storage": "float16", "unsupportedOps": ["Conv"], "memoryBytes": 1000000 }.',
    cause,
  })
}
