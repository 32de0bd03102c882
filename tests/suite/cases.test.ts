import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { casesOf, type CasesOfModel } from '../../src/suite/cases.ts'
import { readChip } from '../../src/suite/chip-files.ts'
import { discoverModels } from '../../src/suite/discover.ts'
import { type OnnxOptions, type ResolvedConfig, resolveConfig } from '../../src/suite/options.ts'
import { readThresholds, thresholdFile } from '../../src/suite/threshold-files.ts'
import { buildModel, type ModelSpec } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

const TWO: ModelSpec = {
  nodes: [
    { op: 'Relu', inputs: ['x'], outputs: ['a'] },
    { op: 'Relu', inputs: ['a'], outputs: ['b'] },
    { op: 'Softmax', inputs: ['b'], outputs: ['y'] },
  ],
  inputs: { x: ['float32', ['batch', 3]] },
  outputs: { y: ['float32', ['batch', 3]] },
}

const ONE: ModelSpec = { ...TWO, nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }] }

const FIXED: ModelSpec = { ...ONE, inputs: { x: ['float32', [2, 3]] }, outputs: { y: ['float32', [2, 3]] } }

interface Setup extends OnnxOptions {
  readonly model?: ModelSpec
  readonly files?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
}

function setUp({ model = TWO, files = {}, env = {}, ...options }: Setup): {
  config: ResolvedConfig
  root: string
} {
  const root = tempFolder()
  const all = { 'testdata/a/m.onnx': buildModel(model), ...files }
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  return { root, config: resolveConfig(options, root, env) }
}

function cases(setup: Setup): CasesOfModel {
  const { config } = setUp(setup)
  return casesOf(discoverModels(config.testdata)[0]!, config)
}

const names = (setup: Setup): string[] => cases(setup).cases.map(({ name }) => name)

test('layers in graph order for every target and chip, then the model for each', () => {
  expect(names({ targets: ['sim', 'cpu'] })).toEqual([
    'm_layer_Relu_0-sim-default',
    'm_layer_Relu_1-sim-default',
    'm_layer_Softmax_2-sim-default',
    'm_layer_Relu_0-cpu-default',
    'm_layer_Relu_1-cpu-default',
    'm_layer_Softmax_2-cpu-default',
    'm_full_model-sim-default',
    'm_full_model-cpu-default',
  ])
})

test('a case says what it is', () => {
  expect(cases({ model: FIXED }).cases).toEqual([
    {
      name: 'm_layer_Relu_0-sim-default',
      kind: 'layer',
      part: 'm_layer_Relu_0',
      sizes: {},
      target: 'sim',
      chip: 'default',
      tags: ['layer', 'op/Relu', 'target/sim', 'chip/default'],
      opTypes: ['Relu'],
    },
    {
      name: 'm_full_model-sim-default',
      kind: 'full',
      sizes: {},
      target: 'sim',
      chip: 'default',
      tags: ['full', 'op/Relu', 'target/sim', 'chip/default'],
      opTypes: ['Relu'],
    },
  ])
})

test('layers or the model can be left out, and equal layers tested once', () => {
  expect(names({ layers: false })).toEqual(['m_full_model-sim-default'])
  expect(names({ model: ONE, env: { ONNX_TEST_FULL_MODEL: '0' } })).toEqual(['m_layer_Relu_0-sim-default'])
  const model = {
    ...TWO,
    valueInfos: { a: ['float32', ['batch', 3]], b: ['float32', ['batch', 3]] },
  } as const
  expect(names({ model, dedup: true })).toEqual([
    'm_layer_Relu_0-sim-default',
    'm_layer_Softmax_2-sim-default',
    'm_full_model-sim-default',
  ])
})

test('groups stay together', () => {
  expect(names({ groups: [['Relu', 'Softmax']] })).toEqual([
    'm_layer_Relu_0-sim-default',
    'm_layer_Relu_1-sim-default',
    'm_full_model-sim-default',
  ])
})

test('sizes that were set stand before the target', () => {
  expect(names({ model: ONE, env: { ONNX_TEST_SHAPES: 'batch=1,4' } })).toEqual([
    'm_layer_Relu_0@batch=1-sim-default',
    'm_layer_Relu_0@batch=4-sim-default',
    'm_full_model@batch=1-sim-default',
    'm_full_model@batch=4-sim-default',
  ])
})

describe('data sets', () => {
  const files = { 'testdata/a/test_data_set_0/input_0.pb': '', 'testdata/a/test_data_set_1/input_0.pb': '' }

  test('stand for the model as a whole, and for its only layer', () => {
    expect(names({ model: ONE, files })).toEqual(['m_data_set_0-sim-default', 'm_data_set_1-sim-default'])
    expect(cases({ model: ONE, files }).cases[1]).toMatchObject({ kind: 'data-set', dataSet: 1, sizes: {} })
  })

  test('do not stand for several layers', () => {
    expect(names({ files }).map((name) => name.split('-')[0])).toEqual([
      'm_layer_Relu_0',
      'm_layer_Relu_1',
      'm_layer_Softmax_2',
      'm_data_set_0',
      'm_data_set_1',
    ])
  })
})

describe('chips', () => {
  const files = {
    'testdata/chips/big.json': '{ "memory": 1 }',
    'testdata/a/chips/small.json': '{ "memory": 2 }',
    'testdata/chips/some.group': '# of interest\nbig\n\ndefault\n',
  }

  test.each([
    [['big'], ['big']],
    [['all'], ['default', 'big', 'small']],
    [['some.group'], ['big', 'default']],
    [
      ['big', 'some.group'],
      ['big', 'default'],
    ],
  ])('%j', (chips, expected) => {
    const all = cases({ model: ONE, layers: false, chips, files }).cases
    expect(all.map(({ chip }) => chip)).toEqual(expected)
  })

  test('their files are found from the model upwards', () => {
    const { config } = setUp({ files })
    const [model] = discoverModels(config.testdata)
    expect(readChip('big', model!, config)).toEqual({ memory: 1 })
    expect(readChip('small', model!, config)).toEqual({ memory: 2 })
    expect(readChip('default', model!, config)).toBeUndefined()
  })

  test.each([
    ['none.group', 'there is no group file "none.group"'],
    ['a b', '"a b" is no name of a chip'],
  ])('%s is a problem', (chip, message) => {
    expect(cases({ chips: [chip], files }).problem?.message).toContain(message)
  })
})

function variants(setup: Setup): string[] {
  return cases({ model: ONE, layers: false, ...setup }).cases.map(({ target, chip }) => `${target}-${chip}`)
}

describe('chips and several targets', () => {
  const targets = ['cpu', 'sim', 'wasm']

  test('a chip goes to the targets that bring it, and default to all', () => {
    expect(variants({ targets, chips: ['default', 'float16'] })).toEqual([
      'cpu-default',
      'sim-default',
      'sim-float16',
      'wasm-default',
    ])
  })

  test('a file goes to the targets whose settings it holds', () => {
    const files = {
      'testdata/chips/npu.json': '{ "storage": "float16", "unsupportedOps": [] }',
      'testdata/chips/two.json': '{ "threads": 2 }',
      'testdata/chips/plain.json': '{}',
      'testdata/chips/broken.json': '{',
    }
    expect(variants({ targets, chips: ['npu', 'two', 'plain', 'broken'], files }).join(' ')).toBe(
      'cpu-two cpu-plain cpu-broken sim-npu sim-plain sim-broken wasm-plain wasm-broken',
    )
  })

  test('targets that are not loaded yet get it, and a chip that nobody has goes to all', () => {
    expect(variants({ targets: ['cpu', 'sim', 'webgpu', './own.mjs'], chips: ['float16'] })).toEqual([
      'sim-float16',
      'webgpu-float16',
      'own-float16',
    ])
    expect(variants({ targets, chips: ['float61'] })).toEqual(['cpu-float61', 'sim-float61', 'wasm-float61'])
    expect(variants({ targets: ['cpu'], chips: ['float16'] })).toEqual(['cpu-float16'])
  })
})

const sidecar = (yaml: string): Setup => ({ model: ONE, files: { 'testdata/a/m.test.yaml': yaml } })

describe('sidecar', () => {
  test('its settings go before options and after the environment', () => {
    const setup = { ...sidecar('targets: [cpu]\nshapes: { batch: 2 }\nlayers: false'), targets: ['wasm'] }
    expect(names(setup)).toEqual(['m_full_model@batch=2-cpu-default'])
    expect(names({ ...setup, env: { ONNX_TEST_TARGETS: 'sim', ONNX_TEST_LAYERS: '1' } })).toEqual([
      'm_layer_Relu_0@batch=2-sim-default',
      'm_full_model@batch=2-sim-default',
    ])
  })

  test.each([
    ['shapes: { seq: 4 }', 'shapes.seq: the model has no dimension of that name'],
    ['shape: {}', 'shape: there is no such field'],
    ['inputs: { x: { range: [4, 1] } }', 'inputs.x.range: must have the smaller number first'],
    ['seed: [', 'is not YAML'],
    ['- a', 'must be fields with values'],
  ])('%s is the problem of its model', (yaml, message) => {
    const { cases: all, problem } = cases(sidecar(yaml))
    expect(all.map(({ name }) => name)).toEqual(['m_model'])
    expect(problem).toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining(message) })
  })

  test.each([
    ['skip: true', ['the sidecar says so', 'the sidecar says so']],
    ['skip: too slow', ['too slow', 'too slow']],
    ['skip: { "*_layer_*": not here }', ['not here', undefined]],
    ['{}', [undefined, undefined]],
  ])('%s', (yaml, reasons) => {
    expect(cases(sidecar(yaml)).cases.map(({ skip }) => skip)).toEqual(reasons)
  })
})

test('known failures come from the sidecar and from the lists of all folders upwards', () => {
  const { cases: all } = cases({
    files: {
      'testdata/a/m.test.yaml': 'xfails: [m_layer_Relu_0-sim-default o/r#1]',
      'testdata/a/xfails.txt': 'm_layer_Relu_1-sim-default o/r#2',
      'testdata/xfails.txt': 'm_full*',
      'xfails.txt': 'm_layer_Softmax_2-sim-default',
    },
  })
  expect(all.map(({ xfail }) => xfail?.issue ?? xfail?.from)).toEqual([
    'o/r#1',
    'o/r#2',
    undefined,
    'testdata/xfails.txt:1',
  ])
})

test('the nearest threshold table counts, or the one that is set', () => {
  const files = {
    'testdata/thresholds.json': '{ "rules": [] }',
    'testdata/a/thresholds.json': '{ "rules": [{ "tolerance": 0.5 }] }',
    'other.json': '{ "rules": [',
  }
  const { config, root } = setUp({ files })
  const [model] = discoverModels(config.testdata)
  expect(readThresholds(model!, config)).toMatchObject({
    file: 'testdata/a/thresholds.json',
    rules: [{ tolerance: { fpMaxTol: 0.5 } }],
  })
  const set = { ...config, thresholds: join(root, 'other.json') }
  expect(thresholdFile(model!, set)).toBe(join(root, 'other.json'))
  expect(() => readThresholds(model!, set)).toThrow('the file is not JSON')
})

test('a model that cannot be read is one case that will say why', () => {
  const { config } = setUp({ files: { 'testdata/0.onnx': 'not a model' } })
  const { cases: all, problem } = casesOf(discoverModels(config.testdata)[0]!, config)
  expect(all).toMatchObject([{ name: '0_model', kind: 'model', tags: ['model'] }])
  expect(problem?.message).toContain('0.onnx')
})

function broken(files: Readonly<Record<string, string>>): CasesOfModel['cases'][number] {
  const { config } = setUp({ files: { 'testdata/0.onnx': 'not a model', ...files } })
  return casesOf(discoverModels(config.testdata)[0]!, config).cases[0]!
}

describe('a model that cannot be read', () => {
  test('can be skipped by its sidecar and listed as a known failure', () => {
    expect(broken({ 'testdata/0.test.yaml': 'skip: not yet' })).toMatchObject({ skip: 'not yet' })
    expect(broken({ 'testdata/xfails.txt': '0_model o/r#1' })).toMatchObject({ xfail: { issue: 'o/r#1' } })
    expect(broken({ 'testdata/0.test.yaml': 'xfails: ["*_model"]' })).toMatchObject({
      xfail: { test: '*_model' },
    })
  })

  test('is skipped even where another list is at fault, and not where the sidecar is', () => {
    const files = { 'testdata/xfails.txt': 'a b c', 'testdata/0.test.yaml': 'skip: true' }
    expect(broken(files)).toMatchObject({ skip: 'the sidecar says so' })
    expect(broken({ 'testdata/0.test.yaml': 'skip: [' })).not.toHaveProperty('skip')
  })
})

test.each(['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty'])(
  'a dimension may be called %s',
  (symbol) => {
    const model: ModelSpec = {
      ...ONE,
      inputs: { x: ['float32', [symbol, 3]] },
      outputs: { y: ['float32', [symbol, 3]] },
    }
    expect(cases({ model })).toMatchObject({ cases: [{ sizes: {} }, { sizes: {} }] })
    expect(names({ model, layers: false, env: { ONNX_TEST_SHAPES: `${symbol}=4` } })).toEqual([
      `m_full_model@${symbol}=4-sim-default`,
    ])
  },
)

test('an unexpected error is the problem of its model', () => {
  const { config } = setUp({})
  const [model] = discoverModels(config.testdata)
  const { cases: all, problem } = casesOf(model!, { ...config, groups: null as never })
  expect(all.map(({ name }) => name)).toEqual(['m_model'])
  expect(problem?.message).toMatch(/m\.onnx: reading the model failed unexpectedly \(TypeError: /)
})
