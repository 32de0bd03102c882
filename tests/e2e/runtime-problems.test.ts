/** Mistakes and odd models: what a user reads, and that it is gone once the cause is. */
import { afterAll, describe, expect, test } from 'vitest'
import { buildModel, op } from '../../testdata/onnx-builder.ts'
import { removeProjects, runtimeProject } from './support-runtime.ts'

afterAll(removeProjects)

const RELU = buildModel({
  nodes: [op('Relu', ['x'], ['y'])],
  inputs: { x: ['float32', [2, 3]] },
  outputs: { y: ['float32', [2, 3]] },
})

const PASSED = { 'm_layer_Relu_0-sim-default': 'passed', 'm_full_model-sim-default': 'passed' }

describe.concurrent('problems', () => {
  test('a mistake in a list is one ERROR, and is gone once it is corrected', async () => {
    const p = runtimeProject([['m', RELU]])
    expect((await p.run()).statuses).toEqual(PASSED)
    p.write('testdata/xfails.txt', 'a b c d')
    const wrong = await p.run()
    expect(wrong.statuses).toEqual({ m_model: 'failed' })
    expect(wrong.stderr).toContain('ERROR: testdata/xfails.txt:1 has 4 fields: a b c d\nhint: ')
    p.remove('testdata/xfails.txt')
    expect((await p.run()).statuses).toEqual(PASSED)
  })

  test('tests of files that are older than the mistake show its cause', async () => {
    const p = runtimeProject([['m', RELU]])
    const generated = '.vitest-onnx/tests/onnx_models/m.onnx.test.ts'
    await p.run()
    p.write('own/m.test.ts', p.read(generated).replaceAll(/\{ tags: .*? \}, /g, ''))
    p.write('testdata/xfails.txt', 'a b c d')
    p.write('vitest.config.ts', 'export default {}')
    const { tests } = await p.run(['own'])
    expect(Object.keys(tests)).toEqual(Object.keys(PASSED))
    for (const { message } of Object.values(tests)) expect(message).toContain('xfails.txt:1 has 4 fields')
  })

  test('a model that cannot be read is skipped where its sidecar or a list says so', async () => {
    const broken = Uint8Array.of(1, 2, 3, 4)
    const p = runtimeProject([
      ['a', broken],
      ['b', broken],
      ['c', broken],
    ])
    p.write('testdata/onnx_models/a.test.yaml', 'skip: not exported yet')
    p.write('testdata/xfails.txt', 'b_model owner/repo#7')
    const { statuses, screen } = await p.run()
    expect(statuses).toEqual({ a_model: 'skipped', b_model: 'skipped', c_model: 'failed' })
    expect(screen).toContain('1  not exported yet')
    expect(screen).toContain('1  xfail: owner/repo#7')
  })

  test('symbols may have the names of what every object has', async () => {
    const symbols = ['constructor', '__proto__', 'toString', 'valueOf']
    const p = runtimeProject(
      symbols.map((symbol) => [
        symbol,
        buildModel({
          nodes: [op('Relu', ['x'], ['y'])],
          inputs: { x: ['float32', [symbol, 3]] },
          outputs: { y: ['float32', [symbol, 3]] },
        }),
      ]),
    )
    const { code, stdout } = await p.run()
    expect([code, stdout]).toEqual([0, expect.stringContaining('Tests  8 passed (8)')])
  })

  test('models of one file name have tests and kept failures of their own', async () => {
    const p = runtimeProject([], `{ targets: ['./bad.mjs'], layers: false }`)
    p.write(
      'bad.mjs',
      `export default {
         name: 'bad', version: () => '1',
         compile: (model) => model.outputs,
         load: (outputs) => ({
           run: (inputs) => new Map(outputs.map((name) => {
             const [x] = inputs.values()
             return [name, { ...x, data: x.data.map(() => 77) }]
           })),
         }),
       }`,
    )
    for (const path of ['x/model', 'y/model', 'x/net', 'y/net']) p.write(`testdata/${path}.onnx`, RELU)
    const { statuses } = await p.run()
    const names = ['x', 'x-net', 'y', 'y-net'].map((name) => `${name}_full_model-bad-default`)
    expect(statuses).toEqual(Object.fromEntries(names.map((name) => [name, 'failed'])))
    expect(p.files('.vitest-onnx/failures').filter((file) => file.endsWith('case.json'))).toHaveLength(4)
    for (const name of names) expect((await p.cli('diff', name)).stdout).toContain('wrong: 6 of 6 elements')
  })

  test('a chip that only one of the targets has is tested there', async () => {
    const p = runtimeProject([['m', RELU]])
    p.write(
      'own.mjs',
      `export default { name: 'own', version: () => '1', compile: () => 0, load: () => ({ run: (x) => x }) }`,
    )
    const env = { ONNX_TEST_CHIPS: 'float32', ONNX_TEST_LAYERS: '0' }
    const both = await p.run([], { ...env, ONNX_TEST_TARGETS: 'sim,cpu,./own.mjs' })
    expect(both.statuses).toEqual({
      'm_full_model-sim-float32': 'passed',
      'm_full_model-own-float32': 'skipped',
    })
    expect(both.screen).toContain('1  the target own has no chip "float32"; other targets')
    const none = await p.run([], { ...env, ONNX_TEST_TARGETS: 'cpu,./own.mjs' })
    expect(none.tests['m_full_model-own-float32']?.message).toContain('the target own has no chip "float32"')
  })
})
