/**
 * How a test ends other than well: FAIL, both results exist and differ too much; ERROR, one of
 * them could not be had. The names are what reporters show in front of the message.
 */
import { ModelTestError } from '../errors.ts'
import { FixtureFailure } from '../fixtures/case-fixtures.ts'

export class OutputMismatch extends Error {
  override readonly name = 'FAIL'
}

export class CannotTell extends Error {
  override readonly name = 'ERROR'

  /** `frames`: where it comes from, in code that is not this package's. */
  constructor(message: string, frames: readonly string[] = []) {
    super(message)
    this.stack = [`${this.name}: ${message}`, ...frames].join('\n')
  }
}

export function cannotTell(error: unknown): CannotTell {
  const fixture = error instanceof FixtureFailure ? error.fixture : undefined
  const cause = error instanceof FixtureFailure ? error.cause : error
  const where = fixture === undefined ? '' : `${fixture}: `
  if (cause instanceof ModelTestError) return new CannotTell(`${where}${cause.message}\nhint: ${cause.hint}`)
  if (!(cause instanceof Error)) return new CannotTell(`${where}${String(cause)}`)
  return new CannotTell(`${where}${cause.name}: ${cause.message}`, framesOf(cause))
}

/** Where in this package an error went by tells the reader nothing. */
function framesOf({ stack = '' }: Error): string[] {
  const own = new URL('..', import.meta.url).href
  return stack.split('\n').filter((line) => /^\s+at /.test(line) && !line.includes(own))
}

export function mismatch(lines: readonly string[]): OutputMismatch {
  const error = new OutputMismatch(lines.join('\n'))
  error.stack = `${error.name}: ${error.message}`
  return error
}
