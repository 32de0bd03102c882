/** Applications that misbehave, as real processes. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { ConvergenceEvent } from '../../src/convergence/events.ts'
import { gatherConvergence, runConvergence, type RunReport } from '../../src/convergence/run-convergence.ts'
import { runApplication } from '../../src/convergence/run-application.ts'
import { TRAINING, tempTraining, tinyTest, type TempTraining } from './temp-training.ts'

describe('what is logged', () => {
  test('a checkpoint saved while another is being recorded ends neither', async () => {
    const training = tempTraining(
      `for (let step = 1; step <= 8; step++) { log('step ' + step + ' loss ' + step); if (step === 2 || step === 3) save(step) }`,
      { recording: { steps_to_record_after_save: 3 } },
    )
    await gatherConvergence(training)
    expect(stepsByStart(training)).toEqual({ 2: [3, 4, 5], 3: [4, 5, 6] })
  })

  test('logs on stderr are read when the config says so, and only there', async () => {
    const onStderr =
      `const real = console.log; console.log = console.error; real('step 99 loss 99');` + TRAINING
    const training = tempTraining(onStderr, { log_output: 'stderr' })
    await gatherConvergence(training)
    expect(stepsByStart(training)).toEqual({ 4: [5, 6], 8: [9, 10] })
  })

  test('metrics may be on one line or on several', async () => {
    const metrics = {
      log_parsing: {
        step_num: { regex: String.raw`step (\d+)` },
        model_save: { regex: 'saved (.+)' },
        loss: { regex: String.raw`loss (\S+) (\S+)`, labels: ['MLM', 'NSP'] },
        accuracy: { regex: String.raw`accuracy (\S+)` },
      },
      metrics: { loss: { margin: 0, comparison: '==' }, accuracy: { margin: 0, comparison: '==' } },
    }
    const training = tempTraining(
      `save(0); log('step 1 loss 1 2 accuracy 3'); log('step 2'); log('  loss 4 5'); log('  accuracy 6'); log('step 3')`,
      metrics,
    )
    await gatherConvergence(training)
    expect(training.readManifest().checkpoints[0]?.values).toEqual([
      { step: 1, metric: 'loss', label: 'MLM', value: '1' },
      { step: 1, metric: 'loss', label: 'NSP', value: '2' },
      { step: 1, metric: 'accuracy', label: '0', value: '3' },
      { step: 2, metric: 'loss', label: 'MLM', value: '4' },
      { step: 2, metric: 'loss', label: 'NSP', value: '5' },
      { step: 2, metric: 'accuracy', label: '0', value: '6' },
    ])
  })

  test('steps that are logged every n count as n steps', async () => {
    const training = tempTraining(
      `for (let step = 5; step <= 60; step += 5) { log('step ' + step + ' loss 1'); if (step === 10) save(step) }`,
      { recording: { steps_to_record_after_save: 20 } },
    )
    await gatherConvergence(training)
    expect(stepsByStart(training)).toEqual({ 10: [15, 20, 25, 30] })
  })

  test.each([
    ['1e-3', '1.05E-03', 'passed'],
    ['1e-3', '2e-3', 'regressed'],
    ['0.5', 'nan', 'regressed'],
    ['0.5', '-inf', 'regressed'],
    ['nan', 'NaN', 'passed'],
    ['nan', '0.5', 'regressed'],
    ['inf', 'inf', 'passed'],
  ])('a loss of %s that becomes %s has %s', async (recorded, now, outcome) => {
    const training = tempTraining(`out && save(0); log('step 1 loss ' + (out ? '${recorded}' : '${now}'))`)
    await gatherConvergence(training)
    expect(training.readManifest().checkpoints[0]?.values[0]?.value).toBe(recorded)
    expect((await runConvergence(training)).outcome).toBe(outcome)
  })

  test('a relative checkpoint path with a colon comes back whole', async () => {
    const training = tempTraining(`
      const file = '../storage/ckpts/tiny/model_4:5 (a).onnx'
      if (out) { writeFileSync(file, ''); log('step 4'); log('saved ' + file) }
      log('step 5 loss ' + (out || from.endsWith('/storage/ckpts/tiny/model_4:5 (a).onnx') ? 1 : 99))`)
    await gatherConvergence(training)
    expect(training.readManifest().checkpoints[0]?.checkpoint).toBe('ckpts/tiny/model_4:5 (a).onnx')
    expect((await runConvergence(training)).outcome).toBe('passed')
  })

  test('a checkpoint that the application keeps in a place of its own is found from the manifest', async () => {
    const training = tempTraining(`
      if (out) { writeFileSync('model.bin', ''); log('step 4'); log('saved model.bin') }
      log('step 5 loss ' + (out || from.endsWith('/app/model.bin') ? 1 : 99))`)
    await gatherConvergence(training)
    expect(training.readManifest().checkpoints[0]?.checkpoint).toBe('../app/model.bin')
    expect((await runConvergence(training)).outcome).toBe('passed')
  })

  test('checkpoints are kept relative to the manifest, so both can be moved', async () => {
    const training = tempTraining(TRAINING)
    await gatherConvergence(training)
    expect(training.readManifest().checkpoints.map(({ checkpoint }) => checkpoint)).toEqual([
      'ckpts/tiny/model_4.bin',
      'ckpts/tiny/model_8.bin',
    ])
  })

  test('the words of the command reach the program as they are, without a shell', async () => {
    const evil = '$(touch pwned); `touch pwned` && "quoted" * \\ \n'
    const training = tempTraining(
      `save(0); log('step 1 loss 1'); log('got ' + JSON.stringify(arg('evil'))); process.exit(3)`,
      {
        flags: withMisc({ evil: { key: '--evil', value: evil }, bare: { key: '--bare', value: null } }),
      },
    )
    const report = await gatherConvergence(training)
    expect(report.tests[0]?.failure?.lastLines.join('\n')).toContain(`got ${JSON.stringify(evil)}`)
    expect(existsSync(path.join(training.folder, 'app', 'pwned'))).toBe(false)
  })
})

describe('an application that', () => {
  test('never logs has failed, with its last lines', async () => {
    const training = await gathered()
    training.setScript(`log('hello'); console.error('no GPU found')`)
    const [checkpoint] = checkpointsOf(await runConvergence(training))
    expect(checkpoint).toMatchObject({
      outcome: 'failed',
      failure: { exitCode: 0, lastLines: ['no GPU found', 'hello'] },
    })
    expect(checkpoint?.failure?.message).toBe(
      'no line of its stdout matched log_parsing.step_num of test "tiny"',
    )
  })

  test('never logs in a gather leaves no manifest', async () => {
    const report = await gatherConvergence(tempTraining(''))
    expect(report.outcome).toBe('failed')
    expect(report.tests[0]?.failure?.message).toContain('matched log_parsing.step_num')
    expect(existsSync(report.tests[0]?.manifest ?? '')).toBe(false)
  })

  test('logs no checkpoint in a gather has failed', async () => {
    const report = await gatherConvergence(tempTraining(`log('step 1 loss 1')`))
    expect(report.tests[0]?.failure?.message).toContain('matched log_parsing.model_save of test "tiny"')
  })

  test('exits early without an error has failed, and the step is named', async () => {
    const training = await gathered()
    training.setScript(`log('step ' + (Number(start) + 1) + ' loss 0.1')`)
    const [checkpoint] = checkpointsOf(await runConvergence(training))
    expect(checkpoint?.outcome).toBe('failed')
    expect(checkpoint?.failure?.message).toContain('step 6 logged no loss (0): the last step logged is 5')
    expect(checkpoint?.failure?.message).toContain('--until')
  })

  test('leaves a metric out of a step has failed', async () => {
    const training = await gathered()
    training.setScript(`log('step ' + (Number(start) + 1)); log('step ' + (Number(start) + 2) + ' loss 0.1')`)
    const [checkpoint] = checkpointsOf(await runConvergence(training))
    expect(checkpoint?.failure?.message).toBe('step 5 logged no loss (0)')
  })

  test('fails is told by its exit code', async () => {
    const training = await gathered()
    training.setScript(`${TRAINING}; process.exitCode = 42`)
    const [checkpoint] = checkpointsOf(await runConvergence(training))
    expect(checkpoint).toMatchObject({ outcome: 'failed', failure: { exitCode: 42 } })
    expect(checkpoint?.measurements.map(({ verdict }) => verdict)).toEqual(['pass', 'pass'])
  })

  test('is killed is told by the signal', async () => {
    const training = await gathered()
    training.setScript(`process.kill(process.pid, 'SIGKILL'); await sleep(10_000)`)
    const [checkpoint] = checkpointsOf(await runConvergence(training))
    expect(checkpoint?.failure).toMatchObject({
      exitCode: null,
      message: 'the application was killed by SIGKILL',
    })
  })

  test('is killed in a gather leaves what is complete, and the next gather goes on from there', async () => {
    const training = tempTraining(
      TRAINING.replace('log(', `if (step === 11 && !from) process.kill(process.pid, 'SIGKILL'); log(`),
    )
    expect((await gatherConvergence(training)).outcome).toBe('failed')
    expect(training.readManifest()).toMatchObject({ incomplete: true, checkpoints: [{ startStep: 4 }] })

    const report = await gatherConvergence(training)
    expect(report.tests[0]).toMatchObject({ outcome: 'gathered', resumedFrom: 4 })
    expect(training.readManifest().incomplete).toBe(false)
    expect(stepsByStart(training)).toEqual({ 4: [5, 6], 8: [9, 10] })
  })

  test('cannot be started is an error that names it', async () => {
    const training = tempTraining('', { executable: ['no-such-program-here'] })
    await expect(gatherConvergence(training)).rejects.toMatchObject({
      code: 'APPLICATION_FAILED',
      message: expect.stringContaining('"no-such-program-here" cannot be started'),
    })
  })

  test('goes on past the segment is stopped there', async () => {
    const training = await gathered()
    training.setScript(
      `for (let step = Number(start) + 1; ; step++) { log('step ' + step + ' loss 0'); await sleep(5) }`,
    )
    expect((await runConvergence(training)).outcome).toBe('passed')
  })

  test('stands still is stopped after the step timeout', async () => {
    const training = await gathered()
    training.setScript(
      `log('step ' + (Number(start) + 1) + ' loss 0'); for (;;) { log('waiting'); await sleep(20) }`,
    )
    const [checkpoint] = checkpointsOf(await runConvergence({ ...training, stepTimeout: 0.5 }))
    expect(checkpoint?.failure?.message).toBe('the application logged no new step for 0.5 s and was stopped')
  })

  test('ends and leaves a worker that holds its output open does not hold the test', async () => {
    const training = await gathered()
    training.setScript(`
      import { spawn } from 'node:child_process'
      spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'inherit' }).unref()
      ${TRAINING}`)
    const before = Date.now()
    expect((await runConvergence(training)).outcome).toBe('passed')
    expect(Date.now() - before).toBeLessThan(15_000)
  })

  test('ends and leaves a worker that closed its output takes it along', async () => {
    const training = tempTraining(`
      import { spawn } from 'node:child_process'
      const worker = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'ignore' })
      worker.unref()
      writeFileSync('pid', String(worker.pid))
      ${TRAINING}`)
    expect((await gatherConvergence(training)).outcome).toBe('gathered')
    await expect.poll(() => isAlive(pidOf(training))).toBe(false)
  })

  test('prints 100 MB is read in bounded memory', async () => {
    const training = tempTraining(`
      const filler = ('x'.repeat(99) + '\\n').repeat(10_000)
      save(0); log('step 1 loss 1')
      for (let i = 0; i < 100; i++) for (let at = 0; at < filler.length; ) at += await write(filler.slice(at))
      log('step 2 loss 2'); log('step 3 loss 3')
      function write(text) { return new Promise((done) => process.stdout.write(text, () => done(text.length))) }`)
    const memory = watchMemory()
    expect((await gatherConvergence(training)).outcome).toBe('gathered')
    expect(memory.grownBy()).toBeLessThan(60e6)
    expect(stepsByStart(training)).toEqual({ 0: [1, 2] })
  })

  test('prints a line without end is read in bounded memory', async () => {
    const training = tempTraining(`
      save(0); log('step 1 loss 1')
      const filler = 'x'.repeat(1_000_000)
      for (let i = 0; i < 100; i++) await new Promise((done) => process.stdout.write(filler, done))
      log(' step 2 loss 2'); log('step 2 loss 3'); log('step 3')`)
    const memory = watchMemory()
    expect((await gatherConvergence(training)).outcome).toBe('gathered')
    expect(memory.grownBy()).toBeLessThan(60e6)
    expect(training.readManifest().checkpoints[0]?.values.map(({ value }) => value)).toEqual(['1', '3'])
  })
})

describe('an interrupted gather', () => {
  const SLOW = TRAINING.replace('log(', 'await sleep(from ? 0 : 40); log(')

  test('leaves a valid manifest of what is complete, stops the application and can go on', async () => {
    const training = tempTraining(`writeFileSync('pid', String(process.pid)); ${SLOW}`)
    const report = await gatherUntil(training, (event) => event.kind === 'recorded')
    expect(report.outcome).toBe('interrupted')
    expect(training.readManifest()).toMatchObject({ incomplete: true, checkpoints: [{ startStep: 4 }] })
    expect(isAlive(pidOf(training))).toBe(false)

    const resumed = await gatherConvergence(training)
    expect(resumed.tests[0]).toMatchObject({ outcome: 'gathered', resumedFrom: 4 })
    expect(stepsByStart(training)).toEqual({ 4: [5, 6], 8: [9, 10] })
    expect(JSON.parse(readFileSync(training.manifestFile, 'utf8'))).not.toHaveProperty('incomplete')
  })

  test('is the only kind that goes on: a complete one is gathered anew', async () => {
    const training = await gathered()
    const report = await gatherConvergence(training)
    expect(report.tests[0]).toMatchObject({ outcome: 'gathered', resumedFrom: null })
  })

  test('starts over when asked to', async () => {
    const training = tempTraining(SLOW)
    await gatherUntil(training, (event) => event.kind === 'recorded')
    const report = await gatherConvergence({ ...training, fresh: true })
    expect(report.tests[0]).toMatchObject({ outcome: 'gathered', resumedFrom: null })
  })

  test('before anything is complete leaves an older manifest as it was', async () => {
    const training = await gathered()
    const older = readFileSync(training.manifestFile, 'utf8')
    training.setScript(SLOW)
    await gatherUntil(training, (event) => event.kind === 'step')
    expect(readFileSync(training.manifestFile, 'utf8')).toBe(older)
  })

  test('ends an application that ignores the request, and its workers', async () => {
    const training = tempTraining(`
      import { spawn } from 'node:child_process'
      process.on('SIGTERM', () => {})
      const worker = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setTimeout(() => {}, 60_000)'])
      log('pids ' + process.pid + ' ' + worker.pid)
      await sleep(60_000)`)
    const controller = new AbortController()
    const pids: number[] = []
    const { end } = await runApplication(
      {
        command: [process.execPath, 'train.mjs'],
        directory: path.join(training.folder, 'app'),
        logOutput: 'stdout',
      },
      {
        signal: controller.signal,
        graceMs: 200,
        onLine: (line) => {
          pids.push(...line.split(' ').slice(1).map(Number))
          controller.abort()
          return 'go on'
        },
      },
    )
    expect(end).toEqual({ kind: 'interrupted' })
    expect(pids).toHaveLength(2)
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
  })

  test('is what a run of an incomplete manifest warns of', async () => {
    const training = tempTraining(SLOW)
    await gatherUntil(training, (event) => event.kind === 'recorded')
    const report = await runConvergence(training)
    expect(report.outcome).toBe('passed')
    expect(report.tests[0]?.warnings).toEqual([
      'the gather was interrupted: only its complete checkpoints are compared',
    ])
  })
})

describe('the manifest', () => {
  test('is whole whenever it is read while it is being written', async () => {
    const training = tempTraining(
      `for (let step = 1; step <= 400; step++) { log('step ' + step + ' loss ' + step); save(step) }`,
    )
    const reader = execa(process.execPath, ['-e', READ_AGAIN_AND_AGAIN, training.manifestFile], {
      reject: false,
    })
    await gatherConvergence(training)
    expect(await reader).toMatchObject({ exitCode: 0, stderr: '' })
    expect(Number((await reader).stdout)).toBeGreaterThan(5)
    expect(training.readManifest().checkpoints).toHaveLength(399)
    expect(readdirSync(training.storage).toSorted()).toEqual(['ckpts', path.basename(training.manifestFile)])
  })

  test('that cannot be written is an error, and the application is stopped', async () => {
    const training = tempTraining(
      `writeFileSync('pid', String(process.pid)); save(0); for (let step = 1; ; step++) { log('step ' + step + ' loss 1'); await sleep(5) }`,
    )
    mkdirSync(path.join(training.manifestFile, 'a folder in its place'), { recursive: true })
    await expect(gatherConvergence({ ...training, fresh: true })).rejects.toMatchObject({
      code: 'FILE_UNWRITABLE',
    })
    expect(isAlive(pidOf(training))).toBe(false)
  })

  test('of another harness is found with paths relative to ckpts/', async () => {
    const training = await gathered()
    writeFileSync(
      training.manifestFile,
      readFileSync(training.manifestFile, 'utf8').replaceAll('"ckpts/', '"'),
    )
    expect((await runConvergence(training)).outcome).toBe('passed')
  })

  test('that names a checkpoint which is gone is an error before anything runs', async () => {
    const training = await gathered()
    writeFileSync(
      training.manifestFile,
      readFileSync(training.manifestFile, 'utf8').replace('model_8', 'model_9'),
    )
    const events: ConvergenceEvent[] = []
    await expect(
      runConvergence({ ...training, onEvent: (event) => events.push(event) }),
    ).rejects.toMatchObject({
      code: 'CONVERGENCE_MANIFEST',
      message: expect.stringContaining('there is no checkpoint ckpts/tiny/model_9.bin'),
    })
    expect(events).toEqual([])
  })

  test('that is missing says how to gather', async () => {
    await expect(runConvergence(tempTraining(TRAINING))).rejects.toMatchObject({
      code: 'CONVERGENCE_MANIFEST',
      message: expect.stringContaining('test "tiny" has no manifest'),
      hint: expect.stringContaining('converge -g'),
    })
  })
})

/** Counts different manifests until one is complete; ends with an error at the first that is not whole. */
const READ_AGAIN_AND_AGAIN = `
  const { existsSync, readFileSync } = require('node:fs')
  const file = process.argv[1]
  const seen = new Set()
  const end = Date.now() + 20_000
  for (let incomplete = true; incomplete && Date.now() < end; ) {
    if (!existsSync(file)) continue
    const text = readFileSync(file, 'utf8')
    incomplete = JSON.parse(text).incomplete === true
    seen.add(text.length)
  }
  console.log(seen.size)
`

async function gathered(): Promise<TempTraining> {
  const training = tempTraining(TRAINING)
  await gatherConvergence(training)
  return training
}

async function gatherUntil(
  training: TempTraining,
  isTime: (event: ConvergenceEvent) => boolean,
): ReturnType<typeof gatherConvergence> {
  const controller = new AbortController()
  return gatherConvergence({
    ...training,
    signal: controller.signal,
    onEvent: (event) => isTime(event) && controller.abort(),
  })
}

function stepsByStart(training: TempTraining): Record<number, number[]> {
  return Object.fromEntries(
    training
      .readManifest()
      .checkpoints.map(({ startStep, values }) => [startStep, values.map(({ step }) => step)]),
  )
}

function checkpointsOf(report: RunReport): RunReport['tests'][number]['checkpoints'] {
  return report.tests.flatMap(({ checkpoints }) => checkpoints)
}

function withMisc(misc: object): object {
  const flags = tinyTest()['flags'] as { gather: object; run: object }
  return { ...flags, gather: { ...flags.gather, misc } }
}

function watchMemory(): { grownBy(): number } {
  const before = process.memoryUsage().rss
  let most = before
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
  return {
    grownBy: () => {
      clearInterval(timer)
      return most - before
    },
  }
}

function pidOf(training: TempTraining): number {
  return Number(readFileSync(path.join(training.folder, 'app', 'pid'), 'utf8'))
}

/** Not there, or a zombie that nobody has waited for. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
