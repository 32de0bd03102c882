/**
 * Writes the charts of a report: an SVG for each metric and label of each test, and index.html with
 * all of them.
 *
 * Edge.
 */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ModelTestError } from '../errors.ts'
import { makeFolder } from '../files/make-folder.ts'
import { chartsOfGather, chartsOfRun, type Chart } from './chart-data.ts'
import { renderChart } from './render-chart.ts'
import { renderPage } from './render-page.ts'
import type { GatherReport, RunReport } from './run-convergence.ts'

/** Returns the page. */
export async function writePlots(report: RunReport | GatherReport, folder: string): Promise<string> {
  const charts =
    report.kind === 'run' ? report.tests.flatMap(chartsOfRun) : report.tests.flatMap(chartsOfGather)
  const files = new Map([...fileNames(charts)].map(([name, chart]) => [name, renderChart(chart)]))
  files.set('index.html', renderPage(charts))
  await writeFiles(folder, files)
  return path.join(folder, 'index.html')
}

async function writeFiles(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  try {
    makeFolder(folder)
    await Promise.all([...files].map(([name, text]) => writeFile(path.join(folder, name), text)))
  } catch (error) {
    throw new ModelTestError('FILE_UNWRITABLE', 'the plots cannot be written', {
      file: folder,
      hint: 'Give --plot a folder that can be made and written.',
      cause: error,
    })
  }
}

/** Names that any file system takes, numbered where two would be the same. */
function fileNames(charts: readonly Chart[]): Map<string, Chart> {
  const names = new Map<string, Chart>()
  for (const chart of charts) {
    const base = [chart.test, chart.metric, chart.label].join('_').replaceAll(/[^\w.-]+/g, '-')
    let name = `${base}.svg`
    for (let number = 2; names.has(name); number++) name = `${base}-${number}.svg`
    names.set(name, chart)
  }
  return names
}
