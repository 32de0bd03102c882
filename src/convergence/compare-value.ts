/**
 * The comparison rule: (actual, expected, margin, comparison) -> verdict.
 *
 * Pure. The margin is a proportion of the expected value and widens every comparison, `<` and `>`
 * included. Values are texts as logged. A value that is nan, infinite or no number where the record
 * is finite is a regression under every comparison: a training that diverged has not improved.
 */
import type { Comparison } from './config-schema.ts'

export type ValueVerdict = 'pass' | 'regression' | 'missing'

export interface ComparisonRule {
  readonly margin: number
  readonly comparison: Comparison
}

export function compareValue(
  actual: string | undefined,
  expected: string,
  rule: ComparisonRule,
): ValueVerdict {
  if (actual === undefined) return 'missing'
  return holds(numberFromLog(actual), numberFromLog(expected), rule) ? 'pass' : 'regression'
}

/** What `float()` of Python reads: exponents, nan, inf, digits grouped by `_`; undefined for the rest. */
export function numberFromLog(text: string): number | undefined {
  const word = text.trim().toLowerCase()
  const special = /^([+-]?)(nan|inf|infinity)$/.exec(word)
  if (special !== null)
    return special[2] === 'nan' ? Number.NaN : signed(special[1], Number.POSITIVE_INFINITY)
  return /^[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?$/.test(word)
    ? Number(word.replaceAll('_', ''))
    : undefined
}

/** The lowest and the highest value that pass, as far as there is one. */
export function allowedRange(
  expected: number,
  { margin, comparison }: ComparisonRule,
): [low: number, high: number] {
  const band = margin * Math.abs(expected)
  if (comparison === '==') return [expected - band, expected + band]
  if (comparison === '!=') return [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  return comparison.startsWith('<')
    ? [Number.NEGATIVE_INFINITY, expected + band]
    : [expected - band, Number.POSITIVE_INFINITY]
}

function holds(actual: number | undefined, expected: number | undefined, rule: ComparisonRule): boolean {
  if (actual === undefined || expected === undefined) return false
  if (Number.isNaN(actual) || Number.isNaN(expected)) return bothNan(actual, expected) && allowsEqual(rule)
  if (!Number.isFinite(expected)) return holdsExactly(actual, expected, rule.comparison)
  return Number.isFinite(actual) && holdsWithMargin(actual, expected, rule)
}

function holdsWithMargin(actual: number, expected: number, { margin, comparison }: ComparisonRule): boolean {
  const band = margin * Math.abs(expected)
  switch (comparison) {
    case '==':
      return isWithin(actual, expected, band)
    case '!=':
      return !isWithin(actual, expected, band)
    case '<=':
      return actual <= expected || isWithin(actual, expected, band)
    case '>=':
      return actual >= expected || isWithin(actual, expected, band)
    case '<':
      return actual < expected + band
    case '>':
      return actual > expected - band
  }
}

/** An infinite record has no margin. */
function holdsExactly(actual: number, expected: number, comparison: Comparison): boolean {
  switch (comparison) {
    case '==':
      return actual === expected
    case '!=':
      return actual !== expected
    case '<=':
      return actual <= expected
    case '>=':
      return actual >= expected
    case '<':
      return actual < expected
    case '>':
      return actual > expected
  }
}

/** The edge of the band counts as inside, whatever binary rounding makes of 0.7 + 10 % = 0.77. */
function isWithin(actual: number, expected: number, band: number): boolean {
  const rounding = band === 0 ? 0 : 4 * Number.EPSILON * Math.abs(expected)
  return Math.abs(actual - expected) <= band + rounding
}

function bothNan(actual: number, expected: number): boolean {
  return Number.isNaN(actual) && Number.isNaN(expected)
}

function allowsEqual({ comparison }: ComparisonRule): boolean {
  return comparison === '==' || comparison === '<=' || comparison === '>='
}

function signed(sign: string | undefined, value: number): number {
  return sign === '-' ? -value : value
}
