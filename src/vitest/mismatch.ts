/**
 * A mismatch for people: the figures, the threshold and its origin, what the layer is, and where
 * both tensors lie. They are kept until the test runs again, for `vitest-onnx diff`.
 */
import { join, relative } from 'node:path'
import { explainOutputs } from '../compare/explain.ts'
import type { OutputsVerdict } from '../compare/compare-outputs.ts'
import { writePlainTensorFile } from '../files/tensor-file.ts'
import { writeFileAtomic } from '../files/write-file.ts'
import type { Culprit } from '../fixtures/first-value-off.ts'
import type { ModelSource } from '../fixtures/model-source.ts'
import type { Case } from '../suite/cases.ts'
import { CASE_FILE, failureFolder, type KeptFailure } from '../suite/failures.ts'
import { carriesBfloat16 } from '../targets/upcast/carries-bfloat16.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { thresholdsOf } from './thresholds.ts'

interface Mismatch {
  readonly source: ModelSource
  readonly one: Case
  readonly verdict: OutputsVerdict
  readonly actual: ReadonlyMap<string, Tensor>
  readonly expected: ReadonlyMap<string, Tensor>
}

/** Writes both results and what is known of the case; returns the folder. */
export function keepMismatch({ source, one, actual, expected }: Mismatch): string {
  const folder = failureFolder(source.config.root, source.discovered.id, one.name)
  const tolerances = thresholdsOf(source, one)
  const outputs = [...expected].map(([name, value]) => [name, tolerances.resolve(value)] as const)
  const kept: KeptFailure = {
    test: one.name,
    model: source.discovered.id,
    thresholds: Object.fromEntries(outputs),
  }
  writePlainTensorFile(join(folder, 'expected.safetensors'), expected)
  writePlainTensorFile(join(folder, 'actual.safetensors'), actual)
  writeFileAtomic(join(folder, CASE_FILE), `${JSON.stringify(kept, null, 2)}\n`)
  return folder
}

export function explainMismatch({
  source,
  one,
  verdict,
  expected,
  kept,
  culprit,
}: Mismatch & { readonly kept: string; readonly culprit: Culprit | undefined }): string[] {
  const tolerances = thresholdsOf(source, one)
  const originOf = (name: string): string => tolerances.resolve(expected.get(name)!).origin
  return [
    `${one.name}: the outputs on ${one.target} (chip ${one.chip}) differ from the reference`,
    ...explainOutputs(verdict, originOf),
    '',
    ...describeCase(source, one),
    ...describeReference(source, one),
    ...(culprit === undefined ? [] : culprit.lines),
    `expected and actual: ${relative(source.config.root, kept)}/{expected,actual}.safetensors`,
    `compare again: npx vitest-onnx diff ${one.name}`,
  ]
}

/** Said where it is not what the file says. */
function describeReference({ file, types }: ModelSource, { kind }: Case): string[] {
  if (!carriesBfloat16(file.model, types)) return []
  if (kind === 'data-set')
    return ['reference: recorded in bfloat16 (the target runs the model up-cast to float32)']
  return ['reference: float32 (model up-cast from bfloat16, on the target too)']
}

function describeCase({ parts, discovered }: ModelSource, one: Case): string[] {
  const part = one.part === undefined ? undefined : parts.get(one.part)
  if (part === undefined) return [`model: ${discovered.id}`]
  const nodes = part.nodes.map(({ entry }) => `${entry.opType}${entry.name === '' ? '' : ` "${entry.name}"`}`)
  return [
    `layer: ${nodes.join(', ')} of ${discovered.id}${part.scope === '' ? '' : `, in ${part.scope}`} (node ${part.nodeIndices.join(', ')})`,
    `inputs: ${part.inputs.map(({ name }) => name).join(', ') || 'none'}; outputs: ${part.outputs.map(({ name }) => name).join(', ')}`,
  ]
}
