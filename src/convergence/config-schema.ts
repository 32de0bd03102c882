/**
 * The shape of one test in the YAML config, as the config file spells it.
 *
 * Pure. Unknown keys are refused: a misspelt flag would otherwise be left out of a training that
 * runs for days.
 */
import { z } from 'zod'
import { compileLogPattern, type LogPattern } from './log-pattern.ts'

export const COMPARISONS = ['==', '<=', '<', '>=', '>', '!='] as const
export type Comparison = (typeof COMPARISONS)[number]

export interface TestSchema {
  readonly directory: string
  readonly executable: readonly string[]
  readonly log_output: 'stdout' | 'stderr'
  readonly log_parsing: { readonly step_num: LogPattern; readonly model_save: LogPattern } & {
    readonly [metric: string]: LogPattern
  }
  readonly metrics: Readonly<Record<string, { readonly margin: number; readonly comparison: Comparison }>>
  readonly recording: { readonly steps_to_record_after_save: number }
  readonly flags: {
    readonly common?: Flags
    readonly gather: { readonly checkpoint_output: FilledFlag; readonly misc?: Flags }
    readonly run: {
      readonly checkpoint_input: FilledFlag
      readonly start_step: FilledFlag
      readonly run_for: FilledFlag & { readonly counts?: 'total' | 'segment' | undefined }
      readonly misc?: Flags
    }
  }
}

/** Flags that the config gives a value, or null for a flag without one. */
export type Flags =
  | Readonly<Record<string, { readonly key: string; readonly value: string | null }>>
  | null
  | undefined

/** A flag that the harness gives its value. */
export interface FilledFlag {
  readonly key: string
  /** Added to the number that the harness would give. */
  readonly offset?: number | undefined
}

const text = (what: string): z.ZodString => z.string(must(what)).min(1, `must be ${what}`)

const number = (schema: z.ZodNumber): z.ZodType<number> =>
  z.preprocess(numberFromText, schema) as unknown as z.ZodType<number>

const pattern = z
  .strictObject(
    {
      regex: text('a regular expression'),
      labels: z.array(z.coerce.string(), must('a list of names')).nullish(),
    },
    must('an object with a `regex`'),
  )
  .transform((raw, context): LogPattern => {
    const labels = raw.labels ?? []
    if (new Set(labels).size < labels.length) {
      context.addIssue({ code: 'custom', path: ['labels'], message: 'has a label twice' })
    }
    try {
      return compileLogPattern(raw.regex, labels)
    } catch (error) {
      context.addIssue({
        code: 'custom',
        path: ['regex'],
        message: `is not a regular expression: ${reason(error)}`,
      })
      return z.NEVER
    }
  })

const metricPattern = pattern.refine((compiled) => compiled.groups > 0, {
  path: ['regex'],
  message: 'has no group: put the value to read in ( )',
})

const singlePattern = (what: string): z.ZodType<LogPattern> =>
  pattern.superRefine(({ groups }, context) => {
    if (groups === 1) return
    context.addIssue({ code: 'custom', path: ['regex'], message: `has ${groups} groups, needs one: ${what}` })
  })

const key = text("the application's name of the flag, such as --steps")

const flag = z.strictObject(
  {
    key,
    value: z
      .union([z.string(), z.number(), z.boolean()], must('one value, or null for a flag without one'))
      .nullish()
      .transform((value) => (value === null || value === undefined ? null : String(value))),
    set_in_script: z.literal(false, 'is only for the flags that the harness fills').optional(),
  },
  must('an object with `key` and `value`'),
)

const flags = z.record(z.string(), flag, must('an object of flags')).nullish()

const filledFlag = z.strictObject(
  {
    key,
    set_in_script: z.literal(true, 'must be true: the harness fills this flag').optional(),
    value: z.null('must be left out: the harness fills this flag').optional(),
    offset: number(z.int(must('a whole number'))).optional(),
  },
  must('an object with `key` and `set_in_script: true`'),
)

const runForFlag = filledFlag.extend({
  counts: z.enum(['total', 'segment'], must('"total" or "segment"')).optional(),
})

const metric = z.strictObject(
  {
    margin: number(z.number(must('a proportion, such as 0.05')).nonnegative('must not be negative')),
    comparison: z.enum(COMPARISONS, must(`one of ${COMPARISONS.join(' ')}`)),
  },
  must('an object with `margin` and `comparison`'),
)

export const testSchema: z.ZodType<TestSchema> = z
  .strictObject(
    {
      directory: text('a folder').default('.'),
      executable: z
        .array(z.coerce.string(), must('a list of words, such as ["python3", "train.py"]'))
        .min(1, 'must name the program to run'),
      log_output: z.enum(['stdout', 'stderr'], must('stdout or stderr')).default('stdout'),
      log_parsing: z
        .object(
          { step_num: singlePattern('the step'), model_save: singlePattern('the path of the checkpoint') },
          must('an object of regular expressions'),
        )
        .catchall(metricPattern),
      metrics: z
        .record(z.string(), metric, must('an object of metrics'))
        .refine((metrics) => Object.keys(metrics).length > 0, 'must name at least one metric'),
      recording: z.strictObject(
        {
          steps_to_record_after_save: number(
            z.int(must('a whole number of steps')).positive('must be at least 1'),
          ),
        },
        must('an object with `steps_to_record_after_save`'),
      ),
      flags: z.strictObject(
        {
          common: flags,
          gather: z.strictObject(
            { checkpoint_output: filledFlag, misc: flags },
            must('an object with `checkpoint_output`'),
          ),
          run: z.strictObject(
            { checkpoint_input: filledFlag, start_step: filledFlag, run_for: runForFlag, misc: flags },
            must('an object with `checkpoint_input`, `start_step` and `run_for`'),
          ),
        },
        must('an object with `gather` and `run`'),
      ),
    },
    must('an object'),
  )
  .superRefine((test, context) => {
    for (const name of Object.keys(test.metrics)) {
      if (isMetricParser(test.log_parsing, name)) continue
      context.addIssue({
        code: 'custom',
        path: ['metrics', name],
        message: 'has no regex of this name in log_parsing',
      })
    }
  })

function isMetricParser(parsers: object, name: string): boolean {
  return Object.hasOwn(parsers, name) && name !== 'step_num' && name !== 'model_save'
}

/** The two messages of a field: it is not there, or it is something else. */
function must(what: string): {
  error: (issue: {
    readonly code?: string
    readonly input?: unknown
    readonly keys?: readonly string[]
  }) => string
} {
  return {
    error: ({ code, input, keys }) => {
      if (code === 'unrecognized_keys') return `has an unknown key: ${keys?.join(', ')}`
      return input === undefined ? `is missing: must be ${what}` : `is ${shown(input)}: must be ${what}`
    },
  }
}

function shown(input: unknown): string {
  const json = JSON.stringify(input)
  return json.length > 60 ? `${json.slice(0, 60)}…` : json
}

/** Numbers come as texts, as they are written. */
function numberFromText(value: unknown): unknown {
  if (typeof value !== 'string' || value.trim() === '') return value
  const parsed = Number(value.replaceAll('_', ''))
  return Number.isNaN(parsed) ? value : parsed
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
