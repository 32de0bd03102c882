import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileLogPattern, matchLine } from '../../src/convergence/log-pattern.ts'
import {
  addCheckpoint,
  parseManifest,
  renderManifest,
  type Manifest,
} from '../../src/convergence/manifest.ts'
import { parseConfig, type ConvergenceTest } from '../../src/convergence/parse-config.ts'
import { parseLogLine, type LogEntry } from '../../src/convergence/parse-log-line.ts'
import { Recorder, type RecorderEvent } from '../../src/convergence/record-log.ts'
import { LineSplitter, MAX_LINE_LENGTH } from '../../src/convergence/split-lines.ts'
import { BERT_CONFIG, BERT_LOG, BERT_MANIFEST } from './bert-example.ts'

const [bert] = parseConfig(BERT_CONFIG, 'bert.yml') as [ConvergenceTest]

describe('the manifest of the BERT training', () => {
  test('is written again byte for byte', () => {
    expect(renderManifest(parseManifest(BERT_MANIFEST, 'm.json'))).toBe(BERT_MANIFEST)
  })

  test('is what its log is recorded as', () => {
    const recorder = new Recorder(bert.stepsToRecord)
    const events = [
      ...BERT_LOG.split('\n').flatMap((line) => recorder.observe(parseLogLine(bert, line))),
      ...recorder.finish(),
    ]
    const manifest = recordingsOf(events)
      .map(({ startStep, checkpoint, values }) => ({
        startStep,
        checkpoint: checkpoint.replace('/s/', ''),
        values,
      }))
      .reduce(addCheckpoint, { checkpoints: [], incomplete: false })
    expect(renderManifest(manifest)).toBe(BERT_MANIFEST)
  })

  test.each([
    ['no JSON', '{', 'is not JSON'],
    ['no ckpt_logs', '{}', 'ckpt_logs: '],
    ['a step that is a word', BERT_MANIFEST.replace('"5"', '"five"'), 'ckpt_logs.4.results.five'],
    [
      'a start step that is another',
      BERT_MANIFEST.replace('"start_step": 4', '"start_step": 5'),
      'ckpt_logs.4.start_step: is 5, must be 4',
    ],
    ['no checkpoint', BERT_MANIFEST.replace('"checkpoint"', '"checkpiont"'), 'ckpt_logs.0.checkpoint'],
  ])('with %s is refused', (_, text, message) => {
    expect(() => parseManifest(text, 'm.json')).toThrow(
      expect.objectContaining({ code: 'CONVERGENCE_MANIFEST', message: expect.stringContaining(message) }),
    )
  })

  test('may hold numbers, and fields of others', () => {
    const text = BERT_MANIFEST.replace('"9.742"', '9.742').replace(
      '"ckpt_logs"',
      '"made_by": "x", "ckpt_logs"',
    )
    expect(parseManifest(text, 'm.json').checkpoints[0]?.values[0]?.value).toBe('9.742')
  })

  test('comes back from any values', () => {
    // The JSON reader drops a key of this name.
    const name = fc.string({ minLength: 1 }).filter((text) => text !== '__proto__')
    const values = fc.uniqueArray(
      fc.record({ step: fc.nat(), metric: name, label: name, value: fc.string() }),
      {
        selector: ({ step, metric, label }) => JSON.stringify([step, metric, label]),
        minLength: 1,
      },
    )
    const checkpoints = fc.uniqueArray(fc.record({ startStep: fc.nat(), checkpoint: name, values }), {
      selector: ({ startStep }) => startStep,
    })
    fc.assert(
      fc.property(checkpoints, fc.boolean(), (list, incomplete) => {
        const again = parseManifest(renderManifest({ checkpoints: list, incomplete }), 'm.json')
        expect(sorted(again)).toEqual(sorted({ checkpoints: list, incomplete }))
      }),
    )
  })
})

describe('the recorder', () => {
  test('steps that count from 0 and from 1 are both recorded in full', () => {
    expect(record(2, ['save a', 0, 1, 2])).toEqual({ 0: [0, 1] })
    expect(record(2, ['save a', 1, 2, 3])).toEqual({ 0: [1, 2] })
  })

  test('starts at the step logged last', () => {
    expect(record(2, [3, 4, 'save a', 5, 6, 7, 8])).toEqual({ 4: [5, 6] })
  })

  test('keeps what the end of the training cut short, and leaves out what has nothing', () => {
    expect(record(3, [1, 'save a', 2, 'save b'])).toEqual({ 1: [2] })
  })

  test('has nothing complete before a later step is seen', () => {
    const recorder = new Recorder(2)
    const events = [entry({ saved: 'a' }), entry({ step: 1 }), entry({ step: 2 })].flatMap((next) =>
      recorder.observe(next),
    )
    expect(recordingsOf(events)).toEqual([])
    expect(recordingsOf(recorder.observe(entry({ step: 3 })))).toHaveLength(1)
  })

  test('of two checkpoints at one step keeps the later, and says so', () => {
    const recorder = new Recorder(1)
    const events = [
      entry({ step: 1 }),
      entry({ saved: 'a' }),
      entry({ saved: 'b' }),
      entry({ step: 2 }),
      entry({ step: 3 }),
    ].flatMap((next) => recorder.observe(next))
    expect(recordingsOf(events).map(({ checkpoint }) => checkpoint)).toEqual(['b'])
    expect(events).toContainEqual({
      kind: 'warning',
      message: 'two checkpoints were saved at step 1: b is kept, a is not',
    })
  })

  test('a step logged twice keeps the later value', () => {
    const recorder = new Recorder(1)
    const events = [
      entry({ saved: 'a' }),
      entry({ step: 1, value: 'x' }),
      entry({ step: 1, value: 'y' }),
      entry({ step: 2 }),
    ].flatMap((next) => recorder.observe(next))
    expect(recordingsOf(events)[0]?.values).toEqual([{ step: 1, metric: 'loss', label: '0', value: 'y' }])
  })

  test('warns of steps that start again', () => {
    const recorder = new Recorder(1)
    recorder.observe(entry({ step: 9 }))
    expect(recorder.observe(entry({ step: 0 }))).toMatchObject([
      { kind: 'warning', message: expect.stringContaining('from 9 to 0') },
    ])
  })
})

describe('a log line', () => {
  test('with a save and a step tells both, but no step from the path', () => {
    const other = {
      ...bert,
      stepNum: compileLogPattern(String.raw`step.?(\d+)`),
      modelSave: compileLogPattern('saved (.+)'),
    }
    expect(parseLogLine(other, 'step 45: saved out/step_7/m')).toMatchObject({
      step: 45,
      saved: 'out/step_7/m',
    })
    expect(parseLogLine(other, 'saved out/step_7/m')).toMatchObject({
      step: undefined,
      saved: 'out/step_7/m',
    })
  })

  test('whose step is no whole number is an error of the config', () => {
    const other = { ...bert, stepNum: compileLogPattern(String.raw`Epoch:\s+([\d.]+)`) }
    expect(() => parseLogLine(other, 'Epoch: 3.50')).toThrow(
      expect.objectContaining({
        code: 'CONVERGENCE_CONFIG',
        message: expect.stringContaining('test "bert", log_parsing.step_num.regex: read "3.50"'),
      }),
    )
  })

  test.each([
    ['(?P<value>\\d+)', 'a 12', { 0: '12' }],
    ['(?i)LOSS (\\d+)', 'loss 3', { 0: '3' }],
    ['(?P<q>["\'])(\\d+)(?P=q)', `'3'`, { 0: "'", 1: '3' }],
    ['\\Aloss (\\d+)\\Z', 'loss 3', { 0: '3' }],
    ['[(?P<]x(\\d)', 'Px1', { 0: '1' }],
    ['\\\\A(\\d)', '\\A1', { 0: '1' }],
    ['(a)?(b)', 'b', { 1: 'b' }],
  ])('is matched by the Python expression %s', (regex, line, values) => {
    expect(Object.fromEntries(matchLine(compileLogPattern(regex), line) ?? [])).toEqual(values)
  })
})

describe('lines', () => {
  test('are the same however the bytes are cut', () => {
    const part = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('\n', '\r\n', '\r', 'é', '🙂'))
    fc.assert(
      fc.property(fc.array(part), fc.array(fc.nat(7)), (parts, cuts) => {
        const text = parts.join('').replaceAll(/[^\n\r\t\P{Cc}]|\uFEFF/gu, '')
        const expected = text.split(/\r\n|\n|\r/).filter((line) => line !== '')
        expect(split(Buffer.from(text), cuts)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  test('that are too long are cut, and the next is whole', () => {
    const bytes = Buffer.from(`${'x'.repeat(3 * MAX_LINE_LENGTH)}\nnext\n`)
    expect(split(bytes, [1000])).toEqual(['x'.repeat(MAX_LINE_LENGTH), 'next'])
  })

  test('lose their colours and control characters', () => {
    expect(split(Buffer.from('\u001B[32mstep\u001B[0m\u0007 1\tx\n'), [])).toEqual(['step 1\tx'])
  })
})

function split(bytes: Uint8Array, cuts: readonly number[]): string[] {
  const lines: string[] = []
  const splitter = new LineSplitter((line) => lines.push(line))
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const size = (cuts[i % Math.max(cuts.length, 1)] ?? bytes.length) + 1
    splitter.write(bytes.subarray(at, at + size))
    at += size
  }
  splitter.end()
  return lines
}

/** Numbers are steps with a loss, words are saves. */
function record(stepsToRecord: number, log: readonly (number | string)[]): Record<number, number[]> {
  const recorder = new Recorder(stepsToRecord)
  const entries = log.map((item) =>
    typeof item === 'number' ? entry({ step: item }) : entry({ saved: item }),
  )
  const events = [...entries.flatMap((next) => recorder.observe(next)), ...recorder.finish()]
  return Object.fromEntries(
    recordingsOf(events).map(({ startStep, values }) => [startStep, values.map(({ step }) => step)]),
  )
}

function entry({ step, saved, value = '1' }: { step?: number; saved?: string; value?: string }): LogEntry {
  return { step, saved, values: step === undefined ? [] : [{ metric: 'loss', label: '0', value }] }
}

function recordingsOf(events: readonly RecorderEvent[]): Manifest['checkpoints'][number][] {
  return events.flatMap((event) => (event.kind === 'recorded' ? [event.recording] : []))
}

/** JSON objects order whole-number keys by themselves. */
function sorted({ checkpoints, incomplete }: Manifest): Manifest {
  return {
    incomplete,
    checkpoints: checkpoints
      .map(({ startStep, checkpoint, values }) => ({
        startStep,
        checkpoint,
        values: values.toSorted(byText),
      }))
      .toSorted((a, b) => a.startStep - b.startStep),
  }
}

function byText(a: object, b: object): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
}
