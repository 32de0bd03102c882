/** What a refusal must be: the one error, with the file, a place in it, and what to do next. */
import { expect } from 'vitest'
import { type ErrorCode, ModelTestError } from '../../src/errors.ts'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { indexModel } from '../../src/onnx/model-index.ts'

const FILE = 'model.onnx'

/** The error of indexing the bytes, checked; undefined when they are a model. */
export function refusalOf(
  bytes: Uint8Array,
  read: (bytes: Uint8Array) => unknown = index,
): ModelTestError | undefined {
  try {
    read(bytes)
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(ModelTestError)
    const { file, offset, hint } = error as ModelTestError
    expect(file).toBe(FILE)
    expect(offset).toBeTypeOf('number')
    expect(offset!).toBeGreaterThanOrEqual(0)
    expect(offset!).toBeLessThanOrEqual(bytes.length)
    expect(hint).not.toBe('')
    return error as ModelTestError
  }
}

export function expectRefused(bytes: Uint8Array, code: ErrorCode, message: RegExp): ModelTestError {
  const error = refusalOf(bytes)
  expect(error?.code).toBe(code)
  expect(error!.message).toMatch(message)
  return error!
}

export function index(bytes: Uint8Array): ReturnType<typeof indexModel> {
  return indexModel(bytesSource(bytes, FILE))
}
