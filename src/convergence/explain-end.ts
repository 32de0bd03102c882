/**
 * How the application ended -> the sentence that says why the test cannot tell.
 *
 * Pure.
 */
import type { ApplicationEnd, ApplicationRun } from './run-application.ts'

export interface ApplicationFailure {
  readonly message: string
  /** Null where it was ended by a signal. */
  readonly exitCode: number | null
  readonly lastLines: readonly string[]
}

/** Undefined for an end that is no failure. */
export function explainEnd({ end, lastLines }: ApplicationRun): ApplicationFailure | undefined {
  const message = describeEnd(end)
  return message === undefined ? undefined : { message, exitCode: exitCodeOf(end), lastLines }
}

/** For an application that ended well and yet did not log what it should have. */
export function failWith(message: string, { end, lastLines }: ApplicationRun): ApplicationFailure {
  return { message, exitCode: exitCodeOf(end), lastLines }
}

/** The message with the last lines of the log under it. */
export function renderFailure({ message, lastLines }: ApplicationFailure): string {
  if (lastLines.length === 0) return `${message}; it printed nothing`
  return [`${message}; its last lines:`, ...lastLines.map((line) => `  | ${line}`)].join('\n')
}

function describeEnd(end: ApplicationEnd): string | undefined {
  switch (end.kind) {
    case 'exited':
      return end.code === 0 ? undefined : `the application failed with exit code ${end.code}`
    case 'killed':
      return `the application was killed by ${end.signal}`
    case 'stuck':
      return `the application logged no new step for ${end.seconds} s and was stopped`
    case 'stopped':
    case 'interrupted':
      return undefined
  }
}

function exitCodeOf(end: ApplicationEnd): number | null {
  return end.kind === 'exited' ? end.code : null
}
