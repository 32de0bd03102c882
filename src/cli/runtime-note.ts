/** What a command says when onnxruntime could not help with types. */
import type { ModelTestError } from '../errors.ts'
import { note } from './output.ts'

export function noteFailure(failure: ModelTestError | undefined): void {
  if (failure === undefined) return
  const [reason] = failure.message.split('\n')
  note(`types and shapes come from the file alone, since ${reason}`)
  if (failure.code === 'RUNTIME_MISSING') note(failure.hint)
}
