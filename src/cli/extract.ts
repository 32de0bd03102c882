/** `vitest-onnx extract <model> --from a,b --to c -o out.onnx`: the nodes between some values. */
import { Command } from 'commander'
import { ModelTestError } from '../errors.ts'
import { openModel } from '../files/model-file.ts'
import { writeFileAtomic } from '../files/write-file.ts'
import { composeModel } from '../graph/compose.ts'
import { cutPrefix, cutRange, findValue } from '../graph/cut.ts'
import { type ScopedGraph, type Value } from '../graph/resolve.ts'
import { typeModel } from '../suite/layers.ts'
import { print, printJson, startProgress } from './output.ts'
import { noteFailure } from './runtime-note.ts'

interface ExtractOptions {
  readonly from?: readonly string[]
  readonly to: readonly string[]
  readonly output: string
  readonly json?: true
}

export function extractCommand(): Command {
  return new Command('extract')
    .summary('cut out the nodes between some values')
    .description(
      'Writes the part of an ONNX model that computes --to from --from.\n' +
        "Without --from, everything from the model's inputs up to --to.",
    )
    .argument('<model>', 'an .onnx file')
    .option('--from <values>', 'values to start from, with commas between; repeatable', addNames)
    .requiredOption('--to <values>', 'values to compute, with commas between; repeatable', addNames)
    .requiredOption('-o, --output <file>', 'the .onnx file to write')
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  $ vitest-onnx extract model.onnx --from conv1_out --to relu3_out -o piece.onnx',
    )
    .action(extract)
}

async function extract(path: string, options: ExtractOptions): Promise<void> {
  const file = openModel(path)
  const progress = startProgress(file.stem)
  try {
    progress.update('reading types')
    const { graph, types, failure } = await typeModel(file)
    const to = findValues(graph, options.to)
    const cut =
      options.from === undefined ? cutPrefix(graph, to) : cutRange(graph, findValues(graph, options.from), to)
    const model = composeModel({ ...cut, model: file.model, name: file.stem }, types.get.bind(types), {
      kind: 'inline',
      external: file.external.bind(file),
    })
    if (model.size > MAX_MODEL_BYTES) throw tooLarge(path, model.size)
    writeFileAtomic(options.output, model.chunks())
    progress.done()
    const summary = {
      file: options.output,
      nodes: cut.nodes.length,
      inputs: cut.inputs.map(({ name }) => name),
      outputs: cut.outputs.map(({ name }) => name),
    }
    if (options.json) printJson(summary)
    else
      print(
        `${summary.nodes} nodes written to ${summary.file}\n  inputs   ${summary.inputs.join(', ') || '-'}\n  outputs  ${summary.outputs.join(', ')}`,
      )
    noteFailure(failure)
  } finally {
    progress.done()
    file.close()
  }
}

/** protobuf reads no message beyond this. */
const MAX_MODEL_BYTES = 2 ** 31 - 1

function tooLarge(path: string, size: number): ModelTestError {
  return new ModelTestError(
    'MODEL_TOO_LARGE',
    `the cut holds ${size} bytes of weights, more than one file can`,
    {
      file: path,
      hint: 'Cut a smaller range, or use `vitest-onnx split`, which puts large weights beside the model.',
    },
  )
}

/** A name that itself holds a comma is taken whole when the model has it. */
function findValues(graph: ScopedGraph, texts: readonly string[]): Value[] {
  const known = new Set(graph.values.flatMap(({ name, written }) => [name, written]))
  const names = texts.flatMap((text) =>
    known.has(text) ? [text] : text.split(',').map((name) => name.trim()),
  )
  return [...new Set(names.map((name) => findValue(graph, name)))]
}

function addNames(text: string, earlier: readonly string[] = []): readonly string[] {
  if (text.trim() !== '') return [...earlier, text]
  throw new ModelTestError('INVALID_OPTION', 'a list of values is empty', {
    hint: 'Name at least one value; `vitest-onnx inspect --values` lists them.',
  })
}
