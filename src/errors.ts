/**
 * The one error of the project: "cannot tell", as opposed to a mismatch, which is a value.
 *
 * The message states the fact with its values, `hint` says what to try next, and every
 * code is a heading in docs/errors.md.
 */
export type ErrorCode =
  // a model, tensor or data file that cannot be used as it is
  | 'FILE_UNREADABLE'
  | 'FILE_UNWRITABLE'
  | 'NOT_ONNX'
  | 'MALFORMED_MODEL'
  | 'MODEL_TOO_LARGE'
  | 'MALFORMED_TENSOR'
  | 'UNSUPPORTED_DTYPE'
  | 'EXTERNAL_DATA_OUTSIDE'
  | 'EXTERNAL_DATA_UNREADABLE'
  | 'INVALID_GRAPH'
  // a request that does not fit the model
  | 'UNKNOWN_VALUE'
  | 'INCOMPLETE_CUT'
  | 'INVALID_OPTION'
  // a tool that is missing or failed
  | 'RUNTIME_MISSING'
  | 'RUNTIME_FAILED'
  | 'COMPILE_FAILED'
  | 'INVALID_TARGET'
  // convergence regression
  | 'CONVERGENCE_CONFIG'
  | 'CONVERGENCE_MANIFEST'
  | 'APPLICATION_FAILED'

export interface ErrorDetails {
  /** The next thing to try. */
  readonly hint: string
  /** The file at fault. */
  readonly file?: string
  /** Where in the file, in bytes. */
  readonly offset?: number
  readonly cause?: unknown
}

export class ModelTestError extends Error {
  override readonly name = 'ModelTestError'
  readonly code: ErrorCode
  readonly hint: string
  readonly file: string | undefined
  readonly offset: number | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails) {
    super(
      locate(message, details),
      'cause' in details && details.cause !== undefined ? { cause: details.cause } : undefined,
    )
    this.code = code
    this.hint = details.hint
    this.file = details.file
    this.offset = details.offset
  }
}

function locate(message: string, { file, offset }: ErrorDetails): string {
  const place = [file, offset === undefined ? undefined : `byte ${offset}`].filter(
    (part) => part !== undefined,
  )
  return place.length === 0 ? message : `${place.join(', ')}: ${message}`
}
