/** What programs read of a run is theirs alone: nothing is printed between. */
import { describe, expect, test } from 'vitest'
import { chain, project, resultsIn } from './plugin-project.ts'

const TABLE = 'Where the time of the model tests went'
const RESULTS = { 'm_layer_Relu_0-sim-default': 'passed', 'm_full_model-sim-default': 'passed' }

/** Stands in for the runtime: every test took some time. */
const TIMED = `
  export function openSuite() {
    return {
      run({ task }) {
        task.meta.onnx = { timings: { results: 5 } }
      },
    }
  }
`

/** Vitest 5 writes json and junit to a file, unless told otherwise, and says so. */
const [WRITTEN, NOT_ON_STDOUT] = [/^\w+ report written to /, 'this Vitest writes it to a file']

async function stdoutWith(...reporters: string[]): Promise<string> {
  const p = project({ 'testdata/m.onnx': chain() })
  p.write('stub-runtime.ts', TIMED)
  const run = await p.vitest('run', ...reporters.map((name) => `--reporter=${name}`))
  expect(run.exitCode, run.stderr).toBe(0)
  return run.stdout
}

describe.concurrent('reporters on stdout', () => {
  test('json parses', async ({ skip }) => {
    const stdout = await stdoutWith('json')
    skip(WRITTEN.test(stdout), NOT_ON_STDOUT)
    expect(resultsIn(stdout)).toEqual(RESULTS)
    expect(resultsIn(await stdoutWith('json', 'hanging-process'))).toEqual(RESULTS)
  })

  test('junit is one document', async ({ skip }) => {
    const stdout = await stdoutWith('junit')
    skip(WRITTEN.test(stdout), NOT_ON_STDOUT)
    expect(stdout).toMatch(/^<\?xml [^>]+\?>\s*<testsuites [^]*<\/testsuites>\s*$/)
    expect(stdout).not.toContain(TABLE)
  })

  test.each(['tap', 'tap-flat'])('%s has nothing else', async (name) => {
    const stdout = await stdoutWith(name)
    expect(stdout).toMatch(/^TAP version 13\n/)
    expect(stdout).not.toContain(TABLE)
  })

  test.each([[['default']], [['verbose']], [['dot']], [['tree']], [['default', 'hanging-process']]])(
    'people get the table: %s',
    async (names) => {
      const stdout = await stdoutWith(...names)
      expect(stdout.split(TABLE)).toHaveLength(2)
    },
  )
})
