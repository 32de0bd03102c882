/**
 * The last lines of a run: where its time went, per step over all tests of models; why some were
 * skipped; which known failures are none any more.
 *
 * Reads what the tests left in their meta, so that it works for merged blob reports too. Where no
 * reporter for people prints, the output may be read by a program, and nothing is added to it.
 */
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'
import { textTable } from '../compare/text-table.ts'
import type { OnnxMeta } from './timings.ts'

export class TimesReporter implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#vitest === undefined || !printsForPeople(this.#vitest)) return
    const tests = modules.flatMap((module) => [...module.children.allTests()]).filter(isOfModel)
    const sections = [...timeLines(tests), ...skipLines(tests), ...unexpectedPassLines(tests)]
    if (sections.length > 0) this.#vitest.logger.log(`\n${sections.join('\n')}\n`)
  }
}

/** The others write JSON, XML, TAP, a file or, like `hanging-process`, nothing; of a reporter of the user's own nobody knows. */
const FOR_PEOPLE = new Set(['agent', 'basic', 'default', 'dot', 'minimal', 'tree', 'verbose'])

function printsForPeople({ config: { reporters } }: Vitest): boolean {
  return reporters.some((reporter) => Array.isArray(reporter) && FOR_PEOPLE.has(String(reporter[0])))
}

function isOfModel(test: TestCase): boolean {
  return 'onnx' in test.meta()
}

function timeLines(tests: readonly TestCase[]): string[] {
  const steps = stepsOf(tests)
  if (steps.size === 0) return []
  const rows = [...steps].map(([step, { total, count }]) => [
    step,
    `${total.toFixed(0)} ms`,
    String(count),
    `${(total / count).toFixed(2)} ms`,
  ])
  const lines = textTable([['step', 'total', 'count', 'average'], ...rows], [1, 2, 3])
  return [' Where the time of the model tests went', ...lines.map((line) => `  ${line}`)]
}

/** Vitest's default reporter does not say why tests of a file that passes were skipped. */
function skipLines(tests: readonly TestCase[]): string[] {
  const counts = new Map<string, number>()
  for (const test of tests) {
    const result = test.result()
    if (result.state !== 'skipped' || result.note === undefined) continue
    counts.set(result.note, (counts.get(result.note) ?? 0) + 1)
  }
  if (counts.size === 0) return []
  const rows = [...counts].toSorted(([, a], [, b]) => b - a).map(([why, count]) => [String(count), why])
  return [' Model tests skipped', ...shortened(textTable(rows, [0]))]
}

function unexpectedPassLines(tests: readonly TestCase[]): string[] {
  const notes = tests.flatMap((test) =>
    test
      .annotations()
      .filter(({ type }) => type === 'xpass')
      .map(({ message }) => `${test.name}: ${message}`),
  )
  return notes.length === 0 ? [] : [' Known failures that pass', ...shortened(notes)]
}

const MOST_LINES = 10

function shortened(lines: readonly string[]): string[] {
  const more = lines.length - MOST_LINES
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${line}`)
  return more > 0 ? [...shown, `  and ${more} more`] : shown
}

interface Step {
  total: number
  count: number
}

function stepsOf(tests: readonly TestCase[]): Map<string, Step> {
  const steps = new Map<string, Step>()
  for (const test of tests) {
    const { onnx } = test.meta() as { onnx?: OnnxMeta }
    for (const [step, ms] of Object.entries(onnx?.timings ?? {})) {
      const known = steps.get(step) ?? { total: 0, count: 0 }
      steps.set(step, { total: known.total + ms, count: known.count + 1 })
    }
  }
  return steps
}
