/** What reports say of a test beyond its status, and what is kept of a failure that is gone. */
import { afterAll, describe, expect, test } from 'vitest'
import { onnxFromDtype } from '../../src/tensor/dtype.ts'
import { buildModel, op } from '../../testdata/onnx-builder.ts'
import { removeProjects, runtimeProject } from './support-runtime.ts'

afterAll(removeProjects)

/** One output can be fetched, the other cannot. */
const HALF = buildModel({
  opset: 21,
  ir: 10,
  nodes: [op('Relu', ['x'], ['r']), op('Cast', ['r'], ['y'], { to: onnxFromDtype('int4') })],
  inputs: { x: ['float32', [4]] },
  outputs: { r: ['float32', [4]], y: ['int4', [4]] },
})

function isFirst(file: string): boolean {
  return file.includes('conv-net_layer_Conv_0-sim-float16')
}

describe.concurrent('reports', () => {
  test('a pass names the outputs that were not compared', async () => {
    const { statuses, junit } = await runtimeProject([['half', HALF]]).run()
    expect(statuses['half_full_model-sim-default']).toBe('passed')
    expect(junit).toContain('not compared: &quot;y&quot; (int4[4])')
  })

  test('why a test was skipped, and that a known failure passed', async () => {
    const p = runtimeProject(['example-matmul'])
    p.write('testdata/xfails.txt', 'example-matmul_layer_Add_1-sim-default owner/repo#7\n')
    const name = 'example-matmul_layer_Add_1-sim-default'
    expect((await p.run()).tests[name]!.meta).toMatchObject({ onnx: { skipped: 'xfail: owner/repo#7' } })
    const tried = await p.run([], { ONNX_TEST_TRY_XFAILS: '1' })
    expect(tried.tests[name]!.meta).toMatchObject({ onnx: { isUnexpectedPass: true } })
  })

  test('a failure is kept until the test passes', async () => {
    const p = runtimeProject(['conv-net'])
    const kept = (): string[] => p.files('.vitest-onnx/failures').filter((file) => file.endsWith('case.json'))
    await p.run([], { ONNX_TEST_CHIPS: 'float16' })
    expect(kept().some(isFirst)).toBe(true)
    // Others of the model stay as they are.
    await p.run(['-t', 'Conv_0'], { ONNX_TEST_CHIPS: 'float16', ONNX_TEST_TOLERANCE: '1' })
    expect(kept().some(isFirst)).toBe(false)
    expect(kept().length).toBeGreaterThan(0)
  })

  test('a model under another name finds its results', async () => {
    const p = runtimeProject(['conv-net'], `{ targets: ['cpu'] }`)
    await p.run()
    const before = p.files('node_modules/.cache/vitest-onnx')
    const notes = p.read('node_modules/.cache/vitest-onnx/.notes')
    p.write('testdata/other/renamed.onnx', p.bytes('testdata/onnx_models/conv-net.onnx'))
    const { statuses } = await p.run(['renamed.onnx'])
    expect(Object.values(statuses)).not.toContain('failed')
    expect(p.files('node_modules/.cache/vitest-onnx').filter((file) => !file.includes('.hashes'))).toEqual(
      before.filter((file) => !file.includes('.hashes')),
    )
    expect(p.read('node_modules/.cache/vitest-onnx/.notes')).toBe(notes)
  })
})
