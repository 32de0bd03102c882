import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseThresholds } from '../../src/compare/thresholds.ts'
import { ModelTestError } from '../../src/errors.ts'
import {
  ENVIRONMENT_VARIABLES,
  environmentTable,
  environmentWarnings,
  readEnvironment,
} from '../../src/suite/environment.ts'
import { type OnnxOptions, resolveConfig } from '../../src/suite/options.ts'
import { parseSidecar } from '../../src/suite/sidecar.ts'

test('the defaults', () => {
  expect(resolveConfig(undefined, '/p', {})).toEqual({
    root: '/p',
    testdata: '/p/testdata',
    output: '/p/.vitest-onnx/tests',
    targets: [{ name: 'sim', isNamed: false }],
    chips: ['default'],
    shapes: { forced: {}, general: {} },
    groups: [['Conv', 'Clip']],
    dedup: false,
    seed: 1234,
    layers: true,
    fullModel: true,
    inputs: 'activations',
    timeouts: { compile: 300, run: 240 },
    cacheDir: '/p/node_modules/.cache/vitest-onnx',
    maxTestsPerFile: 1000,
    recompute: false,
    tryXfails: false,
    fromEnvironment: [],
  })
})

test('the environment goes before options', () => {
  const options: OnnxOptions = {
    targets: ['cpu'],
    seed: 1,
    tolerance: 0.5,
    timeouts: { run: 5 },
    shapes: { n: 2 },
  }
  const env = {
    ONNX_TEST_TARGETS: 'webgpu',
    ONNX_TEST_SEED: '7',
    ONNX_TEST_TOLERANCE: 'fp16',
    ONNX_TEST_SHAPES: 'n=3',
  }
  expect(resolveConfig(options, '/p', env)).toMatchObject({
    targets: [{ name: 'webgpu', isNamed: true }],
    seed: 7,
    toleranceOrigin: 'ONNX_TEST_TOLERANCE',
    timeouts: { compile: 300, run: 5 },
    shapes: { forced: { n: [3] }, general: { n: [2] } },
  })
  expect(resolveConfig(options, '/p', {})).toMatchObject({
    tolerance: { fpMaxTol: 0.5 },
    toleranceOrigin: 'the option tolerance',
  })
})

test('a module as a target is named by its file', () => {
  const { targets } = resolveConfig({ targets: ['./targets/my-npu.ts', 'cpu', 'cpu'] }, '/p', {})
  expect(targets).toEqual([
    { name: 'my_npu', module: '/p/targets/my-npu.ts', isNamed: false },
    { name: 'cpu', isNamed: false },
  ])
})

test('a configuration travels as JSON', () => {
  const config = resolveConfig({ tolerance: 'bf16', shapes: { n: [1, 2] } }, '/p', { ONNX_TEST_SEED: '3' })
  expect(JSON.parse(JSON.stringify(config))).toEqual(config)
})

test.each([
  [{ seed: -1 }, 'onnx({ seed: -1 }): must be a whole number from 0 on'],
  [{ inputs: 'zeros' }, 'onnx({ inputs: "zeros" }): must be "activations" or "random"'],
  [{ targets: 'cpu' }, 'onnx({ targets: "cpu" }): must be a list of names'],
  [{ shapes: { n: [-1] } }, 'onnx({ shapes.n.0: -1 }): must be a size such as 4, or a list of sizes'],
  [{ shapes: { n: 'big' } }, 'onnx({ shapes.n: "big" }): must be a size such as 4, or a list of sizes'],
  [{ timeouts: { run: 0 } }, 'onnx({ timeouts.run: 0 }): must be more than 0 and at most 86400 seconds'],
  [{ timeouts: { run: 1e9 } }, 'onnx({ timeouts.run: 1000000000 }): must be more than 0 and at most 86400'],
  [{ timeouts: { runs: 1 } }, 'onnx({ timeouts.runs }): there is no such option'],
  [{ seed: Number.NaN }, 'onnx({ seed: NaN }): must be a whole number from 0 on'],
  [
    { tolerance: null },
    'onnx({ tolerance: null }): must be a number, the name of a tolerance, or its fields',
  ],
  ['sim', 'onnx("sim"): must be called with an object of options'],
  [{ groups: [['Conv']] }, 'onnx({ groups.0: ["Conv"] }): must have two or more op types'],
  [{ target: ['cpu'] }, 'onnx({ target }): there is no such option'],
  [{ tolerance: 'fp17' }, 'onnx({ tolerance }): "fp17" is no name of a tolerance'],
])('option %j is refused', (options, message) => {
  expect(() => resolveConfig(options as OnnxOptions, '/p', {})).toThrow(message)
})

test.each([
  ['ONNX_TEST_SHAPES', 'batch=1,4;seq=16', { shapes: { batch: [1, 4], seq: [16] } }],
  ['ONNX_TEST_SHAPES', 'past + 1=3', { shapes: { 'past + 1': [3] } }],
  ['FMS_TEST_SHAPES_COMMON_BATCH_SIZES', '1,2', { batchSizes: [1, 2] }],
  ['ONNX_TEST_TRY_XFAILS', 'yes', { tryXfails: true }],
  ['ONNX_TEST_RECOMPUTE', '0', { recompute: false }],
  ['ONNX_TEST_RUN_TIMEOUT', '0.5', { runTimeout: 0.5 }],
  ['ONNX_TEST_SEED', '  ', {}],
])('%s=%s is read', (name, value, settings) => {
  expect(readEnvironment({ [name]: value })).toEqual(settings)
})

test.each([
  ['ONNX_TEST_SHAPES', 'batch'],
  ['ONNX_TEST_SHAPES', 'batch=x'],
  ['ONNX_TEST_SHAPES', '=4'],
  ['ONNX_TEST_SEQ_LENGTHS', '1,,2'],
  ['ONNX_TEST_SEED', '1.5'],
  ['ONNX_TEST_RUN_TIMEOUT', '-1'],
  ['ONNX_TEST_RUN_TIMEOUT', '1e9'],
  ['ONNX_TEST_COMPILE_TIMEOUT', 'Infinity'],
  ['ONNX_TEST_RECOMPUTE', 'maybe'],
  ['ONNX_TEST_INPUTS', 'zeros'],
  ['ONNX_TEST_TARGETS', 'sim,,cpu'],
])('%s=%s is refused with what is allowed', (name, value) => {
  const { allowed } = ENVIRONMENT_VARIABLES.find((variable) => variable.name === name)!
  expect(() => readEnvironment({ [name]: value })).toThrow(`${name}=${value}: allowed is ${allowed}`)
})

test('the example of every variable is allowed, and the table shows every variable', () => {
  for (const { name, example, setting } of ENVIRONMENT_VARIABLES) {
    expect(readEnvironment({ [name]: example }), name).toHaveProperty(setting)
    expect(environmentTable()).toContain(`\`${name}\``)
  }
})

test('an unknown variable gets a warning with the closest name', () => {
  expect(environmentWarnings({ ONNX_TEST_CHIP: 'a', ONNX_TEST_SEED: '1', OTHER: '' })).toEqual([
    'ONNX_TEST_CHIP is not known and has no effect; did you mean ONNX_TEST_CHIPS?',
  ])
})

const ODD = [
  null,
  true,
  -1,
  1.5,
  Number.NaN,
  Infinity,
  1n,
  '',
  'x',
  [],
  [null],
  [[]],
  [['', 1]],
  {},
  { a: null },
]

const FIELDS_OF_ALL =
  'testdata output targets chips shapes groups dedup seed tolerance thresholds layers fullModel inputs timeouts ' +
  'cacheDir maxTestsPerFile layerInputs tolerances xfails skip'

/** What zod says where nobody else says anything. */
const OF_ZOD = /invalid|expected|received|too (small|big)|unrecognized/i

test.each(FIELDS_OF_ALL.split(' '))(
  '%s: whatever is wrong with it, the message says what is allowed',
  (field) => {
    const odd = [...ODD, { compile: '1' }, { n: { range: [Number.NaN, 1] } }, { n: 1 }, { n: { seed: 'x' } }]
    for (const value of odd) {
      expect(refusal(() => resolveConfig({ [field]: value }, '/p', {}))).not.toMatch(OF_ZOD)
      const yaml = stringify({ [field]: value })
      expect(
        refusal(() => parseSidecar(yaml, 'm.test.yaml')),
        yaml,
      ).not.toMatch(OF_ZOD)
    }
  },
)

test('fields of a tolerance and of a threshold table say what is allowed', () => {
  for (const value of ODD) {
    for (const field of ['fp_max_tol', 'allowed_wrong', 'min_cosine', 'min_sqnr', 'skip_nan_check'])
      expect(refusal(() => resolveConfig({ tolerance: { [field]: value } }, '/p', {}))).not.toMatch(OF_ZOD)
    for (const table of [
      value,
      { rules: value },
      { rules: [value] },
      { rules: [{ op: value, tolerance: 1 }] },
    ])
      expect(refusal(() => parseThresholds(table))).not.toMatch(OF_ZOD)
  }
})

function refusal(work: () => unknown): string {
  try {
    work()
    return ''
  } catch (error) {
    expect(error).toBeInstanceOf(ModelTestError)
    return (error as Error).message
  }
}

function hintOf(yaml: string): unknown {
  try {
    return parseSidecar(yaml, 'm.test.yaml')
  } catch (error) {
    return [(error as ModelTestError).message, (error as ModelTestError).hint]
  }
}

test('the fields that a hint names are those of the place', () => {
  expect(hintOf('inputs: { ids: { rnge: [0, 1] } }')).toEqual([
    'm.test.yaml: inputs.ids.rnge: there is no such field',
    'An input has range, seed, file; files go from the folder of the sidecar.',
  ])
  expect(hintOf('shape: {}')).toEqual([
    'm.test.yaml: shape: there is no such field',
    expect.stringMatching(/^The fields are shapes, inputs, /),
  ])
})
