/** The command on the example training, as a person runs it. */
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { GatherReport, RunReport } from '../../src/convergence/run-convergence.ts'
import { BROKEN, demoProject, HARMLESS, startCommand, type Demo } from './converge-demo.ts'

describe('the example training', () => {
  test('is gathered, and passes when nothing has changed', async () => {
    const demo = demoProject()
    const gathered = await demo.converge('-g')
    expect(gathered.stderr).toContain('surface: recorded 15 steps after step 30')
    expect(gathered.stdout).toBe(`surface: gathered 4 checkpoints in ${demo.manifestFile}`)
    expect(gathered.exitCode).toBe(0)

    const run = await demo.converge('--plot', 'plots')
    expect(run.stdout).toContain('surface from step 90 (ckpts/surface/model_90.json): passed, 30 values')
    expect(run.stdout).toMatch(/^ {4}91 {2}loss +0\.00634 +0\.00634 +0% {2}<= \+10% {2}pass$/m)
    expect(run.stdout).toMatch(/surface: passed, 4 of 4 checkpoints pass$/)
    expect(`${run.stdout}${run.stderr}`).not.toContain('\u001B')
    expect(run.exitCode).toBe(0)
    expect(readFileSync(path.join(demo.folder, 'plots/index.html'), 'utf8')).toContain('All 120 values pass.')
    expect(existsSync(path.join(demo.folder, 'plots/surface_loss_0.svg'))).toBe(true)
  })

  test('is caught when it is broken, and not by a harmless change', async () => {
    const demo = demoProject()
    await demo.converge('-g')
    for (const [what, file, from, to] of BROKEN) {
      demo.edit(file, from, to)
      const { stdout, exitCode } = await demo.converge('--json')
      const report = JSON.parse(stdout) as RunReport
      expect
        .soft({ what, exitCode, outcome: report.outcome })
        .toEqual({ what, exitCode: 1, outcome: 'regressed' })
      const regressed = report.tests[0]?.checkpoints.filter(({ outcome }) => outcome === 'regressed')
      expect.soft(regressed?.length, what).toBeGreaterThanOrEqual(3)
      demo.edit(file, to, from)
    }
    demo.edit(...HARMLESS)
    const { stdout, exitCode } = await demo.converge()
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/\+\d.*pass$/m)
  })

  test('that fails is shown with its exit code and last lines', async () => {
    const demo = demoProject()
    await demo.converge('-g')
    demo.edit(
      'train.mjs',
      'const batch = pickBatch',
      `if (step === 34) throw new Error('out of memory')\n    const batch = pickBatch`,
    )
    const { stdout, exitCode } = await demo.converge()
    expect(exitCode).toBe(3)
    expect(stdout).toContain('the application failed with exit code 1; its last lines:')
    expect(stdout).toContain('| Error: out of memory')
    expect(stdout).toContain('surface: failed, 3 of 4 checkpoints pass')
  })
})

describe('Ctrl-C', () => {
  test('leaves a gather that the same command completes to the same manifest', async () => {
    const demo = demoProject()
    await demo.converge('-g')
    const whole = readFileSync(demo.manifestFile, 'utf8')
    rmSync(demo.storage, { recursive: true })
    slowDown(demo)

    const interrupted = await interruptWhen(demo, /recorded 15 steps after step 30/)
    expect(interrupted.exitCode).toBe(130)
    expect(interrupted.stdout).toBe(
      `surface: interrupted\nKept 2 checkpoints in ${demo.manifestFile}. Gathering again goes on from step 30; with --fresh it starts over.`,
    )
    expect(JSON.parse(readFileSync(demo.manifestFile, 'utf8'))).toMatchObject({ incomplete: true })

    demo.edit('train.mjs', WAIT, 'const batch = pickBatch')
    const resumed = await demo.converge('-g')
    expect(resumed.stderr).toContain('surface from step 30: ')
    expect(resumed.exitCode).toBe(0)
    expect(readFileSync(demo.manifestFile, 'utf8')).toBe(whole)
  })

  test('before anything is recorded says so', async () => {
    const demo = demoProject()
    slowDown(demo)
    const { stdout, exitCode } = await interruptWhen(demo, /saved/)
    expect(exitCode).toBe(130)
    expect(stdout).toContain('No checkpoint is complete: gathering again starts over.')
  })
})

// Other systems have no /proc to look the processes up in.
test.runIf(process.platform === 'linux').each(['SIGINT', 'SIGTERM'] as const)(
  'a program that %s ends takes the training along',
  async (signal) => {
    const demo = demoProject()
    demo.edit('train.mjs', 'train()\n', 'setInterval(() => {}, 1000)\n')
    const module = new URL('../../src/convergence/run-convergence.ts', import.meta.url)
    const options = { config: 'examples/convergence/convergence.yml', storage: 'known-good' }
    const program = `
      import { gatherConvergence } from '${module.href}'
      await gatherConvergence({ ...${JSON.stringify(options)}, onEvent: ({ kind }) => console.log(kind) })`
    const parent = execa(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', program],
      {
        cwd: demo.folder,
        reject: false,
      },
    )
    await once(parent.stdout, 'data')
    await expect.poll(() => trainingsIn(demo)).toHaveLength(1)
    parent.kill(signal)
    expect((await parent).signal).toBe(signal)
    await expect.poll(() => trainingsIn(demo)).toEqual([])
  },
)

describe('wrong usage ends with 2', () => {
  test.each([
    ['no config', ['-s', 'x'], "required option '-t, --test-config-path <file>' not specified"],
    ['an unknown option', ['-t', 'c.yml', '-s', 'x', '--nope'], "unknown option '--nope'"],
    [
      'a timeout that is no number',
      ['-t', 'c.yml', '-s', 'x', '--step-timeout', 'soon'],
      'It must be a number of seconds',
    ],
    [
      'a config that is not there',
      ['-t', 'c.yml', '-s', 'x'],
      'error: c.yml: the config cannot be read\nhint: ',
    ],
    [
      'an unknown test',
      ['-t', 'examples/convergence/convergence.yml', '-s', 'x', '--test', 'y'],
      'hint: Its tests are: surface.',
    ],
    [
      'no manifest',
      ['-t', 'examples/convergence/convergence.yml', '-s', 'x'],
      'test "surface" has no manifest\nhint: Gather first',
    ],
    ['a wrong config', ['-t', 'bad.yml', '-s', 'x'], 'error: bad.yml: test "a": is "1": must be an object'],
  ])('%s', async (_, words, message) => {
    const demo = demoProject()
    writeFileSync(path.join(demo.folder, 'bad.yml'), 'a: 1')
    const { exitCode, stderr, stdout } = await startCommand(demo.folder, words)
    expect(stderr).toContain(message)
    expect(stdout).toBe('')
    expect(exitCode).toBe(2)
  })
})

test('with --json only JSON is on stdout, for a gather too', async () => {
  const demo = demoProject()
  const { stdout } = await demo.converge('-g', '--json', '--manifest-name', 'other.json', '--test', 'surface')
  const report = JSON.parse(stdout) as GatherReport
  expect(report).toMatchObject({
    kind: 'gather',
    outcome: 'gathered',
    tests: [{ test: 'surface', resumedFrom: null }],
  })
  expect(report.tests[0]?.manifest).toBe(path.join(demo.storage, 'surface_other.json'))
})

test('an executable that is not there ends with 3', async () => {
  const demo = demoProject()
  demo.edit('convergence.yml', '- node', '- no-such-node')
  const { stderr, exitCode } = await demo.converge('-g')
  expect(stderr).toMatch(/error: "no-such-node" cannot be started in .*: ENOENT\nhint: Check `executable`/)
  expect(exitCode).toBe(3)
})

test('the help shows how to gather and run', async () => {
  const { stdout, exitCode } = await startCommand('.', ['--help'])
  expect(stdout).toContain('$ vitest-onnx converge -t convergence.yml -s known-good -g')
  expect(exitCode).toBe(0)
})

/** The processes that work in the folder of the training. */
function trainingsIn(demo: Demo): string[] {
  const folder = path.join(demo.folder, 'examples/convergence')
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && workingFolder(pid) === folder)
}

function workingFolder(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return undefined
  }
}

const WAIT = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 15)\n    const batch = pickBatch'

function slowDown(demo: Demo): void {
  demo.edit('train.mjs', 'const batch = pickBatch', WAIT)
}

async function interruptWhen(demo: Demo, line: RegExp): Promise<Awaited<ReturnType<Demo['converge']>>> {
  const command = demo.converge('-g')
  let [seen, interrupted] = ['', false]
  command.stderr.on('data', (chunk: Buffer) => {
    seen += chunk
    // A second Ctrl-C would end the command at once.
    if (!interrupted && line.test(seen)) interrupted = command.kill('SIGINT')
  })
  return command
}
