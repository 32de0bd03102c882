import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { casesOf } from '../../src/suite/cases.ts'
import { discoverModels } from '../../src/suite/discover.ts'
import { type OnnxOptions, resolveConfig } from '../../src/suite/options.ts'
import { isOfOtherRun, type TestedModel } from '../../src/vitest/other-run.ts'
import { buildModel } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

/** A model `net` with the dimensions `batch` and `seq len`, a chip file and a target of the user's. */
function net(options: OnnxOptions = {}, env: NodeJS.ProcessEnv = {}): TestedModel {
  const root = tempFolder()
  mkdirSync(join(root, 'testdata/chips'), { recursive: true })
  const shape = ['batch', 'seq len']
  writeFileSync(
    join(root, 'testdata/net.onnx'),
    buildModel({
      nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }],
      inputs: { x: ['float32', shape] },
      outputs: { y: ['float32', shape] },
    }),
  )
  writeFileSync(join(root, 'testdata/chips/my-chip.json'), '{}')
  writeFileSync(
    join(root, 'mine.mjs'),
    `export default { name: 'mine', version: () => '1', compile() {}, load() {}, chips: [{ name: 'm1' }] }`,
  )
  const config = resolveConfig(options, root, env)
  const [discovered] = discoverModels(config.testdata)
  return {
    config,
    discovered: discovered!,
    cases: casesOf(discovered!, config).cases,
    symbols: () => ['batch', 'seq len'],
  }
}

describe('another run has the test', () => {
  test.each([
    ['on a chip of the target', 'net_full_model-sim-int8'],
    ['on a chip with a file', 'net_full_model-sim-my-chip'],
    ['on a target that is built in', 'net_full_model-cpu-default'],
    ['on a provider', 'net_full_model-cuda-default'],
    ['on a target that this run does not know', 'net_full_model-theirs-t1'],
    ['with sizes', 'net_full_model@batch=4,seq_len=16-sim-default'],
    ['with one size, on another chip', 'net_full_model@seq_len=16-sim-my-chip'],
  ])('%s', async (_, name) => {
    expect(await isOfOtherRun(name, net())).toBe(true)
  })

  test('without the sizes of this run', async () => {
    const sized = net({}, { ONNX_TEST_SHAPES: 'batch=4' })
    expect(await isOfOtherRun('net_full_model-sim-default', sized)).toBe(true)
    expect(await isOfOtherRun('net_full_model@batch=4-sim-default', sized)).toBe(false)
  })

  test('on a chip of the own target', async () => {
    const own = net({ targets: ['./mine.mjs'] })
    expect(await isOfOtherRun('net_full_model-mine-m1', own)).toBe(true)
    expect(await isOfOtherRun('net_full_model-mine-m2', own)).toBe(false)
  })

  test('where this one leaves out whole models', async () => {
    const layersOnly = net({}, { ONNX_TEST_FULL_MODEL: '0' })
    expect(await isOfOtherRun('net_full_model-sim-default', layersOnly)).toBe(true)
  })
})

describe('no other run has the test', () => {
  test.each([
    ['of this one', 'net_full_model-sim-default'],
    ['of another model', 'old_full_model-sim-int8'],
    ['of a model whose name goes on', 'net2_full_model-sim-int8'],
    ['of a layer', 'net_layer_Relu_0-sim-int8'],
    ['without a chip', 'net_full_model-sim'],
    ['on a chip that the target lacks', 'net_full_model-sim-gone'],
    ['on a chip that a provider lacks', 'net_full_model-cuda-int8'],
    ['with a dimension that the model lacks', 'net_full_model@batch=4,n=1-sim-int8'],
  ])('%s', async (_, name) => {
    expect(await isOfOtherRun(name, net())).toBe(false)
  })

  test('where models are never tested as a whole', async () => {
    expect(await isOfOtherRun('net_full_model-sim-int8', net({ fullModel: false }))).toBe(false)
  })

  test('of a model that has data sets', async () => {
    const model = net({}, { ONNX_TEST_FULL_MODEL: '0' })
    const discovered = { ...model.discovered, dataSets: ['test_data_set_0'] }
    expect(await isOfOtherRun('net_full_model-sim-int8', { ...model, discovered })).toBe(false)
  })
})
