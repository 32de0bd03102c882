/**
 * Gives an error its place: what the tensor rules find wrong knows no file, its reader does.
 *
 * An error that already names a file passes through.
 */
import { ModelTestError } from '../errors.ts'

export interface Place {
  readonly file: string
  readonly offset: number
  /** What was being read, such as `tensor "bias"`. */
  readonly what: string
}

export function locateErrors<T>({ file, offset, what }: Place, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ModelTestError) || error.file !== undefined) throw error
    const { code, message, hint, cause } = error
    throw new ModelTestError(code, `${what}: ${message}`, { file, offset, hint, cause })
  }
}
