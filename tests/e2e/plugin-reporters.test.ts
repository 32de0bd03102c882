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

async function stdoutWith(...reporters: string[]): Promise<string> {
  const p = project({ 'testdata/m.onnx': chain() })
  p.write('stub-runtime.ts', TIMED)
  const run = await p.vitest('run', ...reporters.map((name) => `--reporter=${name}`))
  expect(run.exitCode, run.stderr).toBe(0)
  return run.stdout
}

describe.concurrent('reporters on stdout', () => {
  test('json parses', async () => {
    expect(resultsIn(await stdoutWith('json'))).toEqual(RESULTS)
    expect(resultsIn(await stdoutWith('json', 'hanging-process'))).toEqual(RESULTS)
  })

  test('junit is one document', async () => {
    const stdout = await stdoutWith('junit')
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
