/** More than one `onnx()` in a run: each tests its own models, from the root of the project it stands in. */
import { describe, expect, test } from 'vitest'
import { chain, type Project, project, resultsIn } from './plugin-project.ts'

const TWO = ['a_full_model-sim-default', 'b_full_model-sim-default']

/** A project whose config file is the usual one with other text in place of its plugins. */
function configured(paths: readonly string[], text: string): Project {
  const p = project(Object.fromEntries(paths.map((path) => [path, chain()])))
  p.write('vitest.config.ts', withText(p, text))
  return p
}

function withText(p: Project, text: string): string {
  return p.read('vitest.config.ts').replace('plugins: [onnx()],', () => text)
}

const ONE = `onnx({ testdata: 'one/testdata', layers: false })`
const OTHER = `onnx({ testdata: 'other/testdata', layers: false })`
const PATHS = ['one/testdata/a.onnx', 'other/testdata/b.onnx']

/** Aliases of the root do not hold for projects that extend nothing. */
const ALIAS = `resolve: { alias: { 'vitest-onnx/runtime': new URL('./stub-runtime.ts', import.meta.url).pathname } }`
const PROJECTS = `test: { projects: [
  { ${ALIAS}, plugins: [${ONE}], test: { name: 'one', include: ['x'] } },
  { ${ALIAS}, plugins: [${OTHER}], test: { name: 'other', include: ['x'] } },
] },`

async function names(p: Project, ...filters: string[]): Promise<string[]> {
  const { stdout } = await p.vitest('list', ...filters)
  return [...stdout.matchAll(/> (\S+)$/gm)].map(([, name]) => name!).toSorted()
}

/** Packages with configs of their own, below a root that only lists them. */
function workspace(): Project {
  const p = project({ 'pkg/one/testdata/a.onnx': chain(), 'pkg/other/testdata/b.onnx': chain() })
  const own = withText(p, 'plugins: [onnx({ layers: false })],').replace('./stub', '../../stub')
  for (const name of ['one', 'other']) {
    p.write(`pkg/${name}/package.json`, `{ "name": "${name}", "type": "module" }`)
    p.write(`pkg/${name}/vitest.config.ts`, own)
    p.write(`pkg/${name}/own.test.ts`, `import { test } from 'vitest'\ntest('own of ${name}', () => {})`)
  }
  p.write('vitest.config.ts', withText(p, `test: { projects: ['pkg/*'] },`))
  return p
}

describe.concurrent('several plugins', () => {
  test('two in one config', async () => {
    const p = configured(PATHS, `plugins: [${ONE}, ${OTHER}],`)
    expect(await names(p)).toEqual(TWO)
    expect(p.files('.vitest-onnx')).toEqual(['tests-other-testdata/b.onnx.test.ts', 'tests/a.onnx.test.ts'])
  })

  test('one in each of two projects, which are chosen by path and by project', async () => {
    const p = configured(PATHS, PROJECTS)
    const run = await p.vitest('run', '--reporter=default', '--reporter=json', '--outputFile=report.json')
    expect(Object.keys(resultsIn(p.read('report.json'))).toSorted(), run.stderr).toEqual(TWO)
    expect(run.stdout).toMatch(/\bonnx\b.*a\.onnx/)
    expect(run.stdout).toMatch(/\bonnx-2\b.*b\.onnx/)
    expect(await names(p, 'one/testdata/a.onnx')).toEqual([TWO[0]])
    expect(await names(p, 'other/testdata')).toEqual([TWO[1]])
    expect(await names(p, '--project=!onnx')).toEqual([TWO[1]])
  })

  test('their times are in one table', async () => {
    const p = configured(PATHS, PROJECTS)
    p.write(
      'stub-runtime.ts',
      'export const openSuite = () => ({ run({ task }) { task.meta.onnx = { timings: { results: 5 } } } })',
    )
    const { stdout } = await p.vitest('run', '--reporter=default')
    expect(stdout).toMatch(/results +10 ms +2 +5\.00 ms/)
    expect(stdout.split('Where the time')).toHaveLength(2)
  })

  test('packages of a workspace have their models, test files and snapshots to themselves', async () => {
    const p = workspace()
    p.write('pkg/other/testdata/with_snapshot.onnx', p.bytes('pkg/one/testdata/a.onnx'))
    const results = await p.results('--update')
    expect(Object.keys(results).toSorted()).toEqual([
      ...TWO,
      'own of one',
      'own of other',
      'with_snapshot_full_model-sim-default',
    ])
    expect(new Set(Object.values(results))).toEqual(new Set(['passed']))
    expect(p.files('.vitest-onnx')).toEqual([])
    expect(p.files('pkg/one/.vitest-onnx')).toEqual(['tests/a.onnx.test.ts'])
    expect(p.files('pkg/other/testdata/__snapshots__')).toEqual(['with_snapshot.onnx.snap'])
    expect(await names(p, 'pkg/one/testdata')).toEqual([TWO[0]])
  })

  test('the one of the root config counts once, with the models of the root', async () => {
    const p = configured(
      ['testdata/a.onnx'],
      `test: { projects: [
        { extends: true, test: { name: 'one', include: ['x'] } },
        { extends: true, root: './sub', test: { name: 'two', include: ['x'] } },
      ] },
      plugins: [onnx({ layers: false })],`,
    )
    p.write('sub/package.json', '{}')
    const run = await p.vitest('run')
    expect(run.stdout, run.stderr).toContain('Tests  1 passed (1)')
    expect(run.stderr).not.toContain('vitest-onnx:')
  })

  test("files of a plugin that is no more are nobody else's tests", async () => {
    const p = configured(PATHS, `plugins: [${ONE}, ${OTHER}],`)
    expect(await names(p)).toEqual(TWO)
    p.write('vitest.config.ts', p.read('vitest.config.ts').replace(`, ${OTHER}`, ''))
    expect(await names(p)).toEqual([TWO[0]])
  })

  test.each([
    [`onnx({ targets: ['sim'] }), onnx({ targets: ['cpu'] })`, 'have one testdata folder'],
    [`onnx(), onnx({ testdata: 'testdata/sub' })`, 'lie in each other'],
    [
      `onnx({ testdata: 'a', output: 't' }), onnx({ testdata: 'b', output: 't' })`,
      'would be written to one folder',
    ],
  ])('%s is refused', async (plugins, message) => {
    const run = await configured(['testdata/a.onnx'], `plugins: [${plugins}],`).vitest('run')
    expect(run.exitCode).toBe(1)
    expect(run.stderr).toContain(message)
    expect(run.stderr).toMatch(/Give each plugin a folder|Leave out the option output/)
  })
})

test('a changed config file starts anew, models included', async () => {
  const p = configured(PATHS, `plugins: [${ONE}],`)
  const watch = p.watch()
  expect(await watch.until(/Waiting for file changes/)).toContain('1 passed (1)')
  p.write('vitest.config.ts', p.read('vitest.config.ts').replace(ONE, `${ONE}, ${OTHER}`))
  expect(await watch.until(/Waiting for file changes/)).toContain('2 passed (2)')
  await watch.stop()
})
