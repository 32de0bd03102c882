/**
 * The charts of all tests and the values that failed -> one page of HTML that stands alone.
 *
 * Pure.
 */
import type { Chart, ChartPoint, ChartSegment } from './chart-data.ts'
import { escapeMarkup } from './escape-markup.ts'
import { renderChart } from './render-chart.ts'

export function renderPage(charts: readonly Chart[]): string {
  const wrong = charts.flatMap(wrongRows)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Convergence</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Convergence</h1>
${summary(charts, wrong.length)}
${charts.map((chart, index) => `<figure tabindex="0">${renderChart(chart, `chart-${index}`)}</figure>`).join('\n')}
${wrong.length === 0 ? '' : wrongTable(wrong)}
</main>
</body>
</html>
`
}

interface WrongRow {
  readonly chart: Chart
  readonly segment: ChartSegment
  readonly point: ChartPoint
}

function wrongRows(chart: Chart): WrongRow[] {
  return chart.segments.flatMap((segment) =>
    segment.points
      .filter(({ verdict }) => verdict === 'regression' || verdict === 'missing')
      .map((point) => ({ chart, segment, point })),
  )
}

function summary(charts: readonly Chart[], wrong: number): string {
  const points = charts.flatMap(({ segments }) => segments.flatMap((segment) => segment.points))
  const judged = points.filter(({ verdict }) => verdict !== undefined).length
  if (judged === 0) return `<p>${points.length} values recorded.</p>`
  if (wrong === 0) return `<p class="good">All ${judged} values pass.</p>`
  return `<p class="bad">${wrong} of ${judged} values fail.</p>`
}

function wrongTable(rows: readonly WrongRow[]): string {
  const header = ['test', 'metric', 'from step', 'step', 'recorded', 'new run', 'verdict']
  const body = rows.map(({ chart, segment, point }) => {
    const cells = [chart.test, chart.title, segment.startStep, point.step, point.expected.text]
    return row([...cells, point.actual?.text ?? '-', point.verdict ?? ''], 'td')
  })
  return `<details open><summary>Failing values</summary><table><thead>${row(header, 'th')}</thead><tbody>\n${body.join('\n')}\n</tbody></table></details>`
}

function row(cells: readonly (string | number)[], tag: 'td' | 'th'): string {
  const open = tag === 'th' ? '<th scope="col">' : '<td>'
  return `<tr>${cells.map((cell) => `${open}${escapeMarkup(String(cell))}</${tag}>`).join('')}</tr>`
}

const STYLE = `
:root{--paper:#fff;--ink:#1f2328;--line:#d1d9e0;--good:#1a7f37;--bad:#cf222e}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#f0f6fc;--line:#3d444d;--good:#3fb950;--bad:#ff7b72}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px 20px}
h1{font-size:22px;margin:0 0 8px}
.good{color:var(--good);font-weight:600}
.bad{color:var(--bad);font-weight:600}
summary{cursor:pointer;font-weight:600}
table{border-collapse:collapse;margin:12px 0;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--line)}
figure{margin:24px 0;overflow-x:auto;border:1px solid var(--line);border-radius:8px}
figure svg{display:block;min-width:720px}
`.trim()
