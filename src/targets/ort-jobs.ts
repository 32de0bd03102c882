/**
 * What the process that holds onnxruntime does: describe a model's values, or run it.
 *
 * The messages between the two sides. Tensors and model bytes travel as they are.
 */
import type { StoredTensor } from '../files/tensor-file.ts'
import type { Tensor } from '../tensor/tensor.ts'

/** Which build of onnxruntime: the native one for Node, or the one for browsers. */
export type OrtRuntime = 'node' | 'web'

/** What the process says: that it can begin, then one answer per job, in their order. */
export type OrtMessage = { readonly kind: 'ready' } | { readonly kind: 'answer'; readonly answer: OrtAnswer }

export interface OrtModel {
  readonly bytes: Uint8Array
  /** Where the model's external data lies. */
  readonly folder?: string
  /** A file to load as it is; `bytes` is empty then. */
  readonly path?: string
}

/** How a session is made; without it, as the reference: CPU, no optimisation, one thread. */
export interface OrtSettings {
  readonly providers: readonly (string | Readonly<Record<string, unknown>>)[]
  readonly optimisation: 'disabled' | 'basic' | 'extended' | 'all'
  /** @default 1 */
  readonly threads?: number
  /** Further session options, as onnxruntime-node takes them. */
  readonly session?: Readonly<Record<string, unknown>>
}

export type OrtJob =
  | { readonly kind: 'describe'; readonly model: OrtModel; readonly settings?: OrtSettings }
  | {
      readonly kind: 'run'
      readonly model: OrtModel
      readonly settings?: OrtSettings
      readonly feeds: Readonly<Record<string, StoredTensor>>
      /** Outputs to send back whole. */
      readonly fetches: readonly string[]
      /** Outputs of which the shape is enough. */
      readonly measures?: readonly string[]
    }
  | {
      /** Runs the model and puts its outputs, and these feeds, into a tensor file. */
      readonly kind: 'store'
      readonly model: OrtModel
      readonly settings?: OrtSettings
      readonly feeds: Readonly<Record<string, StoredTensor>>
      readonly fetches: readonly string[]
      readonly keepFeeds?: boolean
      /** Outputs that equal these bit for bit are only named in the file; when all do, there is none. */
      readonly expected?: Readonly<Record<string, StoredTensor>>
      readonly path: string
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
  | { readonly kind: 'stored'; readonly loadMs: number; readonly runMs: number }
  | { readonly kind: 'missing'; readonly message: string; readonly hint: string }
  | {
      /** What it made could not be put into its file, or what it was to read is gone; `code` is the system's, such as ENOSPC. */
      readonly kind: 'unwritten' | 'unread'
      readonly message: string
      readonly hint: string
      readonly code?: string
    }
  | { readonly kind: 'failed'; readonly step: 'load' | 'run'; readonly message: string }
