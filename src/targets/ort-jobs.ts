/**
 * What the process that holds onnxruntime does: describe a model's values, or run it.
 *
 * The messages between the two sides. Tensors and model bytes travel as they are.
 */
import type { Tensor } from '../tensor/tensor.ts'

export interface OrtModel {
  readonly bytes: Uint8Array
  /** Where the model's external data lies. */
  readonly folder?: string
}

export type OrtJob =
  | { readonly kind: 'describe'; readonly model: OrtModel }
  | {
      readonly kind: 'run'
      readonly model: OrtModel
      readonly feeds: Readonly<Record<string, Tensor>>
      /** Outputs to send back whole. */
      readonly fetches: readonly string[]
      /** Outputs of which the shape is enough. */
      readonly measures?: readonly string[]
    }

export interface OrtValueInfo {
  readonly name: string
  readonly isTensor: boolean
  /** The dtype, for tensors. */
  readonly type?: string
  /** Fixed sizes and symbols; empty for a scalar and also where the rank is not known. */
  readonly shape?: readonly (number | string)[]
}

export interface OrtDescription {
  readonly inputs: readonly OrtValueInfo[]
  readonly outputs: readonly OrtValueInfo[]
}

export type OrtAnswer =
  | { readonly kind: 'described'; readonly description: OrtDescription }
  | {
      readonly kind: 'ran'
      readonly outputs: Readonly<Record<string, Tensor>>
      readonly shapes: Readonly<Record<string, readonly number[]>>
    }
  | { readonly kind: 'missing'; readonly message: string; readonly hint: string }
  | { readonly kind: 'failed'; readonly step: 'load' | 'run'; readonly message: string }
