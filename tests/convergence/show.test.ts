/** What a person sees: the table, the progress and the charts. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Measurement } from '../../src/convergence/compare-segment.ts'
import type { ConvergenceEvent } from '../../src/convergence/events.ts'
import { Progress } from '../../src/convergence/progress.ts'
import { PLAIN, renderCheckpoint, renderWrong } from '../../src/convergence/render-table.ts'
import type { CheckpointResult } from '../../src/convergence/run-checkpoint.ts'
import type { RunReport } from '../../src/convergence/run-convergence.ts'
import { writePlots } from '../../src/convergence/write-plots.ts'
import { tempFolder } from './temp-training.ts'

const RULE = { margin: 0.1, comparison: '<=' } as const

const RESULT: CheckpointResult = {
  startStep: 40,
  checkpoint: 'ckpts/model_40.json',
  outcome: 'failed',
  measurements: [
    measurement({ step: 41, expected: '0.5', actual: '0.5', verdict: 'pass' }),
    measurement({ step: 42, expected: '0.4', actual: '0.5', verdict: 'regression' }),
    measurement({ step: 43, expected: '1e-2', actual: 'nan', verdict: 'regression' }),
    measurement({ step: 44, label: 'NSP', expected: '0.1', actual: null, verdict: 'missing' }),
  ],
  failure: {
    message: 'the application failed with exit code 1',
    exitCode: 1,
    lastLines: ['Traceback', 'Error: boom'],
  },
}

test('the table has a row for every value and says what the application printed last', () => {
  expect(renderCheckpoint(RESULT)).toBe(
    `
from step 40 (ckpts/model_40.json): failed, 3 of 4 values wrong or missing
  step  metric      expected  actual  change  rule     verdict
    41  loss             0.5     0.5      0%  <= +10%  pass
    42  loss             0.4     0.5    +25%  <= +10%  regression
    43  loss            1e-2     nan       -  <= +10%  regression
    44  loss (NSP)       0.1       -       -  <= +10%  missing
  the application failed with exit code 1; its last lines:
    | Traceback
    | Error: boom`.trim(),
  )
})

const STEP: ConvergenceEvent = {
  kind: 'step',
  test: 't',
  step: 7,
  values: [{ metric: 'loss', label: '0', value: '0.5' }],
}

test('an error shows only what is wrong, and not all of a long list', () => {
  const wrong = Array.from({ length: 50 }, (_, step) =>
    measurement({ step, expected: '1', actual: '2', verdict: 'regression' }),
  )
  const lines = renderWrong({
    ...RESULT,
    measurements: [...RESULT.measurements, ...wrong],
    failure: null,
  }).split('\n')
  expect(lines).toHaveLength(2 + 40 + 1)
  expect(lines.at(-1)).toBe('  … and 13 more')
  expect(lines.join('\n')).not.toContain('pass')
})

describe('progress', () => {
  test('redraws one line on a terminal, cut to its width', () => {
    const written = watch({ isTTY: true, columns: 20 }, (progress) => progress.show(STEP))
    expect(written).toBe('\r\u001B[2Kt: step 7, loss 0.5')
  })

  test('has no control characters elsewhere', () => {
    const written = watch({}, (progress) => {
      progress.show({ kind: 'started', test: 't', command: ['node', 'a b.js', "it's"], startStep: 4 })
      progress.show(STEP)
      progress.show({ kind: 'recorded', test: 't', startStep: 4, checkpoint: 'c', steps: 3 })
      progress.clear()
    })
    expect(written).toBe(`t from step 4: node 'a b.js' 'it'\\''s'\nt: recorded 3 steps after step 4\n`)
  })
})

describe('the plots', () => {
  const report: RunReport = {
    kind: 'run',
    outcome: 'failed',
    tests: [
      {
        test: 'a<b>&"c',
        manifest: 'm',
        outcome: 'failed',
        checkpoints: [RESULT, { ...RESULT, startStep: 90 }],
        warnings: [],
      },
      { test: 'a<b>&"c', manifest: 'm', outcome: 'failed', checkpoints: [RESULT], warnings: [] },
    ],
  }

  test('are an SVG for every metric and label, and a page with all of them', async () => {
    const folder = tempFolder()
    expect(await writePlots(report, folder)).toBe(path.join(folder, 'index.html'))
    expect(readdirSync(folder).toSorted()).toEqual([
      'a-b-c_loss_0-2.svg',
      'a-b-c_loss_0.svg',
      'a-b-c_loss_NSP-2.svg',
      'a-b-c_loss_NSP.svg',
      'index.html',
    ])
    expect(readFileSync(path.join(folder, 'index.html'), 'utf8').match(/<svg /g)).toHaveLength(4)
  })

  test('mark the failing steps and name them for those who cannot see them', async () => {
    const folder = tempFolder()
    await writePlots(report, folder)
    const svg = readFileSync(path.join(folder, 'a-b-c_loss_0.svg'), 'utf8')
    expect(svg).toContain('role="img" aria-labelledby="chart-title chart-desc"')
    expect(svg).toContain('<title id="chart-title">a&lt;b&gt;&amp;&quot;c: loss</title>')
    expect(svg).toContain('failing steps: 42, 43, 42, 43.')
    expect(svg).toContain('step 43 from ckpts/model_40.json: recorded 1e-2, new nan (regression)')
    // Two crosses in each of two segments and one in the legend; the legend alone has a diamond.
    expect(svg.match(/class="mark wrong"/g)).toHaveLength(6)
    expect(svg).not.toContain('NaN')
    expectBalanced(svg)
  })

  test('of a gather show the recorded curve alone', async () => {
    const folder = tempFolder()
    const checkpoints = [
      { startStep: 0, checkpoint: 'c', values: [{ step: 1, metric: 'loss', label: '0', value: '1' }] },
    ]
    const gathered = {
      test: 't',
      outcome: 'gathered',
      manifest: 'm',
      checkpoints,
      resumedFrom: null,
      failure: null,
      warnings: [],
    } as const
    await writePlots({ kind: 'gather', outcome: 'gathered', tests: [gathered] }, folder)
    const svg = readFileSync(path.join(folder, 't_loss_0.svg'), 'utf8')
    expect(svg).toContain('>recorded<')
    expect(svg).not.toContain('>new run<')
    expectBalanced(svg)
  })

  test('take a training of any length', async () => {
    const measurements = Array.from({ length: 130_000 }, (_, step) =>
      measurement({ step, expected: '1', actual: '1', verdict: 'pass' }),
    )
    const long = {
      test: 't',
      manifest: 'm',
      outcome: 'passed',
      checkpoints: [{ ...RESULT, measurements }],
      warnings: [],
    } as const
    await expect(
      writePlots({ kind: 'run', outcome: 'passed', tests: [long] }, tempFolder()),
    ).resolves.toBeTruthy()
  })

  test('that cannot be written are an error', async () => {
    await expect(writePlots(report, path.join(import.meta.filename, 'x'))).rejects.toMatchObject({
      code: 'FILE_UNWRITABLE',
    })
  })
})

function measurement(
  part: Partial<Measurement> & Pick<Measurement, 'step' | 'expected' | 'actual' | 'verdict'>,
): Measurement {
  return { metric: 'loss', label: '0', ...RULE, ...part }
}

function watch(stream: { isTTY?: boolean; columns?: number }, act: (progress: Progress) => void): string {
  let written = ''
  act(new Progress({ ...stream, write: (text) => (written += text) }, PLAIN))
  return written
}

function expectBalanced(svg: string): void {
  const open: string[] = []
  for (const [, close, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (close === '/') expect(open.pop()).toBe(name)
    else if (self !== '/') open.push(name ?? '')
  }
  expect(open).toEqual([])
}
