/** `defineConvergenceTest` in a project of its own, run by a real Vitest. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { BROKEN, demoProject, HARMLESS, type Demo } from './converge-demo.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface JsonReport {
  readonly success: boolean
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const CHECKPOINTS = [0, 30, 60, 90].map(
  (step) => `convergence of surface from step ${step} (ckpts/surface/model_${step}.json)`,
)

test('Vitest gathers with --update, then runs one test for each checkpoint', async () => {
  const demo = vitestProject()
  const missing = await runTests(demo)
  expect(missing).toMatchObject([{ fullName: 'convergence of surface has a manifest', status: 'failed' }])
  expect(missing[0]?.failureMessages[0]).toContain('test "surface" has no manifest')

  expect(await runTests(demo, '--update')).toMatchObject([
    { fullName: 'convergence of surface gathers checkpoints', status: 'passed' },
  ])

  demo.edit(...HARMLESS)
  const runs = await runTests(demo)
  expect(runs.map(({ fullName }) => fullName)).toEqual(CHECKPOINTS)
  expect(runs.map(({ status }) => status)).toEqual(['passed', 'passed', 'passed', 'passed'])

  const chosen = await runTests(demo, '-t', 'from step 30')
  expect(chosen.map(({ status }) => status)).toEqual(['skipped', 'passed', 'skipped', 'skipped'])

  const list = await vitest(demo, 'list')
  expect(list.stdout.trim().split('\n')).toHaveLength(4)
  expect(list.stdout).toContain('convergence of surface > from step 90 (ckpts/surface/model_90.json)')
})

test('a broken training fails its tests, with the values in the message', async () => {
  const demo = vitestProject()
  await runTests(demo, '--update')
  for (const [what, file, from, to] of BROKEN) {
    demo.edit(file, from, to)
    const run = (await runTests(demo, '-t', 'from step 30')).find(({ status }) => status !== 'skipped')
    expect.soft(run?.status, what).toBe('failed')
    expect.soft(run?.failureMessages[0], what).toMatch(/^ConvergenceRegression: from step 30 .*regressed/)
    expect.soft(run?.failureMessages[0], what).toMatch(/loss +\S+ +\S+ +\+\S+% +<= \+10% +regression/)
    expect.soft(run?.failureMessages[0], what).not.toContain('pass\n')
    demo.edit(file, to, from)
  }
  demo.edit('train.mjs', 'train()\n', 'process.exit(7)\n')
  const [first] = await runTests(demo, '-t', 'from step 0')
  expect(first?.failureMessages[0]).toMatch(/^ModelTestError: test "surface": [^]*failed with exit code 7/)
})

function vitestProject(): Demo {
  const demo = demoProject()
  const alias = { 'vitest-onnx/convergence': path.join(ROOT, 'src/convergence/index.ts') }
  writeFileSync(
    path.join(demo.folder, 'vitest.config.mjs'),
    `export default { resolve: { alias: ${JSON.stringify(alias)} } }`,
  )
  writeFileSync(
    path.join(demo.folder, 'surface.test.mjs'),
    `import { defineConvergenceTest } from 'vitest-onnx/convergence'
defineConvergenceTest({ config: 'examples/convergence/convergence.yml', storage: 'known-good' })
`,
  )
  return demo
}

async function runTests(
  demo: Demo,
  ...words: string[]
): Promise<JsonReport['testResults'][number]['assertionResults']> {
  const { stdout, stderr } = await vitest(demo, 'run', '--reporter=json', ...words)
  if (!stdout.startsWith('{')) throw new Error(`${stdout}\n${stderr}`)
  const report = JSON.parse(stdout) as JsonReport
  return report.testResults.flatMap(({ assertionResults }) => assertionResults)
}

function vitest(demo: Demo, ...words: string[]) {
  const program = path.join(ROOT, 'node_modules/vitest/vitest.mjs')
  return execa(process.execPath, [program, ...words], {
    cwd: demo.folder,
    reject: false,
    env: { NO_COLOR: '1', VITEST: undefined, CI: undefined },
  })
}
