import { expect, test } from 'vitest'
import { inlineWeights } from '../../src/targets/inline-weights.ts'
import { contractModels } from '../contracts/contract-models.ts'
import onnxProto from 'onnx-proto'

const { onnx } = onnxProto
const EXTERNAL = contractModels().find(({ name }) => name === 'external weights')!
const RANGES = async (): Promise<object> => ({})

test('weights that lie outside come inside', () => {
  const inside = onnx.ModelProto.decode(inlineWeights({ ...EXTERNAL, ranges: RANGES as never }))
  const sizes = inside.graph!.initializer!.map(({ externalData, rawData }) => [
    externalData?.length ?? 0,
    rawData?.length,
  ])
  expect(sizes).toEqual([
    [0, 64 * 64 * 4],
    [0, 64 * 4],
  ])
})

test.for(['../weights-0.bin', '/etc/hostname', 'a/../../b'])('%s is outside and not read', (location) => {
  const model = onnx.ModelProto.decode(EXTERNAL.bytes)
  model.graph!.initializer![0]!.externalData![0]!.value = location
  const bytes = onnx.ModelProto.encode(model).finish()
  expect(() => inlineWeights({ ...EXTERNAL, bytes, ranges: RANGES as never })).toThrow(
    expect.objectContaining({ code: 'EXTERNAL_DATA_OUTSIDE' }),
  )
})
