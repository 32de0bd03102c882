/**
 * One line of the application's log -> the step, the metric values and the checkpoint it tells of.
 *
 * Pure. A line may tell all of them, some or none; a value on a line without a step belongs to the
 * step logged last.
 */
import { ModelTestError } from '../errors.ts'
import { matchLine, matchOne } from './log-pattern.ts'
import type { ConvergenceTest } from './parse-config.ts'

export interface LogEntry {
  readonly step: number | undefined
  readonly values: readonly LoggedValue[]
  /** The path of the checkpoint that was saved, as logged. */
  readonly saved: string | undefined
}

export interface LoggedValue {
  readonly metric: string
  readonly label: string
  readonly value: string
}

export function parseLogLine(test: ConvergenceTest, line: string): LogEntry {
  const saved = matchOne(test.modelSave, line)
  // The path may hold digits that look like a step: "ckpts/step_12/model".
  const rest = saved === undefined ? line : line.replace(saved, '')
  return { step: parseStep(test, rest), values: parseValues(test, rest), saved }
}

function parseStep(test: ConvergenceTest, line: string): number | undefined {
  const text = matchOne(test.stepNum, line)?.trim()
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text)
  throw new ModelTestError(
    'CONVERGENCE_CONFIG',
    `test "${test.name}", log_parsing.step_num.regex: read "${text}" as the step from the line "${line.slice(0, 200)}"`,
    { hint: 'Make its group match a whole number: (\\d+).' },
  )
}

function parseValues(test: ConvergenceTest, line: string): LoggedValue[] {
  return test.metrics.flatMap(({ name, pattern }) =>
    [...(matchLine(pattern, line) ?? [])].map(([label, value]) => ({ metric: name, label, value })),
  )
}
