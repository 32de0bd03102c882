/**
 * The last lines of a run: where its time went, per step over all tests of models.
 *
 * Reads what the tests left in their meta, so that it works for merged blob reports too.
 */
import type { Reporter, TestModule, Vitest } from 'vitest/node'
import { textTable } from '../compare/text-table.ts'
import type { OnnxMeta } from './timings.ts'

export class TimesReporter implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const steps = stepsOf(modules)
    if (steps.size === 0) return
    const rows = [...steps].map(([step, { total, count }]) => [
      step,
      `${total.toFixed(0)} ms`,
      String(count),
      `${(total / count).toFixed(2)} ms`,
    ])
    const lines = textTable([['step', 'total', 'count', 'average'], ...rows], [1, 2, 3])
    this.#vitest?.logger.log(
      `\n Where the time of the model tests went\n${lines.map((line) => `  ${line}`).join('\n')}\n`,
    )
  }
}

interface Step {
  total: number
  count: number
}

function stepsOf(modules: readonly TestModule[]): Map<string, Step> {
  const steps = new Map<string, Step>()
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { onnx } = test.meta() as { onnx?: OnnxMeta }
      for (const [step, ms] of Object.entries(onnx?.timings ?? {})) {
        const known = steps.get(step) ?? { total: 0, count: 0 }
        steps.set(step, { total: known.total + ms, count: known.count + 1 })
      }
    }
  }
  return steps
}
