/**
 * thresholds.json: JSON -> a table of rules; (table, case) -> the tolerance and where it came from.
 *
 *   {
 *     "rules": [
 *       { "tolerance": 0.02 },
 *       { "op": "Softmax", "target": "webgpu", "tolerance": { "rtol": 1e-3, "atol": 1e-5 } },
 *       { "model": "resnet*", "layer": "*_full_model", "dtype": "float16", "tolerance": "fp16",
 *         "reason": "errors of 50 layers add up" }
 *     ]
 *   }
 *
 * A rule applies if all its keys do; `*` in a key stands for any characters. Of those that apply
 * one wins and gives the whole tolerance; rules are never mixed. The keys are looked at in the
 * order layer, model, op, chip, target, dtype, and the first in which two rules differ decides: a
 * name beats a pattern, and a pattern beats nothing. Of equals the last in the file wins.
 *
 * `layer` is the test's name up to its sizes, target and chip: `<model>_layer_<OpType>_<n>`,
 * `<model>_full_model` or `<model>_data_set_<n>`. `op` is any of the operators of a layer.
 */
import * as z from 'zod'
import { ModelTestError } from '../errors.ts'
import { isPattern, matchesPattern } from './name-pattern.ts'
import { type ParseToleranceOptions, parseTolerance } from './parse-tolerance.ts'
import { DEFAULT_TOLERANCE, type Tolerance } from './tolerance.ts'

/** In the order in which they decide. */
const KEYS = ['layer', 'model', 'op', 'chip', 'target', 'dtype'] as const

type Key = (typeof KEYS)[number]

export interface ThresholdRule extends Partial<Readonly<Record<Key, string>>> {
  readonly tolerance: Tolerance
  /** Why it is so, for those who read the failure. */
  readonly reason?: string
}

export interface ThresholdTable {
  /** For messages. */
  readonly file: string
  readonly rules: readonly ThresholdRule[]
}

export interface ThresholdCase {
  readonly model?: string | undefined
  readonly layer?: string | undefined
  /** Of a layer; a rule applies if one of them is the rule's. */
  readonly opTypes?: readonly string[] | undefined
  readonly target?: string | undefined
  readonly chip?: string | undefined
  readonly dtype?: string | undefined
}

export interface ResolvedThreshold {
  readonly tolerance: Tolerance
  /** As in `thresholds.json: op Softmax on webgpu`. */
  readonly origin: string
}

const NAME = 'must be a name, or a pattern with *'

const key = z.string({ error: NAME }).min(1, NAME).optional()

const tableSchema = z.strictObject(
  {
    $schema: z.string({ error: 'must be a text' }).optional(),
    rules: z.array(
      z.strictObject(
        {
          layer: key,
          model: key,
          op: key,
          chip: key,
          target: key,
          dtype: key,
          tolerance: z.union([z.number(), z.string(), z.record(z.string(), z.unknown())], {
            error: 'must be a number, the name of a tolerance, or its fields',
          }),
          reason: z.string({ error: 'must be a text' }).optional(),
        },
        { error: shapeError('must be an object with keys and a tolerance') },
      ),
      { error: 'must be a list of rules' },
    ),
  },
  { error: shapeError('must be an object with rules') },
)

function shapeError(text: string): z.core.$ZodErrorMap {
  return (issue) =>
    issue.code === 'unrecognized_keys' ? `there is no key ${(issue['keys'] as string[]).join(', ')}` : text
}

type WrittenRule = z.infer<typeof tableSchema>['rules'][number]

/** What a rule leaves out of its tolerance comes from `base`. */
export function parseThresholds(
  json: unknown,
  file: string = 'thresholds.json',
  base: Tolerance = DEFAULT_TOLERANCE,
): ThresholdTable {
  const result = tableSchema.safeParse(json)
  if (!result.success) throw invalid(file, result.error)
  const rules = result.data.rules.map((written, index) =>
    ruleOf(written, { what: `${file}, rule ${index + 1}`, base }),
  )
  return { file, rules }
}

function ruleOf(written: WrittenRule, options: ParseToleranceOptions): ThresholdRule {
  const entries = Object.entries(written).filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(entries), tolerance: parseTolerance(written.tolerance, options) }
}

/** The tolerance for a case; the fallback's if no rule applies. */
export function resolveThreshold(
  { file, rules }: ThresholdTable,
  where: ThresholdCase,
  fallback: ResolvedThreshold = { tolerance: DEFAULT_TOLERANCE, origin: 'default' },
): ResolvedThreshold {
  const applying = rules.filter((rule) => KEYS.every((name) => applies(rule[name], valuesOf(where, name))))
  if (applying.length === 0) return fallback
  const winner = applying.reduce((best, rule) => (compareRules(rule, best) >= 0 ? rule : best))
  return { tolerance: winner.tolerance, origin: `${file}: ${describeRule(winner)}` }
}

function valuesOf(where: ThresholdCase, name: Key): readonly string[] {
  if (name === 'op') return where.opTypes ?? []
  const value = where[name]
  return value === undefined ? [] : [value]
}

function applies(pattern: string | undefined, values: readonly string[]): boolean {
  return pattern === undefined || values.some((value) => matchesPattern(pattern, value))
}

function compareRules(a: ThresholdRule, b: ThresholdRule): number {
  const decisive = KEYS.find((name) => precision(a[name]) !== precision(b[name]))
  return decisive === undefined ? 0 : precision(a[decisive]) - precision(b[decisive])
}

function precision(pattern: string | undefined): number {
  if (pattern === undefined) return 0
  return isPattern(pattern) ? 1 : 2
}

function describeRule({ layer, model, op, chip, target, dtype, reason }: ThresholdRule): string {
  const subjects = [words('model', model), words('layer', layer), words('op', op)].filter(
    (text) => text !== '',
  )
  const places = [
    words('on', target),
    words(target === undefined ? 'on chip' : 'chip', chip),
    words('in', dtype),
  ]
  const rule = [subjects.join(', ') || 'every case', ...places].filter((text) => text !== '').join(' ')
  return reason === undefined ? rule : `${rule} (${reason})`
}

function words(word: string, value: string | undefined): string {
  return value === undefined ? '' : `${word} ${value}`
}

function invalid(file: string, error: z.ZodError): ModelTestError {
  const issue = error.issues[0]!
  const place = issue.path.length === 0 ? '' : ` at ${issue.path.join('.')}`
  return new ModelTestError('INVALID_OPTION', `not a threshold table${place}: ${issue.message}`, {
    file,
    hint: `Write { "rules": [{ "op": "Softmax", "target": "webgpu", "tolerance": 0.02 }] }; a rule has any of ${KEYS.join(', ')}.`,
  })
}
