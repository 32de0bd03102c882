/** What is wrong with a model or its settings is told once, whatever the results would be. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import onnxProto from 'onnx-proto'
import { buildModel, op } from '../../testdata/onnx-builder.ts'
import { removeProjects, runtimeProject, targetThat } from './support-runtime.ts'

afterAll(removeProjects)

const MATMUL = 'example-matmul_layer_MatMul_0-sim-default'
const ADD = 'example-matmul_layer_Add_1-sim-default'
const FULL = 'example-matmul_full_model-sim-default'
const TOLD_BY_FULL = { [MATMUL]: 'skipped', [ADD]: 'skipped', [FULL]: 'failed' }
const SIDECAR = 'testdata/onnx_models/example-matmul.test.yaml'

describe.concurrent('settings', () => {
  test.for([
    ['testdata/thresholds.json', '{ rules', {}, /thresholds\.json: the file is not JSON/],
    ['testdata/thresholds.json', '{ "rules": [{ "tolerance": "fp99" }] }', {}, /fp99/],
    [SIDECAR, 'tolerance: fp99', {}, /fp99/],
    [SIDECAR, 'inputs: { y: { range: [0, 1] } }', {}, /the model has no input "y"\nhint: It has "x"\./],
    [SIDECAR, '', { ONNX_TEST_THRESHOLDS: 'nofile.json' }, /nofile\.json: the file cannot be read/],
  ] as const)('%s with %s is seen though all results are equal', async ([file, text, env, message]) => {
    const p = runtimeProject(['example-matmul'])
    p.write(file, text)
    const { statuses, tests, stdout } = await p.run([], env)
    expect(statuses).toEqual(TOLD_BY_FULL)
    expect(tests[FULL]?.message).toMatch(message)
    expect(stdout).toContain(`[the settings of the model have an error: see ${FULL}]`)
  })

  test('where only layers run, the first of them tells', async () => {
    const p = runtimeProject(['example-matmul'])
    p.write('testdata/thresholds.json', '{')
    expect((await p.run(['-t', 'layer'])).statuses).toMatchObject({ [MATMUL]: 'failed', [ADD]: 'skipped' })
  })

  test('a range that the dtype does not have is refused', async () => {
    const p = runtimeProject(['example-matmul'])
    p.write(SIDECAR, 'inputs: { x: { range: [-1e39, 1e39] } }')
    const { statuses, tests } = await p.run()
    expect(statuses).toEqual(TOLD_BY_FULL)
    expect(tests[FULL]?.message).toMatch(
      /the range \[-1e\+39, 1e\+39\] of the input "x" is wider than float32/,
    )
  })

  test('inputs that do not fit name the file and the sidecar', async () => {
    const bytes = buildModel({
      nodes: [op('Reshape', ['x', 'shape'], ['y'])],
      inputs: { x: ['float32', [4]], shape: ['int64', [1]] },
      outputs: { y: ['float32', ['n']] },
    })
    const p = runtimeProject([['odd', bytes]])
    p.write('testdata/onnx_models/odd.test.yaml', 'inputs: { shape: { range: [7, 8] } }')
    const { tests } = await p.run()
    expect(tests['odd_full_model-sim-default']?.message).toMatch(
      /^ERROR: reference: .*odd\.onnx: onnxruntime cannot run the model: .*\n(.*\n)*hint: .*inputs: or sizes with shapes: in odd\.test\.yaml/,
    )
  })
})

describe.concurrent('files', () => {
  test('a cache that cannot be written is what layers say too', async () => {
    const p = runtimeProject(['example-matmul'])
    p.write('cache', 'a file')
    const { statuses, stdout } = await p.run([], { ONNX_TEST_CACHE_DIR: 'cache' })
    expect(statuses).toEqual(TOLD_BY_FULL)
    expect(stdout).toContain(`[the cache cannot be written: see ${FULL}]`)
  })

  test('missing external data is one ERROR, with the name of the tensor', async () => {
    const p = runtimeProject(['example-matmul'])
    const path = 'testdata/onnx_models/example-matmul.onnx'
    const model = onnxProto.onnx.ModelProto.decode(readFileSync(join(p.folder, path)))
    Object.assign(model.graph!.initializer![0]!, {
      rawData: new Uint8Array(),
      dataLocation: 1,
      externalData: [{ key: 'location', value: 'gone.bin' }],
    })
    writeFileSync(join(p.folder, path), onnxProto.onnx.ModelProto.encode(model).finish())
    const { statuses, tests } = await p.run()
    expect(statuses).toEqual(TOLD_BY_FULL)
    expect(tests[FULL]?.message).toContain('the data of "w" should be in "gone.bin", which cannot be read')
  })

  test('a model that onnxruntime refuses as it is is one ERROR in its words', async () => {
    const bytes = buildModel({
      nodes: [op('Relu', ['x'], ['a']), op('Exp', ['a'], ['y'])],
      inputs: { x: ['float32', [2]] },
      outputs: { y: ['float32', [2]] },
      valueInfos: { a: ['int64', [2]] },
    })
    const { statuses, tests } = await runtimeProject([['odd', bytes]]).run()
    expect(Object.values(statuses)).toEqual(['skipped', 'skipped', 'failed'])
    expect(tests['odd_full_model-sim-default']?.message).toMatch(
      /^ERROR: reference: onnxruntime cannot load the model: .*odd\.onnx failed:Type Error: Type \(tensor\(int64\)\)/,
    )
  })
})

function noise(attributes: Record<string, { float: number }>): Uint8Array {
  return buildModel({
    nodes: [op('RandomNormalLike', ['x'], ['n'], attributes), op('Add', ['x', 'n'], ['y'])],
    inputs: { x: ['float32', [8]] },
    outputs: { y: ['float32', [8]] },
  })
}

describe.concurrent('random numbers', () => {
  test('without a seed the layer is skipped, and of the model dtypes and shapes count, in every run', async () => {
    const p = runtimeProject([['noise', noise({})]])
    for (let run = 0; run < 2; run++) {
      const { statuses, stdout } = await p.run([], { ONNX_TEST_RECOMPUTE: '1' })
      expect(statuses).toEqual({
        'noise_layer_RandomNormalLike_0-sim-default': 'skipped',
        'noise_layer_Add_1-sim-default': 'passed',
        'noise_full_model-sim-default': 'passed',
      })
      expect(stdout).toContain('1  RandomNormalLike has no seed: its results differ from run to run')
    }
    expect(p.has('testdata/onnx_models/__snapshots__/noise.onnx.snap')).toBe(false)
  })

  test('another shape still fails', async () => {
    const p = runtimeProject([['noise', noise({})]], `{ targets: ['./mine.mjs'] }`)
    p.write(
      'mine.mjs',
      targetThat(`new Map([['y', { dtype: 'float32', shape: [9], data: new Float32Array(9) }]])`),
    )
    const { tests } = await p.run(['-t', 'full_model'])
    expect(tests['noise_full_model-mine-default']?.message).toMatch(/^FAIL: .*\n.*float32\[9\]/)
  })

  test('with a seed all of it is tested', async () => {
    const { statuses } = await runtimeProject([['noise', noise({ seed: { float: 5 } })]]).run()
    expect(new Set(Object.values(statuses))).toEqual(new Set(['passed']))
  })
})
