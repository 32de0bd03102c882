import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { openModel } from '../../src/files/model-file.ts'
import { isWeight } from '../../src/graph/resolve.ts'
import { defaultRng, tweakedRandom } from '../../src/tensor/random.ts'
import { elementCount, fromFloat64, type Tensor, toFloat64 } from '../../src/tensor/tensor.ts'
import { dtypeFromOnnx } from '../../src/tensor/dtype.ts'
import { plainTensor } from '../../src/targets/plain-inputs.ts'
import { randomGraph } from '../support/random-graph.ts'
import { hasShared, type SharedModel, sharedModels } from '../support/shared.ts'
import { tempModel } from '../support/temp-model.ts'
import {
  differences,
  runBytes,
  runParts,
  type SplitModel,
  splitFile,
  type Tensors,
} from '../support/composition.ts'

const FLOAT16 = 10

describe.skipIf(!hasShared)('the parts of a real model compose to it', () => {
  const models = sharedModels().filter(({ runsOnOrtCpu }) => runsOnOrtCpu)

  test.each(models)('$file', { timeout: 60_000 }, async (model) => {
    const split = await splitFile(openModel(model.path))
    const feeds = feedsFor(model, split)
    const [whole, parts] = [await runBytes(model.path, feeds), await runParts(split, feeds)]
    if (computesInFloat16(split)) expectClose(whole, parts)
    else expect(differences(whole, parts)).toEqual([])
  })
})

test('the parts of a random graph compose to it', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(randomGraph, async ({ spec, feeds }) => {
      const file = tempModel(spec)
      const whole = await runBytes(file.path, feeds)
      expect(differences(whole, await runParts(await splitFile(file), feeds))).toEqual([])
    }),
    { numRuns: 60 },
  )
})

/**
 * onnxruntime's CPU provider lacks most float16 kernels. It computes those nodes in float32, and
 * inside one session it drops the rounding between two such nodes; between sessions it cannot.
 */
function computesInFloat16({ graph, types }: SplitModel): boolean {
  return graph.values.some((value) => {
    const type = types.get(value)
    const isComputed = value.origin.kind === 'node' && !isWeight(value)
    return isComputed && type?.kind === 'tensor' && type.dataType === FLOAT16
  })
}

function expectClose(whole: Tensors, parts: Tensors): void {
  for (const [name, expected] of whole) {
    const [a, b] = [toFloat64(expected), toFloat64(parts.get(name)!)]
    const scale = Math.max(...a.map(Math.abs))
    expect(Math.max(...a.map((value, at) => Math.abs(value - b[at]!)))).toBeLessThan(0.01 * scale)
  }
}

function feedsFor(
  { shapes, values, intmax = 1 }: SharedModel,
  { graph, types }: SplitModel,
): Map<string, Tensor> {
  const rng = defaultRng(1234)
  return new Map(
    graph.inputs.map(({ written: name }, at) => {
      const type = types.get(graph.inputs[at]!)
      if (type?.kind !== 'tensor') throw new Error(`${name} is no tensor`)
      const shape = shapes[name] ?? (type.shape ?? []).map((dim) => (typeof dim === 'number' ? dim : 1))
      const dtype = dtypeFromOnnx(type.dataType)!
      const fixed = values[name]
      if (fixed !== undefined && dtype !== 'string')
        return [name, fromFloat64(dtype, shape, Float64Array.from(fixed))]
      const isFloat = dtype.startsWith('float') && elementCount(shape) > 0
      if (isFloat) return [name, tweakedRandom(rng, dtype, shape, { low: -1, high: 1 })]
      return [name, plainTensor({ ...type, shape }, { size: 1, integer: Math.min(1, intmax) })!]
    }),
  )
}
