/**
 * Runs a model whole and by its parts, and says where the two differ: the test of all tests.
 *
 * onnxruntime in this process, without optimisation, on one thread. Parts are run in their own
 * sessions, each fed what earlier ones gave.
 */
import type { InferenceSession } from 'onnxruntime-node'
import type { ModelFile } from '../../src/files/model-file.ts'
import { foldShapes } from '../../src/graph/fold-shapes.ts'
import { extractPart, type Part } from '../../src/graph/part.ts'
import { isWeight, resolveModel, type ScopedGraph, type Value } from '../../src/graph/resolve.ts'
import { splitGraph, type SplitOptions } from '../../src/graph/split.ts'
import { graphAsModel } from '../../src/graph/whole.ts'
import type { TypeTable } from '../../src/graph/infer-types.ts'
import { loadOrt } from '../../src/targets/ort-runtime.ts'
import { fromOrtTensor, isCarriedByOrt, toOrtTensor } from '../../src/targets/ort-tensor.ts'
import { openOrtPool } from '../../src/targets/ort-pool.ts'
import { reportTypes } from '../../src/targets/ort-types.ts'
import { dtypeFromOnnx } from '../../src/tensor/dtype.ts'
import { bytesOfTensor, type Tensor } from '../../src/tensor/tensor.ts'

export interface SplitModel {
  readonly file: ModelFile
  readonly graph: ScopedGraph
  readonly types: TypeTable
  readonly parts: readonly Part[]
}

export type Tensors = ReadonlyMap<string, Tensor>

const ort = await loadOrt()

export const SESSION: InferenceSession.SessionOptions = {
  executionProviders: ['cpu'],
  graphOptimizationLevel: 'disabled',
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  logSeverityLevel: 4,
}

/** One process for all tests of a worker; it ends with the worker. */
const process = openOrtPool()

export async function splitFile(file: ModelFile, options: Partial<SplitOptions> = {}): Promise<SplitModel> {
  const graph = resolveModel(file.model)
  const { types } = await reportTypes(file, graph, process)
  const parts = splitGraph(graph, {
    stem: file.stem,
    typeOf: (value) => types.get(value),
    folded: foldShapes(graph, types),
    canCross: (code) => isCarriedByOrt(dtypeFromOnnx(code)),
    ...options,
  })
  return { file, graph, types, parts }
}

export function partBytes({ file, types }: SplitModel, part: Part): Uint8Array {
  return extractPart(part, (value) => types.get(value), { kind: 'inline', external: file.external }).toBytes()
}

export async function runBytes(
  model: Uint8Array | string,
  feeds: Tensors,
  fetches?: readonly string[],
): Promise<Tensors> {
  const session = await ort.InferenceSession.create(model as string, SESSION)
  try {
    const named = Object.fromEntries([...feeds].map(([name, tensor]) => [name, toOrtTensor(ort, tensor)]))
    const results = await session.run(named, [...(fetches ?? session.outputNames)])
    return new Map(Object.entries(results).map(([name, value]) => [name, fromOrtTensor(value as never)]))
  } finally {
    await session.release()
  }
}

/** The outputs of the model, by running its top-level parts one after another. */
export async function runParts(split: SplitModel, feeds: Tensors): Promise<Tensors> {
  const { graph, parts, file } = split
  const known = new Map<Value, Tensor>()
  for (const value of graph.inputs) {
    const fed = feeds.get(value.written)
    if (fed !== undefined) known.set(value, fed)
  }
  for (const part of parts) {
    if (part.scope !== '') continue
    const inputs = new Map(part.inputs.map((value) => [value.name, known.get(value)!]))
    const results = await runBytes(partBytes(split, part), inputs)
    for (const value of part.outputs) known.set(value, results.get(value.name)!)
  }
  const constants = graph.outputs.filter(isWeight)
  if (constants.length > 0) {
    const model = graphAsModel(graph, constants, () => undefined, { kind: 'inline', external: file.external })
    const results = await runBytes(
      model.toBytes(),
      feeds,
      constants.map(({ name }) => name),
    )
    for (const value of constants) known.set(value, results.get(value.name)!)
  }
  return new Map(graph.outputs.map((value) => [value.written, known.get(value)!]))
}

/** Lines that say which outputs are not equal bit for bit; empty when all are. */
export function differences(expected: Tensors, actual: Tensors): string[] {
  return [...expected].flatMap(([name, tensor]) => {
    const other = actual.get(name)
    if (other === undefined) return [`${name}: missing`]
    if (other.dtype !== tensor.dtype || other.shape.join() !== tensor.shape.join()) {
      return [
        `${name}: ${other.dtype}[${other.shape.join()}] instead of ${tensor.dtype}[${tensor.shape.join()}]`,
      ]
    }
    if (tensor.dtype === 'string' || other.dtype === 'string') {
      return JSON.stringify(tensor.data) === JSON.stringify(other.data) ? [] : [`${name}: strings differ`]
    }
    const [a, b] = [bytesOfTensor(tensor), bytesOfTensor(other)]
    const at = a.findIndex((byte, index) => byte !== b[index])
    return at === -1 ? [] : [`${name}: differs from byte ${at} of ${a.length} on`]
  })
}
