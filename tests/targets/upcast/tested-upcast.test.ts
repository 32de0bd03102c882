/** A model with bfloat16 under test: the reference, layers and targets all take it as float32. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { openCache } from '../../../src/cache/store.ts'
import { loadTensors } from '../../../src/files/tensor-file.ts'
import { resultsOf, subjectOf } from '../../../src/fixtures/case-fixtures.ts'
import { openModelSource } from '../../../src/fixtures/model-source.ts'
import type { Subject } from '../../../src/fixtures/subject.ts'
import { type Case, casesOf } from '../../../src/suite/cases.ts'
import { discoverModels } from '../../../src/suite/discover.ts'
import { resolveConfig } from '../../../src/suite/options.ts'
import { cpuTarget } from '../../../src/targets/ort-target.ts'
import { simTarget } from '../../../src/targets/sim-target.ts'
import { upcastTensor } from '../../../src/targets/upcast/upcast-tensor.ts'
import { tensorProtoBytes } from '../../../src/tensor/tensor-proto.ts'
import { elementCount, fromFloat64, type Tensor, toFloat64 } from '../../../src/tensor/tensor.ts'
import { buildModel, type ModelSpec, op } from '../../../testdata/onnx-builder.ts'
import { tempFolder } from '../../support/temp-model.ts'
import { run } from '../sim/simulate.ts'

type Float = 'bfloat16' | 'float32'

function values(dtype: Float, shape: readonly number[], seed: number): Tensor {
  const numbers = Float64Array.from({ length: elementCount(shape) }, (_, at) => Math.sin(at * 7.3 + seed))
  const narrow = fromFloat64('bfloat16', shape, numbers)
  return dtype === 'bfloat16' ? narrow : upcastTensor(narrow)
}

/** "w" is large enough to stay in the model's file, where parts refer to it. */
const block = (dtype: Float): ModelSpec => ({
  nodes: [
    op('MatMul', ['x', 'w'], ['m']),
    op('Greater', ['limit', 'least'], ['condition']),
    op('If', ['condition'], ['y'], {
      then_branch: {
        graph: {
          nodes: [op('Mul', ['m', 'inner'], ['t'])],
          outputs: { t: [dtype, [2, 32]] },
          initializers: { inner: values(dtype, [32], 2) },
        },
      },
      else_branch: {
        graph: { nodes: [op('Add', ['m', 'inner2'], ['e'])], outputs: { e: [dtype, [2, 32]] } },
      },
    }),
  ],
  inputs: { x: [dtype, [2, 32]], limit: [dtype, []] },
  outputs: { y: [dtype, [2, 32]] },
  initializers: {
    w: values(dtype, [32, 32], 1),
    least: values(dtype, [], 4),
    inner2: values(dtype, [32], 3),
  },
})

interface Opened {
  readonly cases: readonly Case[]
  subject(one: Case): Promise<Subject>
  results(one: Case): Promise<ReadonlyMap<string, Tensor>>
}

function open(files: Readonly<Record<string, Uint8Array>>): Opened {
  const root = tempFolder()
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, 'testdata/m', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  }
  const config = resolveConfig({ targets: ['cpu', 'sim'] }, root, {})
  const [model] = discoverModels(config.testdata)
  const source = openModelSource(model!, config)
  const cache = openCache({ folder: config.cacheDir })
  const subject = (one: Case): Promise<Subject> => subjectOf(source, one, cache)
  return {
    cases: casesOf(model!, config).cases,
    subject,
    async results(one) {
      const target = one.target === 'cpu' ? cpuTarget : simTarget
      const chip = one.target === 'cpu' ? { name: 'default' } : { name: 'default', storage: 'float32' }
      const settings = { target, chip, timeouts: { compile: 20, run: 20 } }
      return loadTensors(await resultsOf(await subject(one), one.name, settings, cache))
    },
  }
}

test('every layer and the whole run on cpu and sim, and give what the reference gives', async () => {
  const { cases, subject, results } = open({ 'block.onnx': buildModel(block('bfloat16')) })
  expect(cases.map(({ part }) => part)).toContain('block_layer_If_2_then_Mul_0')
  for (const one of cases) {
    const expected = loadTensors((await subject(one)).reference)
    const actual = await results(one)
    expect([...actual.keys()], one.name).toEqual([...expected.keys()])
    for (const [name, value] of expected) {
      expect(value.dtype, `${one.name} ${name}`).not.toBe('bfloat16')
      const [a, e] = [toFloat64(actual.get(name)!), toFloat64(value)]
      for (const [at, number] of e.entries()) expect(a[at]).toBeCloseTo(number, 4)
    }
  }
})

test('the reference is that of the model in float32, on inputs that bfloat16 has', async () => {
  const { cases, subject } = open({ 'block.onnx': buildModel(block('bfloat16')) })
  const { inputs, reference } = await subject(cases.find(({ kind }) => kind === 'full')!)
  const feeds = loadTensors(inputs)
  for (const [, value] of feeds) {
    expect(value.dtype).toBe('float32')
    const narrow = fromFloat64('bfloat16', value.shape, toFloat64(value))
    expect(upcastTensor(narrow)).toEqual(value)
  }
  expect(loadTensors(reference)).toEqual(await run(buildModel(block('float32')), feeds))
})

test('recorded data is up-cast with the model, and the model runs on it', async () => {
  const x = values('bfloat16', [2, 32], 5)
  const { cases, subject, results } = open({
    'model.onnx': buildModel(block('bfloat16')),
    'test_data_set_0/input_0.pb': tensorProtoBytes('x', x),
    'test_data_set_0/input_1.pb': tensorProtoBytes('limit', values('bfloat16', [], 6)),
    'test_data_set_0/output_0.pb': tensorProtoBytes('y', x),
  })
  const one = cases.find(({ kind }) => kind === 'data-set')!
  const { inputs, reference } = await subject(one)
  expect([...inputs.values(), ...reference.values()].map(({ dtype }) => dtype)).toEqual(
    Array(3).fill('float32'),
  )
  expect(loadTensors(reference).get('y')).toEqual(upcastTensor(x))
  const feeds = loadTensors(inputs)
  expect(await results(one)).toEqual(await run(buildModel(block('float32')), feeds))
})
