/** The plugin as a user has it: one line of config, models in testdata, and a real Vitest. */
import { describe, expect, test } from 'vitest'
import { chain, project, resultsIn } from './plugin-project.ts'

const OUTPUT = '.vitest-onnx/tests'

const MODELS = {
  'testdata/onnx_models/example.onnx': chain('Relu', 'Sigmoid'),
  'testdata/onnx_models/disabled.onnx': chain(),
  'testdata/plain.onnx': chain(),
}

const RESULTS = {
  'example_layer_Relu_0-sim-default': 'passed',
  'example_layer_Sigmoid_1-sim-default': 'failed',
  'example_full_model-sim-default': 'passed',
  'plain_layer_Relu_0-sim-default': 'passed',
  'plain_full_model-sim-default': 'passed',
}

const NAMES = Object.keys(RESULTS).toSorted()

describe.concurrent('plugin', () => {
  test('every layer and every model is a test of its own', async () => {
    const p = project(MODELS)
    const run = await p.vitest('run', '--reporter=default', '--reporter=json', '--outputFile=report.json')
    expect(run.exitCode).toBe(1)
    expect(resultsIn(p.read('report.json'))).toEqual(RESULTS)
    expect(run.stdout).toContain('Tests  1 failed | 4 passed (5)')
    expect(run.stderr).not.toMatch(/no test|warn|vitest-onnx:/i)
    expect(p.files(OUTPUT)).toEqual(['onnx_models/example.onnx.test.ts', 'plain.onnx.test.ts'])
  })

  test('tests are listed, by running the files and by parsing them', async () => {
    const p = project(MODELS)
    for (const args of [['list'], ['list', '--static-parse'], ['list', '--no-static-parse']]) {
      const { stdout, stderr } = await p.vitest(...args)
      // Each version of Vitest has one of the two flags.
      if (/Unknown option/.test(stderr)) continue
      const names = stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' > ').at(-1))
      expect(names.toSorted(), args.join(' ')).toEqual(NAMES)
    }
  })

  test('a path in testdata without a model says so', async () => {
    const p = project({ 'testdata/m.onnx': chain() })
    const { exitCode, stderr } = await p.vitest('run', 'testdata/n.onnx')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('vitest-onnx: no model has tests at testdata/n.onnx; `vitest list` shows')
    expect((await p.vitest('run', 'testdata/m.onnx')).stderr).not.toContain('no model')
  })

  test('tests are chosen by name, path, model file and tag', async () => {
    const p = project(MODELS)
    const ran = async (...args: string[]): Promise<string[]> =>
      Object.entries(await p.results(...args))
        .filter(([, status]) => status === 'passed' || status === 'failed')
        .map(([name]) => name)
    expect(await ran('-t', 'plain_layer_Relu_0-sim-default')).toEqual(['plain_layer_Relu_0-sim-default'])
    expect(await ran('example.onnx')).toHaveLength(3)
    expect(await ran('testdata/plain.onnx')).toHaveLength(2)
    expect(await ran('testdata/onnx_models/')).toHaveLength(3)
    expect(await ran('--tags-filter=layer && op/Sigmoid')).toEqual(['example_layer_Sigmoid_1-sim-default'])
    expect(await ran('--tags-filter=full && target/sim && chip/default')).toHaveLength(2)
  })

  test('shards share the tests, and their reports join', async () => {
    const p = project(MODELS)
    for (const shard of ['1/2', '2/2']) {
      const run = await p.vitest(
        'run',
        `--shard=${shard}`,
        '--reporter=blob',
        `--outputFile=blobs/${shard[0]}.json`,
      )
      expect(run.stderr).not.toContain('Startup Error')
    }
    const joined = await p.vitest(
      '--merge-reports=blobs',
      '--reporter=default',
      '--reporter=json',
      '--outputFile.json=all.json',
    )
    expect(joined.stdout).toContain('Tests  1 failed | 4 passed (5)')
    expect(resultsIn(p.read('all.json'))).toEqual(RESULTS)
  })

  test('junit names every test', async () => {
    const p = project(MODELS)
    await p.vitest('run', '--reporter=junit', '--outputFile=junit.xml')
    const junit = p.read('junit.xml')
    for (const name of NAMES) expect(junit).toContain(`name="${name}"`)
    expect(junit).toContain('FAIL: outputs differ')
  })

  test('other tests keep their settings and their place for snapshots', async () => {
    const p = project(MODELS, { options: '{ maxTestsPerFile: 1 }' })
    p.write('testdata/with_snapshot.onnx', p.bytes('testdata/plain.onnx'))
    p.write(
      'own.test.ts',
      `import { expect, inject, test } from 'vitest'
       test('own', () => {
         expect(inject('vitest-onnx:config' as never)).toBeUndefined()
         expect({ a: 1 }).toMatchSnapshot()
       })`,
    )
    const results = await p.results('--update')
    expect(results).toMatchObject({ ...RESULTS, own: 'passed' })
    expect(p.files('__snapshots__')).toEqual(['own.test.ts.snap'])
    expect(p.files('testdata/__snapshots__')).toEqual(['with_snapshot.onnx.snap'])
    expect(p.files(OUTPUT).filter((file) => file.includes('snap.'))).toEqual([])
  })

  test('projects of the user run beside it, whatever their number of workers', async () => {
    const p = project(MODELS)
    p.write(
      'vitest.config.ts',
      p.read('vitest.config.ts').replace(
        'plugins:',
        `test: { projects: [
          { extends: true, test: { name: 'one', include: ['own.test.ts'], maxWorkers: 1 } },
          { test: { name: 'two', include: ['**/*.test.ts'] } },
        ] },
        plugins:`,
      ),
    )
    p.write('own.test.ts', `import { test } from 'vitest'\ntest('own', () => {})`)
    const run = await p.vitest('run')
    expect(run.stdout).toContain('Tests  1 failed | 6 passed (7)')
  })

  test('where there are no models it says where it looked', async () => {
    const p = project({}, { options: `{ testdata: 'models' }` })
    p.write('own.test.ts', `import { test } from 'vitest'\ntest('own', () => {})`)
    const run = await p.vitest('run')
    expect(run.exitCode).toBe(0)
    expect(run.stderr.trim()).toMatch(
      /^vitest-onnx: no models found: there is no \.onnx file in models \(.*\)$/,
    )
    const list = await p.vitest('list', '--json')
    expect(JSON.parse(list.stdout)).toHaveLength(1)
  })

  test('a wrong option stops the start with what is allowed', async () => {
    const p = project(MODELS, { options: `{ inputs: 'zeros' }` })
    const run = await p.vitest('run')
    expect(run.exitCode).toBe(1)
    expect(run.stderr).toContain('onnx({ inputs: "zeros" }): must be "activations" or "random"')
  })

  test('a wrong variable stops it too, and one that is misspelt is pointed out', async () => {
    const wrong = await project(MODELS, { env: { ONNX_TEST_SEED: 'x' } }).vitest('run')
    expect(wrong.stderr).toContain('ONNX_TEST_SEED=x: allowed is a whole number from 0 on')
    const misspelt = await project(MODELS, { env: { ONNX_TEST_TARGET: 'cpu' } }).vitest('list')
    expect(misspelt.stderr).toContain(
      'ONNX_TEST_TARGET is not known and has no effect; did you mean ONNX_TEST_TARGETS?',
    )
  })

  test('targets and chips of the environment give tests of their own', async () => {
    const p = project(
      { 'testdata/plain.onnx': chain() },
      { env: { ONNX_TEST_TARGETS: 'sim,cpu', ONNX_TEST_CHIPS: 'a' } },
    )
    expect(Object.keys(await p.results())).toEqual([
      'plain_layer_Relu_0-sim-a',
      'plain_layer_Relu_0-cpu-a',
      'plain_full_model-sim-a',
      'plain_full_model-cpu-a',
    ])
  })
})
