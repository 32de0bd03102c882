/**
 * Comparison of all outputs of a run: (actual, expected, tolerance) by name -> OutputsVerdict.
 *
 * Both sides must have the same names. Every output that both have gets its verdict, in the order
 * of the reference, also where others are missing; the whole matches if all of them match.
 */
import type { Tensor } from '../tensor/tensor.ts'
import { compareTensor, type Verdict } from './compare.ts'
import type { Tolerance } from './tolerance.ts'

export interface OutputsVerdict {
  /** `incomparable` if an output is, or if names differ; else `mismatch` if an output is one. */
  readonly kind: Verdict['kind']
  readonly outputs: ReadonlyMap<string, Verdict>
  /** Names that only the reference has. */
  readonly missing: readonly string[]
  /** Names that only the result has. */
  readonly unexpected: readonly string[]
}

export type Outputs = ReadonlyMap<string, Tensor>

/** One tolerance for all outputs, or one for each. */
export function compareOutputs(
  actual: Outputs,
  expected: Outputs,
  tolerance: Tolerance | ((name: string, expected: Tensor) => Tolerance),
): OutputsVerdict {
  const toleranceOf = typeof tolerance === 'function' ? tolerance : () => tolerance
  const missing = [...expected.keys()].filter((name) => !actual.has(name))
  const unexpected = [...actual.keys()].filter((name) => !expected.has(name))
  const outputs = new Map<string, Verdict>()
  for (const [name, tensor] of expected) {
    const result = actual.get(name)
    if (result) outputs.set(name, compareTensor(result, tensor, toleranceOf(name, tensor)))
  }
  return {
    kind: kindOf([...outputs.values()], missing.length + unexpected.length),
    outputs,
    missing,
    unexpected,
  }
}

function kindOf(verdicts: readonly Verdict[], unpaired: number): Verdict['kind'] {
  if (unpaired > 0 || verdicts.some(({ kind }) => kind === 'incomparable')) return 'incomparable'
  return verdicts.some(({ kind }) => kind === 'mismatch') ? 'mismatch' : 'match'
}
