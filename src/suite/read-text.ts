/** Small files that users write: their text, or the error that says which file. */
import { readFileSync } from 'node:fs'
import { ModelTestError } from '../errors.ts'

export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ModelTestError('FILE_UNREADABLE', `the file cannot be read (${(cause as Error).message})`, {
      file: path,
      hint: 'Check the path and its permissions.',
      cause,
    })
  }
}

export function readJson(path: string): unknown {
  try {
    return JSON.parse(readText(path))
  } catch (cause) {
    if (cause instanceof ModelTestError) throw cause
    throw new ModelTestError('INVALID_OPTION', `the file is not JSON (${(cause as Error).message})`, {
      file: path,
      hint: 'Correct the file; comments and trailing commas are not allowed in JSON.',
      cause,
    })
  }
}
