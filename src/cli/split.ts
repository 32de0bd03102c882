/** `vitest-onnx split <model> -o <dir>`: every layer as a model of its own, and a manifest. */
import { Command } from 'commander'
import { ModelTestError } from '../errors.ts'
import { openModel } from '../files/model-file.ts'
import { type LayerOptions, layersOf, typeModel } from '../suite/layers.ts'
import type { SplitManifest } from '../suite/split-manifest.ts'
import { writeSplit } from '../suite/write-split.ts'
import { note, print, printJson, startProgress, table } from './output.ts'
import { noteFailure } from './runtime-note.ts'

interface SplitCommandOptions {
  readonly output: string
  readonly group?: readonly (readonly string[])[]
  readonly dedup?: true
  readonly json?: true
}

export function splitCommand(): Command {
  return new Command('split')
    .summary('cut a model into its layers')
    .description(
      'Writes each layer of an ONNX model as <name>.onnx, and manifest.json, which says what is what.\n' +
        'The layers of the main graph, run in order, compute what the model computes.',
    )
    .argument('<model>', 'an .onnx file')
    .requiredOption('-o, --output <dir>', 'the folder to write to; made if it is not there')
    .option(
      '--group <ops>',
      'op types that stay together, e.g. Conv,Clip; repeatable; "none" for no groups (default: Conv,Clip)',
      addGroup,
    )
    .option('--dedup', 'write layers of equal content once')
    .option('--json', 'print the manifest')
    .addHelpText('after', '\nExample:\n  $ vitest-onnx split model.onnx -o layers --group Conv,Relu --dedup')
    .action(split)
}

async function split(path: string, options: SplitCommandOptions): Promise<void> {
  const file = openModel(path)
  const progress = startProgress(file.stem)
  try {
    progress.update('reading types')
    const typed = await typeModel(file)
    const layerOptions: LayerOptions = {
      dedup: options.dedup ?? false,
      ...(options.group === undefined ? {} : { groups: options.group }),
    }
    const layers = layersOf(file, typed, layerOptions)
    const manifest = writeSplit({
      file,
      typed,
      layers,
      options: layerOptions,
      folder: options.output,
      onPart: (done) => progress.update(`${done} of ${layers.length} layers written`),
    })
    progress.done()
    if (options.json) printJson(manifest)
    else print(report(manifest, options.output))
    noteFailure(typed.failure)
    if (manifest.parts.length === 0) note('the model has no operators, so there is nothing to split')
  } finally {
    progress.done()
    file.close()
  }
}

function report({ parts }: SplitManifest, folder: string): string {
  const [inner, merged] = [
    parts.filter(({ scope }) => scope !== ''),
    parts.filter((part) => part.merged !== undefined),
  ]
  const twins = parts.reduce((sum, part) => sum + part.twins.length, 0)
  const rows: (string | number)[][] = [['layers of the main graph', parts.length - inner.length]]
  if (inner.length > 0) rows.push(['layers of subgraphs', inner.length])
  if (twins > 0) rows.push(['left out as equal to another', twins])
  if (merged.length > 0) rows.push(['of several nodes that cannot be parted', merged.length])
  return `${parts.length} models and manifest.json written to ${folder}\n${table(rows)}`
}

function addGroup(text: string, groups: readonly (readonly string[])[] = []): readonly (readonly string[])[] {
  if (text === 'none') return []
  const ops = text.split(',').map((op) => op.trim())
  if (ops.length >= 2 && ops.every((op) => op !== '')) return [...groups, ops]
  throw new ModelTestError(
    'INVALID_OPTION',
    `--group ${text}: a group is two or more op types with commas between`,
    {
      hint: 'For example --group Conv,Relu; repeat the option for more groups, or --group none for no group at all.',
    },
  )
}
