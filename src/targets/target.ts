/**
 * The contract of a target: what runs a model other than the reference does.
 *
 * A target compiles a model for one of its chips and loads what it made; a loaded model runs.
 * Everything it needs comes as arguments, so that any test can run in any process. Whatever it
 * throws is the ERROR of the test at hand, never a verdict.
 */
import type { Tensor } from '../tensor/tensor.ts'

export type Tensors = ReadonlyMap<string, Tensor>

export interface Target {
  /** In test names: letters, digits, `_ . -`. */
  readonly name: string
  /** Enters cache keys: results of another version are made anew. */
  version(): string | Promise<string>
  /** Variants of the target, `default` first. A chip file adds to them or replaces one. */
  readonly chips?: readonly Chip[]
  /** Why it cannot be used on this machine; undefined when it can. */
  unavailable?(): string | undefined | Promise<string | undefined>
  compile(model: TargetModel, chip: Chip, context: TargetContext): Promise<Artefact> | Artefact
  load(artefact: Artefact, context: TargetContext): Promise<Runner> | Runner
}

/** A variant of a target: its name, and what its file says. */
export interface Chip {
  readonly name: string
  readonly [setting: string]: unknown
}

export interface TargetModel {
  /** The ONNX model. Large weights lie outside, as external data relative to `folder`. */
  readonly bytes: Uint8Array
  readonly folder: string
  /** Names of its outputs, in order. */
  readonly outputs: readonly string[]
  /** The name of the case without target and chip, for messages and files. */
  readonly name: string
  /** Smallest and largest number of each value in the reference run, by name, where asked for. */
  readonly ranges: () => Promise<ValueRanges>
}

export type ValueRanges = Readonly<Record<string, { readonly min: number; readonly max: number }>>

/** Whatever the target likes; only the target itself looks inside. */
export type Artefact = unknown

export interface Runner {
  run(inputs: Tensors): Promise<Tensors> | Tensors
  dispose?(): Promise<void> | void
}

export interface TargetContext {
  /** Milliseconds that the step may take. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Declares a target; the default export of a module named in the option `targets`. */
export function defineTarget(target: Target): Target {
  return target
}
