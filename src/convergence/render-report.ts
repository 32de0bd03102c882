/**
 * A report -> the text that ends a run of the command.
 *
 * Pure.
 */
import { renderFailure } from './explain-end.ts'
import type { GatherResult } from './gather-test.ts'
import { renderCheckpoint, type Paint } from './render-table.ts'
import type { GatherReport, RunReport, TestRun } from './run-convergence.ts'

export function renderReport(report: RunReport | GatherReport, paint: Paint): string {
  const parts =
    report.kind === 'run'
      ? report.tests.map((test) => renderRun(test, paint))
      : report.tests.map((test) => renderGather(test, paint))
  return parts.join('\n\n')
}

function renderRun({ test, outcome, checkpoints }: TestRun, paint: Paint): string {
  const passed = checkpoints.filter((checkpoint) => checkpoint.outcome === 'passed').length
  const colour = outcome === 'passed' ? paint.good : paint.bad
  return [
    ...checkpoints.map((checkpoint) => `${test} ${renderCheckpoint(checkpoint, paint)}`),
    colour(`${test}: ${outcome}, ${passed} of ${checkpoints.length} checkpoints pass`),
  ].join('\n\n')
}

function renderGather({ test, outcome, manifest, checkpoints, failure }: GatherResult, paint: Paint): string {
  const kept = `${checkpoints.length} ${checkpoints.length === 1 ? 'checkpoint' : 'checkpoints'} in ${manifest}`
  if (outcome === 'gathered') return paint.good(`${test}: gathered ${kept}`)
  return [
    paint.bad(`${test}: ${failure === null ? outcome : renderFailure(failure)}`),
    checkpoints.length === 0
      ? 'No checkpoint is complete: gathering again starts over.'
      : `Kept ${kept}. Gathering again goes on from step ${checkpoints.at(-1)?.startStep}; with --fresh it starts over.`,
  ].join('\n')
}
