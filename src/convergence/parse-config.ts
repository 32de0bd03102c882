/**
 * The text of a YAML config -> its tests, in the order of the file.
 *
 * Pure. An error names every wrong field with its test. YAML 1.1 rules apply (`yes` is true, `<<`
 * merges), as in the Python loader such configs were written for.
 */
import { isMap, isScalar, LineCounter, parseDocument, visit, type Document, type Pair } from 'yaml'
import type { z } from 'zod'
import { ModelTestError } from '../errors.ts'
import { testSchema, type Comparison, type TestSchema } from './config-schema.ts'
import type { LogPattern } from './log-pattern.ts'

export interface ConvergenceTest {
  readonly name: string
  readonly directory: string
  readonly executable: readonly string[]
  readonly logOutput: 'stdout' | 'stderr'
  readonly stepNum: LogPattern
  readonly modelSave: LogPattern
  readonly metrics: readonly Metric[]
  readonly stepsToRecord: number
  readonly flags: TestSchema['flags']
}

export interface Metric {
  readonly name: string
  readonly pattern: LogPattern
  /** A proportion of the recorded value. */
  readonly margin: number
  readonly comparison: Comparison
}

export function parseConfig(text: string, file: string): ConvergenceTest[] {
  const tests = Object.entries(readYaml(text, file))
  if (tests.length === 0) throw configError(file, ['holds no test: its top level is the names of the tests'])

  const parsed = tests.map(([name, raw]) => ({
    name,
    issues: nameIssues(name),
    result: testSchema.safeParse(raw),
  }))
  const issues = parsed.flatMap(({ name, issues: bad, result }) => [
    ...bad,
    ...(result.success ? [] : result.error.issues.map((issue) => describeIssue(name, issue))),
  ])
  if (issues.length > 0) throw configError(file, issues)
  return parsed.flatMap(({ name, result }) => (result.success ? [testFromSchema(name, result.data)] : []))
}

function readYaml(text: string, file: string): Record<string, unknown> {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { version: '1.1', lineCounter, prettyErrors: true })
  const [error] = document.errors
  if (error !== undefined) throw configError(file, [`is not YAML: ${error.message.trim()}`], error)
  if (!isMap(document.contents))
    throw configError(file, ['holds no test: its top level is the names of the tests'])

  keepTextsAsWritten(document)
  return document.toJS() as Record<string, unknown>
}

/**
 * `value: 1.0` reaches the application as "1.0", not as the number's shortest text "1". The fields
 * that are numbers are read from text; YAML 1.1 would make one of a lone "." too.
 */
function keepTextsAsWritten(document: Document.Parsed): void {
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' || node.value instanceof Date) node.value = node.source
    },
    Pair(_, { key, value }: Pair) {
      if (!isScalar(key) || key.value !== 'value' || !isScalar(value)) return
      if (typeof value.value === 'boolean') value.value = value.source
    },
  })
}

function nameIssues(name: string): string[] {
  return /[/\\\0]/.test(name) ? [`test "${name}": the name must have no slash, it begins a file name`] : []
}

function describeIssue(test: string, issue: z.core.$ZodIssue): string {
  const field = issue.path.map(String).join('.')
  return `test "${test}"${field === '' ? '' : `, ${field}`}: ${issue.message}`
}

function configError(file: string, issues: readonly string[], cause?: unknown): ModelTestError {
  return new ModelTestError('CONVERGENCE_CONFIG', issues.join('\n  '), {
    file,
    hint: 'docs/convergence.md lists the fields of the config.',
    cause,
  })
}

function testFromSchema(name: string, raw: TestSchema): ConvergenceTest {
  return {
    name,
    directory: raw.directory,
    executable: raw.executable,
    logOutput: raw.log_output,
    stepNum: raw.log_parsing.step_num,
    modelSave: raw.log_parsing.model_save,
    metrics: Object.entries(raw.metrics).map(([metric, { margin, comparison }]) => ({
      name: metric,
      pattern: raw.log_parsing[metric] as LogPattern,
      margin,
      comparison,
    })),
    stepsToRecord: raw.recording.steps_to_record_after_save,
    flags: raw.flags,
  }
}
