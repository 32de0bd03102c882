/** Which models run when a path, a part of a name or a project is asked for. */
import { describe, expect, test } from 'vitest'
import { chain, project } from './plugin-project.ts'

const MODELS = {
  'testdata/ab.onnx': chain(),
  'testdata/a/bertish.onnx': chain(),
  'testdata/b/scan.onnx': chain(),
  'testdata/b/scan.onnx.onnx': chain(),
  'testdata/b/odd#1/s.onnx': chain(),
  'testdata/xb/scan.onnx': chain(),
}

const ALL = ['ab', 'b-scan', 'bertish', 's', 'scan.onnx', 'xb-scan']

describe.concurrent('filters', () => {
  test.each<[string, string[], string[]]>([
    ['nothing', [], ALL],
    ['a folder', ['testdata/b'], ['b-scan', 's', 'scan.onnx']],
    ['a folder with a slash', ['testdata/b/'], ['b-scan', 's', 'scan.onnx']],
    ['a folder with odd characters', ['testdata/b/odd#1'], ['s']],
    ['a file', ['testdata/b/scan.onnx'], ['b-scan']],
    ['a file, as shells write it', ['./testdata/b/scan.onnx'], ['b-scan']],
    ['several', ['testdata/b/scan.onnx', 'testdata/a', 'xb'], ['b-scan', 'bertish', 'xb-scan']],
    ['all models', ['testdata'], ALL],
    ['the beginning of a path', ['testdata/b/sc'], ['b-scan', 'scan.onnx']],
    ['a part of a path', ['scan.onnx'], ['b-scan', 'scan.onnx', 'xb-scan']],
    ['a part of a name', ['bert'], ['bertish']],
  ])('%s', async (_, filters, models) => {
    const p = project(MODELS, { options: '{ layers: false }' })
    const { stdout } = await p.vitest('list', ...filters)
    const names = [...stdout.matchAll(/> (\S+)_full_model-/g)].map(([, name]) => name!)
    expect(names.toSorted()).toEqual(models)
  })

  test('models alone, and all but the models', async () => {
    const p = project(MODELS)
    p.write('own.test.ts', `import { test } from 'vitest'\ntest('own', () => {})`)
    const models = await p.results('testdata')
    expect(Object.keys(models)).toHaveLength(12)
    expect(await p.results('--project=!onnx')).toEqual({ own: 'passed' })
  })

  test('a run without any test says why', async () => {
    const p = project(
      { 'testdata/m.onnx': chain() },
      { env: { ONNX_TEST_FULL_MODEL: '0', ONNX_TEST_LAYERS: '0' } },
    )
    const { stderr, stdout } = await p.vitest('run')
    expect(stderr).toContain('vitest-onnx: no tests are left: there are none of m.onnx (')
    expect(stdout + stderr).not.toContain('No test suite found')
  })
})
