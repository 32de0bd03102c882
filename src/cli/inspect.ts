/** `vitest-onnx inspect <model>`: what a model is made of, without loading its weights. */
import { statSync } from 'node:fs'
import { Command } from 'commander'
import { externalPath, openModel } from '../files/model-file.ts'
import { type ModelSummary, summarizeModel, type ValueSummary } from '../onnx/summary.ts'
import { bytesText, heading, print, printJson, safe, table } from './output.ts'

interface InspectOptions {
  readonly json?: true
  readonly values?: true
}

export function inspectCommand(): Command {
  return new Command('inspect')
    .summary('show what a model is made of')
    .description(
      'Shows inputs, outputs, operators, parameters and files of an ONNX model. Weights are not read.',
    )
    .argument('<model>', 'an .onnx file')
    .option('--values', 'list the names of all values of the main graph')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ vitest-onnx inspect testdata/onnx_models/example-matmul.onnx')
    .action(inspect)
}

function inspect(path: string, options: InspectOptions): void {
  const file = openModel(path)
  try {
    const summary = {
      file: path,
      bytes: file.model.source.size,
      ...summarizeModel(file.model),
      ...(options.values ? { values: valueNames(file.model) } : {}),
    }
    const externalFiles = summary.externalFiles.map((entry) => ({
      ...entry,
      ...fileState(path, entry.location),
    }))
    if (options.json) printJson({ ...summary, externalFiles })
    else print(render({ ...summary, externalFiles }))
  } finally {
    file.close()
  }
}

function valueNames({ graph }: { readonly graph: ReturnType<typeof openModel>['model']['graph'] }): string[] {
  const names = [...graph.inputs, ...graph.initializers].map(({ name }) => name)
  for (const node of graph.nodes) names.push(...node.outputs)
  return [...new Set(names)].filter((name) => name !== '')
}

/** Whether an external file is there, or why it cannot be used. */
function fileState(
  modelPath: string,
  location: string,
): { readonly fileBytes: number | null; readonly problem: string | null } {
  try {
    return { fileBytes: statSync(externalPath(modelPath, location, location)).size, problem: null }
  } catch (error) {
    return { fileBytes: null, problem: (error as Error).message }
  }
}

type Shown = Omit<ModelSummary, 'externalFiles'> & {
  readonly file: string
  readonly bytes: number
  readonly values?: readonly string[]
  readonly externalFiles: readonly (ModelSummary['externalFiles'][number] & ReturnType<typeof fileState>)[]
}

function render(shown: Shown): string {
  const sections = [
    `${heading(safe(shown.file))}  ${bytesText(shown.bytes)}`,
    table([
      ['IR version', String(shown.irVersion)],
      ['producer', shown.producer === '' ? '-' : shown.producer],
      ['opsets', shown.opsets.map(({ domain, version }) => `${domain} ${version}`).join(', ') || '-'],
      ['nodes', nodesText(shown)],
      [
        'parameters',
        `${shown.parameters.count.toLocaleString('en-US')} (${bytesText(shown.parameters.bytes)})`,
      ],
      ['dynamic dims', dimsText(shown)],
      ...(shown.functions.length === 0 ? [] : [['functions', shown.functions.join(', ')]]),
    ]),
    section('Inputs', shown.inputs.map(valueRow)),
    section('Outputs', shown.outputs.map(valueRow)),
    section('Operators', Object.entries(shown.ops)),
    section(
      'Parameters',
      Object.entries(shown.parameters.byDtype).map(([dtype, { tensors, count, bytes }]) => [
        dtype,
        `${count.toLocaleString('en-US')} in ${tensors} tensors`,
        bytesText(bytes),
      ]),
    ),
    section(
      'External files',
      shown.externalFiles.map(({ location, tensors, bytes, fileBytes, problem }) => [
        location,
        `${bytesText(bytes)} in ${tensors} tensors`,
        problem ?? `file of ${bytesText(fileBytes ?? 0)}`,
      ]),
    ),
    section(
      'Metadata',
      Object.entries(shown.metadata).map(([key, value]) => [key, shorten(value)]),
    ),
    section(
      'Values',
      (shown.values ?? []).map((name) => [name]),
    ),
  ]
  return sections.filter((text) => text !== '').join('\n\n')
}

function section(title: string, rows: readonly (readonly (string | number)[])[]): string {
  return rows.length === 0 ? '' : `${heading(title)}\n${table(rows)}`
}

function valueRow({ name, type, shape }: ValueSummary): string[] {
  return [name, type, shape === null ? '' : `[${shape.map((dim) => dim ?? '?').join(', ')}]`]
}

function nodesText({ nodes, subgraphs }: Shown): string {
  if (subgraphs.count === 0) return String(nodes.total)
  return `${nodes.total}, of which ${nodes.topLevel} at the top; ${subgraphs.count} subgraphs, ${subgraphs.depth} deep`
}

function dimsText({ dynamicDims: { named, unnamed } }: Shown): string {
  const parts = [...named, ...(unnamed === 0 ? [] : [`${unnamed} without a name`])]
  return parts.length === 0 ? 'none' : parts.join(', ')
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}
