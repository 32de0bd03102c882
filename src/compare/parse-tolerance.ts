/**
 * What users write as a tolerance -> a complete Tolerance, or INVALID_OPTION.
 *
 * | written | means |
 * | --- | --- |
 * | `0.02` | fp_max_tol 0.02 |
 * | `"fp16"` | the named tolerance |
 * | `"fp16,allowed_wrong=0.001"` | a name or a number, then changes to it |
 * | `{ "like": "fp16", "allowed_wrong": 0.001 }` | the same as an object |
 *
 * Field names are taken in snake_case and camelCase. What is not written comes from `like`, else
 * from the base. A written `fp_max_tol` without `rtol` and `atol` takes both away, since with them
 * it would judge nothing.
 */
import * as z from 'zod'
import { ModelTestError } from '../errors.ts'
import {
  DEFAULT_TOLERANCE,
  NAMED_TOLERANCES,
  snakeCase,
  type Tolerance,
  TOLERANCE_NAMES,
  type ToleranceName,
} from './tolerance.ts'

export interface ParseToleranceOptions {
  /** Who is asking, for messages: a variable, a file and place in it. @default 'tolerance' */
  readonly what?: string
  /** @default DEFAULT_TOLERANCE */
  readonly base?: Tolerance
}

export function parseTolerance(
  written: unknown,
  { what = 'tolerance', base = DEFAULT_TOLERANCE }: ParseToleranceOptions = {},
): Tolerance {
  return apply(changesOf(written, what), base)
}

interface Changes {
  readonly like: ToleranceName | undefined
  readonly fields: Partial<Tolerance>
}

const share = numberFrom(0, 1, 'must be a number from 0 to 1')
const positive = numberFrom(0, Infinity, 'must be a number from 0 on')
const flag = z.boolean({ error: 'must be true or false' })

function numberFrom(min: number, max: number, error: string): z.ZodNumber {
  return z.number({ error }).min(min, error).max(max, error)
}

const FIELDS = {
  intTol: positive,
  intThld: positive,
  fpAvgTol: positive,
  fpMaxTol: positive,
  epsilon: positive,
  allowAllZero: flag,
  allowedWrong: share,
  skipNanCheck: flag,
  rtol: positive,
  atol: positive,
  minCosine: numberFrom(-1, 1, 'must be a number from -1 to 1'),
  minSqnr: z.number({ error: 'must be a number of decibels' }),
  maxUlp: positive,
  maxAbs: positive,
  minTop1: share,
} satisfies Record<keyof Tolerance, z.ZodType>

type FieldName = keyof typeof FIELDS

const FIELD_NAMES = Object.keys(FIELDS) as FieldName[]

function changesOf(written: unknown, what: string): Changes {
  if (typeof written === 'number') return numberChanges(written, what)
  if (typeof written === 'string') return textChanges(written, what)
  if (isRecord(written)) return objectChanges(written, what)
  throw invalid(what, shown(written), 'is no tolerance')
}

function numberChanges(written: number, what: string): Changes {
  return { like: undefined, fields: { fpMaxTol: checkedField('fpMaxTol', written, what) as number } }
}

function textChanges(written: string, what: string): Changes {
  const parts = written.split(',').map((part) => part.trim())
  const [first = '', ...rest] = parts
  if (parts.includes('')) throw invalid(what, `"${written}"`, 'has an empty part')
  const start = first.includes('=') ? { like: undefined, fields: {} } : startOf(first, what)
  const assignments = first.includes('=') ? parts : rest
  return assignments.reduce<Changes>(
    ({ like, fields }, part) => ({ like, fields: { ...fields, ...assignment(part, what) } }),
    start,
  )
}

function startOf(text: string, what: string): Changes {
  if (text !== '' && !Number.isNaN(Number(text))) return numberChanges(Number(text), what)
  return { like: nameOf(text, what), fields: {} }
}

function assignment(text: string, what: string): Partial<Tolerance> {
  const [key = '', value = '', ...more] = text.split('=').map((part) => part.trim())
  if (value === '' || more.length > 0) throw invalid(what, `"${text}"`, 'is no field=value')
  const name = fieldName(key, what)
  return { [name]: checkedField(name, scalar(value), what) }
}

function scalar(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  return Number.isNaN(Number(text)) ? text : Number(text)
}

function objectChanges(written: Record<string, unknown>, what: string): Changes {
  const { like, ...fields } = written
  const checked = Object.entries(fields).map(([key, value]) => {
    const name = fieldName(key, what)
    return [name, checkedField(name, value, what)]
  })
  return { like: like === undefined ? undefined : nameOf(like, what), fields: Object.fromEntries(checked) }
}

function apply({ like, fields }: Changes, base: Tolerance): Tolerance {
  const { rtol, atol, ...start }: Tolerance = like === undefined ? base : NAMED_TOLERANCES[like]
  if (fields.fpMaxTol !== undefined) return { ...start, ...fields }
  return {
    ...start,
    ...(rtol === undefined ? {} : { rtol }),
    ...(atol === undefined ? {} : { atol }),
    ...fields,
  }
}

function nameOf(written: unknown, what: string): ToleranceName {
  if (TOLERANCE_NAMES.includes(written as ToleranceName)) return written as ToleranceName
  throw invalid(what, shown(written), 'is no name of a tolerance')
}

function fieldName(key: string, what: string): FieldName {
  const name = key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
  if (FIELD_NAMES.includes(name as FieldName)) return name as FieldName
  throw invalid(what, `"${key}"`, 'is no field of a tolerance')
}

function checkedField(name: FieldName, value: unknown, what: string): unknown {
  const result = FIELDS[name].safeParse(value)
  if (result.success) return result.data
  throw invalid(what, `${snakeCase(name)} ${shown(value)}`, `is refused: it ${firstMessage(result.error)}`)
}

function firstMessage(error: z.ZodError): string {
  return error.issues[0]!.message
}

/** JSON has neither NaN nor large integers. */
function shown(value: unknown): string {
  return typeof value === 'string' || typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(what: string, value: string, why: string): ModelTestError {
  const names = TOLERANCE_NAMES.join(', ')
  const fields = FIELD_NAMES.map(snakeCase).join(', ')
  return new ModelTestError('INVALID_OPTION', `${what}: ${value} ${why}`, {
    hint: `Write a number such as 0.02, a name (${names}), or fields such as fp_max_tol=0.05,allowed_wrong=0.001. Fields: ${fields}.`,
  })
}
