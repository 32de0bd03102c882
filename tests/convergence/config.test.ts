import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { gatherCommand, runCommand } from '../../src/convergence/command-line.ts'
import { parseConfig, type ConvergenceTest } from '../../src/convergence/parse-config.ts'
import { ModelTestError } from '../../src/errors.ts'
import { BERT_CONFIG } from './bert-example.ts'
import { tinyTest } from './temp-training.ts'

describe('a config that cannot be used names the test and the field', () => {
  test.each<[what: string, change: (raw: any) => void, message: string]>([
    ['no step_num', (raw) => delete raw.log_parsing.step_num, 'log_parsing.step_num: is missing'],
    ['no model_save', (raw) => delete raw.log_parsing.model_save, 'log_parsing.model_save: is missing'],
    [
      'a step_num without a group',
      (raw) => (raw.log_parsing.step_num.regex = 'step'),
      'log_parsing.step_num.regex: has 0 groups, needs one: the step',
    ],
    [
      'a step_num with two groups',
      (raw) => (raw.log_parsing.step_num.regex = '(a)(b)'),
      'log_parsing.step_num.regex: has 2 groups, needs one',
    ],
    [
      'a model_save with two groups',
      (raw) => (raw.log_parsing.model_save.regex = '(a)(?P<b>c)'),
      'log_parsing.model_save.regex: has 2 groups, needs one: the path',
    ],
    [
      'a metric without a group',
      (raw) => (raw.log_parsing.loss.regex = 'loss'),
      'log_parsing.loss.regex: has no group',
    ],
    [
      'a regex that is none',
      (raw) => (raw.log_parsing.loss.regex = '('),
      'log_parsing.loss.regex: is not a regular expression',
    ],
    [
      'a label twice',
      (raw) => (raw.log_parsing.loss.labels = ['a', 'a']),
      'log_parsing.loss.labels: has a label twice',
    ],
    [
      'an unknown comparison',
      (raw) => (raw.metrics.loss.comparison = '=<'),
      'metrics.loss.comparison: is "=<": must be one of == <= < >= > !=',
    ],
    ['no margin', (raw) => delete raw.metrics.loss.margin, 'metrics.loss.margin: is missing'],
    [
      'a margin below 0',
      (raw) => (raw.metrics.loss.margin = -1),
      'metrics.loss.margin: must not be negative',
    ],
    [
      'a margin that is a word',
      (raw) => (raw.metrics.loss.margin = 'wide'),
      'metrics.loss.margin: is "wide": must be a proportion',
    ],
    ['no metrics', (raw) => (raw.metrics = {}), 'metrics: must name at least one metric'],
    [
      'a metric without a regex',
      (raw) => (raw.metrics.speed = raw.metrics.loss),
      'metrics.speed: has no regex of this name in log_parsing',
    ],
    [
      'the step as a metric',
      (raw) => (raw.metrics.step_num = raw.metrics.loss),
      'metrics.step_num: has no regex of this name',
    ],
    [
      'a flag without key',
      (raw) => (raw.flags.common = { fast: { value: 1 } }),
      'flags.common.fast.key: is missing',
    ],
    [
      'a misc flag without key',
      (raw) => (raw.flags.run.misc = { fast: {} }),
      'flags.run.misc.fast.key: is missing',
    ],
    [
      'an empty key',
      (raw) => (raw.flags.run.start_step.key = ''),
      "flags.run.start_step.key: must be the application's name",
    ],
    [
      'no checkpoint_output',
      (raw) => delete raw.flags.gather.checkpoint_output,
      'flags.gather.checkpoint_output: is missing',
    ],
    [
      'no checkpoint_input',
      (raw) => delete raw.flags.run.checkpoint_input,
      'flags.run.checkpoint_input: is missing',
    ],
    ['no start_step', (raw) => delete raw.flags.run.start_step, 'flags.run.start_step: is missing'],
    ['no run_for', (raw) => delete raw.flags.run.run_for, 'flags.run.run_for: is missing'],
    ['no gather flags', (raw) => delete raw.flags.gather, 'flags.gather: is missing'],
    [
      'a value where the harness fills it',
      (raw) => (raw.flags.run.run_for.value = 3),
      'flags.run.run_for.value: must be left out',
    ],
    [
      'a list as a value',
      (raw) => (raw.flags.common = { a: { key: '-a', value: [1] } }),
      'flags.common.a.value: ',
    ],
    [
      'an executable in one string',
      (raw) => (raw.executable = 'python3 train.py'),
      'executable: is "python3 train.py": must be a list',
    ],
    ['no executable', (raw) => (raw.executable = []), 'executable: must name the program'],
    [
      'an unknown stream',
      (raw) => (raw.log_output = 'both'),
      'log_output: is "both": must be stdout or stderr',
    ],
    [
      'no steps to record',
      (raw) => (raw.recording.steps_to_record_after_save = 0),
      'recording.steps_to_record_after_save: must be at least 1',
    ],
    [
      'half a step',
      (raw) => (raw.recording.steps_to_record_after_save = 1.5),
      'recording.steps_to_record_after_save: is 1.5: must be a whole number',
    ],
    ['a misspelt key', (raw) => (raw.flags.run.mics = {}), 'flags.run: has an unknown key: mics'],
  ])('%s', (_, change, message) => {
    const raw = structuredClone(tinyTest())
    change(raw)
    expect(errorOf(stringify({ tiny: raw }))).toContain(`test "tiny", ${message}`)
  })

  test('every wrong field is told at once', () => {
    const message = errorOf(
      stringify({ one: { ...tinyTest(), executable: 1 }, two: { ...tinyTest(), metrics: 1 } }),
    )
    expect(message).toContain('test "one", executable')
    expect(message).toContain('test "two", metrics')
  })

  test.each([
    ['no YAML', 'a: [', 'is not YAML'],
    ['an empty file', '', 'holds no test'],
    ['a list', '- a', 'holds no test'],
    ['a test that is no object', 'a: 1', 'test "a": is "1": must be an object'],
    [
      'a name that leaves the folder',
      stringify({ '../x': tinyTest() }),
      'test "../x": the name must have no slash',
    ],
  ])('%s', (_, text, message) => {
    expect(errorOf(text)).toContain(message)
  })
})

describe('a config for the BERT training', () => {
  const bert = onlyTest(BERT_CONFIG)

  test('is read', () => {
    expect(bert).toMatchObject({
      name: 'bert',
      directory: 'applications/bert',
      executable: ['python3', 'bert.py'],
      logOutput: 'stderr',
      stepsToRecord: 3,
      metrics: [
        { name: 'loss', margin: 0.2, comparison: '<=', pattern: { labels: ['MLM', 'NSP'] } },
        { name: 'accuracy', margin: 0.2, comparison: '>=', pattern: { labels: ['MLM', 'NSP'] } },
      ],
    })
  })

  test('gives the command lines of the older harness', () => {
    expect(gatherCommand(bert, '/s/ckpts', undefined).join(' ')).toBe(
      'python3 bert.py --checkpoint-dir /s/ckpts --epochs-per-save 5 --epochs 200 --steps-per-log 1 --config configs/demo.json',
    )
    expect(runCommand(bert, { checkpoint: '/s/ckpts/model_4:5.onnx', startStep: 4 }, 7).join(' ')).toBe(
      'python3 bert.py --onnx-checkpoint /s/ckpts/model_4:5.onnx --continue-training-from-epoch 4 --epochs 7 --engine-cache cache --no-validation --steps-per-log 1 --config configs/demo.json',
    )
  })

  test('resumes a gather with the flags that a run starts from', () => {
    expect(gatherCommand(bert, '/s/ckpts', { checkpoint: '/s/m', startStep: 4 }).join(' ')).toBe(
      'python3 bert.py --checkpoint-dir /s/ckpts --onnx-checkpoint /s/m --continue-training-from-epoch 4 --epochs-per-save 5 --epochs 200 --steps-per-log 1 --config configs/demo.json',
    )
  })
})

test('the config of the documentation is valid', () => {
  const docs = readFileSync(new URL('../../docs/convergence.md', import.meta.url), 'utf8')
  const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(docs) ?? []
  expect(gatherCommand(onlyTest(yaml), 'known-good/ckpts/base', undefined).join(' ')).toBe(
    'python3 train.py --out known-good/ckpts/base --epochs 200 --config base.json',
  )
})

test('labels that do not fit the groups give way to numbers', () => {
  const raw: any = tinyTest()
  raw.log_parsing.loss = { regex: '(a)(b)', labels: ['MLM'] }
  expect(onlyTest(stringify({ tiny: raw })).metrics[0]?.pattern.labels).toEqual(['0', '1'])
})

test('flag values reach the application as they are written', () => {
  const flags =
    '{ a: {key: -a, value: 1.0}, b: {key: -b, value: 1e-05}, c: {key: -c, value: yes}, d: {key: -d, value: "null"}, e: {key: -e, value: null}, f: {key: -f}, g: {key: -g, value: 2020-01-01} }'
  const text = stringify({ tiny: tinyTest() }).replace('  flags:\n', `  flags:\n    common: ${flags}\n`)
  expect(gatherCommand(onlyTest(text), 'out', undefined).slice(4)).toEqual([
    '-a',
    '1.0',
    '-b',
    '1e-05',
    '-c',
    'yes',
    '-d',
    'null',
    '-e',
    '-f',
    '-g',
    '2020-01-01',
  ])
})

test('an application that counts otherwise is given other numbers', () => {
  const raw: any = tinyTest()
  raw.flags.run.start_step.offset = 1
  raw.flags.run.run_for.counts = 'segment'
  const start = { checkpoint: 'm', startStep: 4 }
  expect(runCommand(onlyTest(stringify({ tiny: raw })), start, 6).slice(2)).toEqual([
    '--from',
    'm',
    '--start',
    '5',
    '--until',
    '2',
  ])
})

test('merge keys and margins without a dot are read as in YAML 1.1', () => {
  const text = stringify({ tiny: tinyTest() })
    .replace('margin: 0.1', 'margin: 1e-1')
    .replace('tiny:', 'tiny: &base')
  const tests = parseConfig(`${text}\nother:\n  <<: *base\n  directory: elsewhere\n`, 'c.yml')
  expect(tests.map(({ name, directory, metrics }) => [name, directory, metrics[0]?.margin])).toEqual([
    ['tiny', 'app', 0.1],
    ['other', 'elsewhere', 0.1],
  ])
})

function onlyTest(text: string): ConvergenceTest {
  const [only] = parseConfig(text, 'c.yml')
  if (only === undefined) throw new Error('no test')
  return only
}

function errorOf(text: string): string {
  try {
    parseConfig(text, 'c.yml')
  } catch (error) {
    if (error instanceof ModelTestError && error.code === 'CONVERGENCE_CONFIG') return error.message
    throw error
  }
  throw new Error('the config is taken')
}
