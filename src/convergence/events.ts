/**
 * What happens while a test is gathered or run, as it happens: what progress displays show.
 */
import type { CheckpointResult } from './run-checkpoint.ts'
import type { LoggedValue } from './parse-log-line.ts'

export type ConvergenceEvent = { readonly test: string } & (
  | { readonly kind: 'started'; readonly command: readonly string[]; readonly startStep: number | null }
  | { readonly kind: 'step'; readonly step: number; readonly values: readonly LoggedValue[] }
  | { readonly kind: 'saved'; readonly startStep: number; readonly checkpoint: string }
  | {
      readonly kind: 'recorded'
      readonly startStep: number
      readonly checkpoint: string
      readonly steps: number
    }
  | { readonly kind: 'judged'; readonly result: CheckpointResult }
  | { readonly kind: 'warning'; readonly message: string }
)

export type OnEvent = (event: ConvergenceEvent) => void
