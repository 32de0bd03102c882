import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareValue, numberFromLog } from '../../src/convergence/compare-value.ts'
import { COMPARISONS, type Comparison } from '../../src/convergence/config-schema.ts'

describe('the comparison rule', () => {
  test.each<
    [comparison: Comparison, margin: number, expected: string, passes: string[], regresses: string[]]
  >([
    ['==', 0.1, '10', ['9', '9.5', '10', '11'], ['8.99', '11.01']],
    ['==', 0, '10', ['10', '10.0', '1e1'], ['10.0000001', '9.9']],
    ['!=', 0.1, '10', ['8.99', '11.01'], ['9', '10', '11']],
    ['<=', 0.1, '10', ['-5', '10', '11'], ['11.01']],
    ['<', 0.1, '10', ['-5', '10', '10.99'], ['11', '11.01']],
    ['<', 0, '10', ['9.99'], ['10', '10.01']],
    ['>=', 0.1, '10', ['9', '10', '99'], ['8.99']],
    ['>', 0.1, '10', ['9.01', '10', '99'], ['9', '8.99']],
    ['>', 0, '10', ['10.01'], ['10']],
    // The margin of a negative value widens as well.
    ['<=', 0.1, '-10', ['-11', '-10', '-9'], ['-8.99']],
    ['>=', 0.1, '-10', ['-11', '-9'], ['-11.01']],
    // The margin of 0 is 0.
    ['==', 0.5, '0', ['0', '-0.0'], ['1e-9']],
    // The edge is inside, whatever binary rounding makes of it.
    ['<=', 0.1, '0.7', ['0.77'], ['0.7701']],
    ['==', 0.05, '1.1', ['1.155', '1.045'], ['1.1551']],
  ])('%s with margin %d of %s', (comparison, margin, expected, passes, regresses) => {
    const verdict = (actual: string): string => compareValue(actual, expected, { margin, comparison })
    expect(passes.filter((actual) => verdict(actual) !== 'pass')).toEqual([])
    expect(regresses.filter((actual) => verdict(actual) !== 'regression')).toEqual([])
  })

  test.each(COMPARISONS)(
    '%s: nan, inf and words against a number are regressions, and the other way round',
    (comparison) => {
      const rule = { margin: 0.5, comparison }
      for (const actual of ['nan', '-nan', 'inf', '-inf', 'Infinity', 'oops', '']) {
        expect(compareValue(actual, '1', rule)).toBe('regression')
      }
      expect(compareValue('1', 'nan', rule)).toBe('regression')
      expect(compareValue('1', 'oops', rule)).toBe('regression')
      expect(compareValue(undefined, '1', rule)).toBe('missing')
    },
  )

  test.each<[Comparison, string, string, string]>([
    ['==', 'nan', 'nan', 'pass'],
    ['<=', 'nan', 'nan', 'pass'],
    ['<', 'nan', 'nan', 'regression'],
    ['!=', 'nan', 'nan', 'regression'],
    ['==', 'inf', 'inf', 'pass'],
    ['==', '-inf', 'inf', 'regression'],
    ['<=', '5', 'inf', 'pass'],
    ['>=', '5', 'inf', 'regression'],
    ['<', 'inf', 'inf', 'regression'],
  ])('%s: %s against a record of %s is a %s', (comparison, actual, expected, verdict) => {
    expect(compareValue(actual, expected, { margin: 0.5, comparison })).toBe(verdict)
  })

  test('without a margin is the operator itself', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), fc.double({ noNaN: true, noDefaultInfinity: true }), (a, e) => {
        fc.pre(Number.isFinite(a))
        const operators: Record<Comparison, boolean> = {
          '==': a === e,
          '!=': a !== e,
          '<=': a <= e,
          '<': a < e,
          '>=': a >= e,
          '>': a > e,
        }
        for (const comparison of COMPARISONS) {
          expect(compareValue(String(a), String(e), { margin: 0, comparison })).toBe(
            operators[comparison] ? 'pass' : 'regression',
          )
        }
      }),
    )
  })

  test('a wider margin never turns a pass into a regression, but for !=', () => {
    const value = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 })
    fc.assert(
      fc.property(
        value,
        value,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(...COMPARISONS),
        (a, e, margin, comparison) => {
          fc.pre(comparison !== '!=')
          const narrow = compareValue(String(a), String(e), { margin, comparison })
          const wide = compareValue(String(a), String(e), { margin: margin * 2, comparison })
          expect(narrow === 'pass' && wide !== 'pass').toBe(false)
        },
      ),
    )
  })
})

test.each([
  ['1', 1],
  ['-1.5', -1.5],
  ['+.5', 0.5],
  ['5.', 5],
  ['1e-3', 0.001],
  ['1.5E+05', 150_000],
  ['1_000.5', 1000.5],
  [' 2 ', 2],
  ['-inf', Number.NEGATIVE_INFINITY],
  ['+Infinity', Number.POSITIVE_INFINITY],
  ['NAN', Number.NaN],
  ['0x10', undefined],
  ['1,5', undefined],
  ['', undefined],
  ['.', undefined],
  ['1e', undefined],
])('the logged text "%s" is the number %s', (text, value) => {
  expect(numberFromLog(text)).toEqual(value)
})
