import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseMetricThresholds } from '../../src/compare/metric-thresholds.ts'
import { matchesPattern } from '../../src/compare/name-pattern.ts'
import { parseThresholds, resolveThreshold, type ThresholdCase } from '../../src/compare/thresholds.ts'
import { DEFAULT_TOLERANCE, NAMED_TOLERANCES } from '../../src/compare/tolerance.ts'

const where: ThresholdCase = {
  model: 'resnet50',
  layer: 'resnet50_layer_Softmax_7',
  opTypes: ['Softmax'],
  target: 'webgpu',
  chip: 'default',
  dtype: 'float16',
}

describe('of two rules that apply', () => {
  test.each<[string, object, object]>([
    [
      'a layer beats a model with everything else',
      { layer: 'resnet50_layer_Softmax_7' },
      { model: 'resnet50', op: 'Softmax', target: 'webgpu', chip: 'default', dtype: 'float16' },
    ],
    ['a model beats an op', { model: 'resnet50' }, { op: 'Softmax', target: 'webgpu' }],
    ['an op beats a chip', { op: 'Softmax' }, { chip: 'default', target: 'webgpu' }],
    ['a chip beats a target', { chip: 'default' }, { target: 'webgpu' }],
    ['a target beats a dtype', { target: 'webgpu' }, { dtype: 'float16' }],
    ['a dtype beats none', { dtype: 'float16' }, {}],
    ['a name beats a pattern', { model: 'resnet50' }, { model: 'resnet*', op: 'Softmax' }],
    ['a pattern beats none', { model: 'res*' }, { op: 'Softmax' }],
    ['more of the same beats less', { op: 'Softmax', target: 'webgpu' }, { op: 'Softmax' }],
  ])('%s, whatever the order', (_, stronger, weaker) => {
    const rules = [
      { ...stronger, tolerance: 0.5 },
      { ...weaker, tolerance: 0.1 },
    ]
    for (const written of [rules, rules.toReversed()]) {
      expect(resolveThreshold(parseThresholds({ rules: written }), where).tolerance.fpMaxTol).toBe(0.5)
    }
  })

  test('the last wins if they are equal', () => {
    const rules = [
      { op: 'Soft*', tolerance: 0.1 },
      { op: '*max', tolerance: 0.2 },
    ]
    expect(resolveThreshold(parseThresholds({ rules }), where).tolerance.fpMaxTol).toBe(0.2)
  })
})

test('a rule for an operator applies to a layer of several', () => {
  const group = { ...where, opTypes: ['Clip', 'Conv'] }
  const given = (op: string): number =>
    resolveThreshold(parseThresholds({ rules: [{ op, tolerance: 0.5 }] }), group).tolerance.fpMaxTol
  expect(['Conv', 'Clip', 'C*', 'Con'].map(given)).toEqual([0.5, 0.5, 0.5, DEFAULT_TOLERANCE.fpMaxTol])
})

test.each([
  [{ op: 'Softmax', target: 'webgpu' }, 'thresholds.json: op Softmax on webgpu'],
  [{ model: 'res*', op: 'Softmax' }, 'thresholds.json: model res*, op Softmax'],
  [
    { layer: '*_7', target: 'webgpu', chip: 'default', dtype: 'float16' },
    'thresholds.json: layer *_7 on webgpu chip default in float16',
  ],
  [{ chip: 'default' }, 'thresholds.json: every case on chip default'],
  [{}, 'thresholds.json: every case'],
  [{ reason: 'why not' }, 'thresholds.json: every case (why not)'],
])('the origin of %j reads like a sentence', (rule, origin) => {
  expect(resolveThreshold(parseThresholds({ rules: [{ ...rule, tolerance: 0.1 }] }), where).origin).toBe(
    origin,
  )
})

test('a rule gives the whole tolerance, on top of the base', () => {
  const base = { ...DEFAULT_TOLERANCE, intTol: 9 }
  const rules = [{ tolerance: { allowed_wrong: 0.5 } }, { op: 'Softmax', tolerance: { epsilon: 1 } }]
  expect(resolveThreshold(parseThresholds({ rules }, 't.json', base), where)).toEqual({
    tolerance: { ...base, epsilon: 1 },
    origin: 't.json: op Softmax',
  })
})

test('a rule that names what the case has not does not apply', () => {
  const table = parseThresholds({ rules: [{ op: '*', tolerance: 0.1 }] })
  expect(resolveThreshold(table, { model: 'resnet50' })).toEqual({
    tolerance: DEFAULT_TOLERANCE,
    origin: 'default',
  })
  const fallback = { tolerance: NAMED_TOLERANCES.fp16, origin: 'vitest.config.ts' }
  expect(resolveThreshold(table, {}, fallback)).toBe(fallback)
})

test.each<[unknown, string]>([
  [{}, 'thresholds.json: not a threshold table at rules: '],
  [
    { rules: [{ ops: 'Softmax', tolerance: 1 }] },
    'thresholds.json: not a threshold table at rules.0: there is no key ops',
  ],
  [{ rules: [{ op: 'Softmax' }] }, 'thresholds.json: not a threshold table at rules.0.tolerance: '],
  [
    { rules: [{ tolerance: 0.1 }, { tolerance: 'fp17' }] },
    'thresholds.json, rule 2: "fp17" is no name of a tolerance',
  ],
])('%j is refused', (json, message) => {
  expect(() => parseThresholds(json)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
  )
})

describe('a pattern', () => {
  test.each([
    ['res*', 'resnet50', true],
    ['*50', 'resnet50', true],
    ['r*n*0', 'resnet50', true],
    ['*', '', true],
    ['a*a', 'a', false],
    ['a*b*a', 'aba', true],
    ['a*b*ba', 'aba', false],
    ['a.c', 'abc', false],
    ['abc', 'abc', true],
    ['ab', 'abc', false],
  ])('%s against %s: %s', (pattern, name, expected) => {
    expect(matchesPattern(pattern, name)).toBe(expected)
  })

  test('does what the regular expression does', () => {
    fc.assert(
      fc.property(text(['a', 'b', '*']), text(['a', 'b']), (pattern, name) => {
        expect(matchesPattern(pattern, name)).toBe(
          new RegExp(`^${pattern.replaceAll(/\*+/g, '.*')}$`).test(name),
        )
      }),
      { numRuns: 1000 },
    )
  })
})

describe('thresholds of metrics', () => {
  test('are by model or by layer', () => {
    const json = { model_id: 'org/m', ce: 2.4, abs_diff: { 'layers.0': 0.4 } }
    expect(parseMetricThresholds(json, 'm-thresholds.json')).toEqual({
      modelId: 'org/m',
      model: new Map([['ce', 2.4]]),
      layers: new Map([['abs_diff', new Map([['layers.0', 0.4]])]]),
    })
  })

  test.each([[{ ce: 1 }], [{ model_id: 'm', ce: 'high' }], [[]]])('%j is refused', (json) => {
    expect(() => parseMetricThresholds(json, 'm-thresholds.json')).toThrow(
      /m-thresholds.json: not a file of metric/,
    )
  })
})

function text(unit: readonly string[]): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...unit), maxLength: 8 })
}
