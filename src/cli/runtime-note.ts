/** What a command says when onnxruntime could not help with types. */
import type { ModelTestError } from '../errors.ts'
import { note } from './output.ts'

export function noteFailure(failure: ModelTestError | undefined): void {
  if (failure === undefined) return
  const [reason] = failure.message.split('\n')
  note(`${reason}; types come from the file and from what nodes can be loaded one by one`)
  if (failure.code === 'RUNTIME_MISSING') note(failure.hint)
}
