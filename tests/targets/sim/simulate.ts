/** Runs a model and its compilation in onnxruntime, with every inner value where asked for. */
import { bytesSource } from '../../../src/bytes/byte-source.ts'
import { inferTypes, type TypeTable } from '../../../src/graph/infer-types.ts'
import { resolveModel, type ScopedGraph, type Value } from '../../../src/graph/resolve.ts'
import { computedValues, graphAsModel } from '../../../src/graph/whole.ts'
import { indexModel } from '../../../src/onnx/model-index.ts'
import type { SimRanges } from '../../../src/targets/sim/compile.ts'
import { planStorage } from '../../../src/targets/sim/stored-values.ts'
import type { SimStorage } from '../../../src/targets/sim/chip.ts'
import { loadOrt } from '../../../src/targets/ort-runtime.ts'
import { fromOrtTensor, isCarriedByOrt, toOrtTensor } from '../../../src/targets/ort-tensor.ts'
import { dtypeFromOnnx } from '../../../src/tensor/dtype.ts'
import { defaultRng, tweakedRandom } from '../../../src/tensor/random.ts'
import { elementCount, fromFloat64, type Tensor, toFloat64 } from '../../../src/tensor/tensor.ts'
import { plainTensor } from '../../../src/targets/plain-inputs.ts'
import { SESSION, type Tensors } from '../../support/composition.ts'
import type { SharedModel } from '../../support/shared.ts'

const ort = await loadOrt()

/** `folder`: where external data lies. */
export async function run(
  bytes: Uint8Array,
  feeds: Tensors,
  { folder, fetches }: { folder?: string; fetches?: readonly string[] } = {},
): Promise<Tensors> {
  const extra =
    folder === undefined
      ? {}
      : { extra: { session: { model_external_initializers_file_folder_path: folder } } }
  const session = await ort.InferenceSession.create(bytes, { ...SESSION, ...extra })
  try {
    const named = Object.fromEntries([...feeds].map(([name, tensor]) => [name, toOrtTensor(ort, tensor)]))
    const results = await session.run(named, [...(fetches ?? session.outputNames)])
    return new Map(Object.entries(results).map(([name, value]) => [name, fromOrtTensor(value as never)]))
  } finally {
    await session.release()
  }
}

/** The values of the main graph that nodes compute and that can be fetched, all of them. */
export async function runAll(bytes: Uint8Array, feeds: Tensors, folder?: string): Promise<Tensors> {
  const { graph, types } = graphOf(bytes)
  const outputs = computedValues(graph).filter((value) => {
    const type = types.get(value)
    return type?.kind === 'tensor' && isCarriedByOrt(dtypeFromOnnx(type.dataType))
  })
  if (outputs.length === 0) return new Map()
  const typeOf = (value: Value): ReturnType<TypeTable['get']> =>
    graph.inputs.includes(value) ? types.get(value) : undefined
  const model = graphAsModel(graph, outputs, typeOf, AS_IT_IS)
  return run(model.toBytes(), feeds, folder === undefined ? {} : { folder })
}

const AS_IT_IS = { kind: 'reference', location: '', minBytes: Infinity } as const

export function graphOf(bytes: Uint8Array): { graph: ScopedGraph; types: TypeTable } {
  const graph = resolveModel(indexModel(bytesSource(bytes)))
  return { graph, types: inferTypes(graph) }
}

/** The names of the main graph's computed values that a chip rounds. */
export function roundedNames(bytes: Uint8Array, storage: SimStorage): Set<string> {
  const { graph, types } = graphOf(bytes)
  const { rounded } = planStorage(graph, types, storage)
  return new Set(
    [...rounded]
      .filter(({ origin, graph: home }) => origin.kind === 'node' && home === graph)
      .map(({ name }) => name),
  )
}

export function rangesOf(values: Tensors): SimRanges {
  return Object.fromEntries(
    [...values].flatMap(([name, tensor]) => {
      if (tensor.dtype === 'string') return []
      let [min, max] = [Infinity, -Infinity]
      for (const value of toFloat64(tensor)) [min, max] = [Math.min(min, value), Math.max(max, value)]
      return min <= max ? [[name, { min, max, shape: tensor.shape }]] : []
    }),
  )
}

export function feedsFor(
  { shapes, values, intmax = 1 }: SharedModel,
  bytes: Uint8Array,
): Map<string, Tensor> {
  const { graph, types } = graphOf(bytes)
  const rng = defaultRng(1234)
  return new Map(
    graph.inputs.map((value) => {
      const [name, type] = [value.written, types.get(value)]
      if (type?.kind !== 'tensor') throw new Error(`${name} is no tensor`)
      const shape = shapes[name] ?? (type.shape ?? []).map((dim) => (typeof dim === 'number' ? dim : 1))
      const [dtype, fixed] = [dtypeFromOnnx(type.dataType)!, values[name]]
      if (fixed !== undefined && dtype !== 'string')
        return [name, fromFloat64(dtype, shape, Float64Array.from(fixed))]
      if (dtype.startsWith('float') && elementCount(shape) > 0)
        return [name, tweakedRandom(rng, dtype, shape, { low: -1, high: 1 })]
      return [name, plainTensor({ ...type, shape }, { size: 1, integer: Math.min(1, intmax) })!]
    }),
  )
}
