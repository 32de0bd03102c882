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
  readonly fixture: string | undefined

  constructor(message: string, fixture: string | undefined, cause: unknown) {
    super(message, { cause })
    this.fixture = fixture
    // Where in this package it was noticed tells the reader nothing.
    this.stack = `${this.name}: ${message}`
  }
}

export function cannotTell(error: unknown): CannotTell {
  const fixture = error instanceof FixtureFailure ? error.fixture : undefined
  const cause = error instanceof FixtureFailure ? error.cause : error
  const where = fixture === undefined ? '' : `${fixture}: `
  if (cause instanceof ModelTestError)
    return new CannotTell(`${where}${cause.message}\nhint: ${cause.hint}`, fixture, undefined)
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return new CannotTell(`${where}${text}`, fixture, cause)
}

export function mismatch(lines: readonly string[]): OutputMismatch {
  const error = new OutputMismatch(lines.join('\n'))
  error.stack = `${error.name}: ${error.message}`
  return error
}
