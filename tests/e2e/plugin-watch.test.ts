/** Watch mode, with a real Vitest that is left running while files change. */
import onnxProto from 'onnx-proto'
import { expect, test } from 'vitest'
import { buildModel } from '../../testdata/onnx-builder.ts'
import { chain, project } from './plugin-project.ts'

test('what depends on a file that changes runs again, and nothing else', async () => {
  const p = project({ 'testdata/a/first.onnx': chain(), 'testdata/b/second.onnx': chain('Relu', 'Tanh') })
  const watch = p.watch()
  expect(await watch.until(/Waiting for file changes/)).toContain('5 passed (5)')

  p.write('testdata/a/first.onnx', buildModel(chain('Abs', 'Neg', 'Relu')))
  const changed = await watch.until(/Waiting for file changes/)
  expect(changed).toContain('first_layer_Neg_1-sim-default')
  expect(changed).not.toContain('second_')

  p.write('testdata/a/third.onnx', buildModel(chain('Elu')))
  const added = await watch.until(/Waiting for file changes/)
  expect(added).toContain('third_layer_Elu_0-sim-default')
  expect(added).not.toContain('first_')

  for (const [path, content, runs, rests] of [
    ['testdata/b/second.test.yaml', 'seed: 7', 'second_', 'first_'],
    ['testdata/a/xfails.txt', 'first_full_model-sim-default', 'first_', 'second_'],
    ['testdata/b/thresholds.json', '{ "rules": [] }', 'second_', 'first_'],
    ['testdata/a/chips/default.json', '{}', 'first_', 'second_'],
  ] as const) {
    p.write(path, content)
    const again = await watch.until(/Waiting for file changes/)
    expect(again, path).toContain(runs)
    expect(again, path).not.toContain(rests)
  }

  p.remove('testdata/a/third.onnx')
  await expect
    .poll(() => p.files('.vitest-onnx/tests'), { timeout: 5000 })
    .toEqual(['a/first.onnx.test.ts', 'b/second.onnx.test.ts'])
  p.write('testdata/a/first.onnx', buildModel(chain('Sigmoid')))
  const last = await watch.until(/Waiting for file changes|Tests failed/)
  expect(last).toContain('first_layer_Sigmoid_0-sim-default')
  expect(last).not.toContain('third_')
  await watch.stop()
})

test('weights and inputs count wherever they are', async () => {
  const p = project({ 'testdata/plain.onnx': chain(), 'testdata/fed.onnx': chain() })
  p.write('testdata/weighty.onnx', withWeightsIn('weights/w'))
  p.write('testdata/weights/w', new Uint8Array(24))
  p.write('testdata/in/x.npy', 'before')
  p.write('shared/x.npy', 'before')
  p.write('testdata/fed.test.yaml', 'inputs: { x: { file: in/x.npy } }')
  const watch = p.watch()
  await watch.until(/Waiting for file changes/)

  const runs = async (path: string, content: string | Uint8Array): Promise<string[]> => {
    p.write(path, content)
    const text = await watch.until(/Waiting for file changes/)
    return [...text.matchAll(/(\w+)_full_model/g)].map(([, name]) => name!)
  }
  expect(await runs('testdata/weights/w', new Uint8Array(24).fill(1))).toEqual(['weighty'])
  expect(await runs('testdata/in/x.npy', 'after')).toEqual(['fed'])
  expect(await runs('testdata/fed.test.yaml', 'inputs: { x: { file: ../shared/x.npy } }')).toEqual(['fed'])
  expect(await runs('shared/x.npy', 'after')).toEqual(['fed'])
  await watch.stop()
})

function withWeightsIn(location: string): Uint8Array {
  const model = onnxProto.onnx.ModelProto.decode(
    buildModel({ ...chain(), nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }] }),
  )
  const externalData = [{ key: 'location', value: location }]
  model.graph!.initializer = [{ name: 'w', dims: [2, 3], dataType: 1, dataLocation: 1, externalData }]
  return onnxProto.onnx.ModelProto.encode(model).finish()
}
