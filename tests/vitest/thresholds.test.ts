import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { openModelSource } from '../../src/fixtures/model-source.ts'
import { casesOf } from '../../src/suite/cases.ts'
import { discoverModels } from '../../src/suite/discover.ts'
import { resolveConfig } from '../../src/suite/options.ts'
import { tensor } from '../../src/tensor/tensor.ts'
import { thresholdsOf } from '../../src/vitest/thresholds.ts'
import { buildModel } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

const SHAPE = ['batch', 1, 4, 4]

/** Conv and Clip, which are one layer by default, and Exp. */
const MODEL = buildModel({
  nodes: [
    { op: 'Conv', inputs: ['x', 'w'], outputs: ['a'] },
    { op: 'Clip', inputs: ['a', 'low'], outputs: ['b'] },
    { op: 'Exp', inputs: ['b'], outputs: ['y'] },
  ],
  inputs: { x: ['float32', SHAPE] },
  outputs: { y: ['float32', SHAPE] },
  initializers: {
    w: tensor('float32', [1, 1, 1, 1], Float32Array.of(2)),
    low: tensor('float32', [], Float32Array.of(0)),
  },
})

const OUTPUT = tensor('float32', [1], Float32Array.of(1))

/** Who set the tolerance of each case of the model `net`. */
function origins(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const root = tempFolder()
  for (const [path, content] of Object.entries({ 'testdata/net.onnx': MODEL, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  const config = resolveConfig({}, root, env)
  const [model] = discoverModels(config.testdata)
  const source = openModelSource(model!, config)
  try {
    return Object.fromEntries(
      casesOf(model!, config).cases.map((one) => [
        one.name,
        thresholdsOf(source, one).resolve(OUTPUT).origin,
      ]),
    )
  } finally {
    source.file.close()
  }
}

const rules = (...written: readonly object[]): string =>
  JSON.stringify({ rules: written.map((rule) => ({ tolerance: 0.5, ...rule })) })

test('a rule for an operator reaches the layers that have it, groups included, and nothing else', () => {
  for (const op of ['Conv', 'Clip']) {
    expect(origins({ 'testdata/thresholds.json': rules({ op }) })).toEqual({
      'net_layer_Conv_0-sim-default': `testdata/thresholds.json: op ${op}`,
      'net_layer_Exp_1-sim-default': 'the default',
      'net_full_model-sim-default': 'the default',
    })
  }
})

test('a rule for a layer goes by the name of the test without sizes, target and chip', () => {
  const table = rules({ layer: '*_full_model' }, { layer: 'net_layer_Exp_1' })
  expect(origins({ 'testdata/thresholds.json': table }, { ONNX_TEST_SHAPES: 'batch=2' })).toEqual({
    'net_layer_Conv_0@batch=2-sim-default': 'the default',
    'net_layer_Exp_1@batch=2-sim-default': 'testdata/thresholds.json: layer net_layer_Exp_1',
    'net_full_model@batch=2-sim-default': 'testdata/thresholds.json: layer *_full_model',
  })
})

test('a rule for a layer can name a data set', () => {
  const files = {
    'testdata/test_data_set_0/input_0.pb': '',
    'testdata/test_data_set_1/input_0.pb': '',
    'testdata/thresholds.json': rules({ layer: '*_data_set_1' }),
  }
  const found = Object.entries(origins(files)).filter(([name]) => name.includes('data_set'))
  expect(found.map(([, origin]) => origin)).toEqual([
    'the default for recorded data',
    'testdata/thresholds.json: layer *_data_set_1',
  ])
})

test('the environment counts first, then the sidecar, then the table', () => {
  const files = {
    'testdata/thresholds.json': rules({}),
    'testdata/net.test.yaml': 'tolerances: [{ op: Exp, tolerance: exact }]',
    'ci.json': rules({ target: 'sim', dtype: 'float32' }),
    'conv.json': rules({ op: 'Conv' }),
  }
  const [sidecar, table] = ['testdata/net.test.yaml: op Exp', 'testdata/thresholds.json: every case']
  const ci = 'ci.json: every case on sim in float32'
  const given = (env: Readonly<Record<string, string>>): string[] => Object.values(origins(files, env))
  expect(given({})).toEqual([table, sidecar, table])
  expect(given({ ONNX_TEST_THRESHOLDS: 'ci.json' })).toEqual([ci, ci, ci])
  expect(given({ ONNX_TEST_THRESHOLDS: 'conv.json' })).toEqual(['conv.json: op Conv', sidecar, 'the default'])
  expect(given({ ONNX_TEST_THRESHOLDS: 'ci.json', ONNX_TEST_TOLERANCE: 'fp16' })).toEqual(
    Array(3).fill('ONNX_TEST_TOLERANCE'),
  )
})
