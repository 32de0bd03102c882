/**
 * `split`: how long it takes to open models, to take them apart and to extract layers.
 *
 * Three questions: is it quick on a real model, does the time per node stay the same as graphs
 * grow, and does a large file cost no more than what is wanted of it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { freemem } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { bytesSource } from '../src/bytes/byte-source.ts'
import { indexModel } from '../src/onnx/model-index.ts'
import type { Figure, Section } from './figures.ts'
import {
  chain,
  fanIn,
  fanOut,
  type GraphMaker,
  groupedChain,
  reversedChain,
  SINGLE_FILE,
  withTempFolder,
  WITH_EXTERNAL_DATA,
  writeSingleFile,
  writeWithExternalData,
} from './generate-models.ts'
import type { Cost, LargeModelAnswer, LayerAnswer, LayerName } from './large-model.ts'
import { askChild, measure, median } from './measure.ts'
import { decodeWhole, encodeParts } from './naive-split.ts'
import { extractAll, takeApart, type TakenApart } from './steps.ts'

export async function* split(): AsyncGenerator<Section> {
  yield manyParts()
  yield await withTempFolder(growth)
  yield* await withTempFolder(largeModels)
}

const REAL_MODEL = resolve(import.meta.dirname, '../../shared/data/models/onnx-light/light_densenet121.onnx')
const REAL_PARTS = 1746
/** onnx.utils.Extractor, all parts of that model, once, on the same kind of machine. */
const PYTHON_MS = 9200

function manyParts(): Section {
  const isReal = existsSync(REAL_MODEL)
  const bytes = isReal ? readFileSync(REAL_MODEL) : chain(REAL_PARTS)
  const cold = (): TakenApart => takeApart(indexModel(bytesSource(bytes)))
  const count = extractAll(cold()).length
  const runs = { runs: 41, warmUp: 20 }
  const all = measure(() => extractAll(cold()), runs)
  const taken = cold()
  const extraction = measure(() => extractAll(taken), runs)
  const decoding = measure(() => decodeWhole(bytes), runs)
  const naive = measure(() => encodeParts(decodeWhole(bytes)), runs)
  return {
    title: `All ${count} parts of ${isReal ? basename(REAL_MODEL) : 'a generated chain'}, extracted to bytes`,
    figures: [
      {
        what: 'index, names, types, shapes, split, extract',
        value: all,
        unit: 'ms',
        goal: 60,
        ratio: { value: all / naive, versus: 'of the time of onnx-proto' },
      },
      { what: 'of which extract', value: extraction, unit: 'ms' },
      { what: 'onnx-proto: decode the whole', value: decoding, unit: 'ms' },
      { what: 'onnx-proto: decode the whole, encode each part', value: naive, unit: 'ms' },
      {
        what: 'onnx.utils.Extractor (recorded)',
        value: PYTHON_MS,
        unit: 'ms',
        ratio: { value: PYTHON_MS / all, versus: 'the time of this library' },
      },
    ],
    notes: [
      "Python's figure is a constant, recorded on the same kind of machine, not measured in this run.",
      'The onnx-proto baseline makes one part per node: no scopes, no inferred types, no folding, no groups.',
      ...(isReal ? [] : ['../shared is absent: a generated graph of as many nodes stands in for the model.']),
    ],
  }
}

const SIZES: readonly number[] = [100, 1000, 10_000, 100_000]
const SHAPES: readonly (readonly [name: string, make: GraphMaker])[] = [
  ['chain', chain],
  ['chain, last node first', reversedChain],
  ['chain of Conv, Clip groups', groupedChain],
  ['fan-out: one value, N readers', fanOut],
  ['fan-in: one node, N inputs', fanIn],
]

async function growth(folder: string): Promise<Section> {
  const figures: Figure[] = []
  for (const [name, make] of SHAPES) figures.push(...growthFigures(name, await timesPerNode(make, folder)))
  return {
    title: `Processor time per node of all steps, from ${thousands(SIZES[0]!)} to ${thousands(SIZES.at(-1)!)} nodes`,
    figures,
    notes: [
      'Processor time of all threads, garbage collection included, so that other programs do not count.',
      'Growth: the largest graph against the best of the smaller ones, after warm-up with these.',
    ],
  }
}

async function timesPerNode(make: GraphMaker, folder: string): Promise<number[]> {
  const args = SIZES.flatMap((size) => {
    const path = join(folder, `${size}.onnx`)
    writeFileSync(path, make(size))
    return [String(size), path]
  })
  return askChild<number[]>('time-per-node.ts', args)
}

function growthFigures(name: string, times: readonly number[]): Figure[] {
  const smaller = Math.min(...times.slice(0, -1))
  return [
    ...times.map((value, at): Figure => ({ what: `${name}, ${thousands(SIZES[at]!)}`, value, unit: 'µs' })),
    { what: `${name}: growth`, value: times.at(-1)! / smaller, unit: 'x', goal: 2 },
  ]
}

/** Opened this often, in a new process each time. */
const OPENINGS = 5
/** Below this much free memory, nobody should decode two gigabytes. */
const DECODE_NEEDS_BYTES = 6e9

async function largeModels(folder: string): Promise<Section[]> {
  const [single, external, data] = ['single.onnx', 'external.onnx', 'external.data'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  writeSingleFile(single, SINGLE_FILE)
  writeWithExternalData(external, basename(data), WITH_EXTERNAL_DATA)
  const answers = { single: await openings(single, single), external: await openings(external, data) }
  const decoded = freemem() > DECODE_NEEDS_BYTES ? await askChild<Cost>(CHILD, [single]) : undefined
  return [
    largeSection('A 1.9 GB model in one file', answers.single, decoded),
    largeSection('An 8 GB model with external data', answers.external, undefined),
  ]
}

const CHILD = 'large-model.ts'

async function openings(model: string, data: string): Promise<LargeModelAnswer[]> {
  const answers: LargeModelAnswer[] = []
  for (let n = 0; n < OPENINGS; n++) answers.push(await askChild<LargeModelAnswer>(CHILD, [model, data]))
  return answers
}

const MEGABYTE = 1e6
const LAYER_NAMES: readonly LayerName[] = ['small', 'medium', 'large']

function largeSection(
  title: string,
  answers: readonly LargeModelAnswer[],
  decoded: Cost | undefined,
): Section {
  const over = (pick: (answer: LargeModelAnswer) => number): number => median(answers.map(pick))
  const [openMs, openBytes] = [over(({ open }) => open.ms), over(({ open }) => open.bytes)]
  return {
    title: `${title}: open, and extract one layer`,
    figures: [
      { what: 'open', value: openMs, unit: 'ms', goal: 200, ...besideDecoding(openMs, decoded?.ms) },
      {
        what: 'open: growth of resident memory',
        value: openBytes / MEGABYTE,
        unit: 'MB',
        goal: 100,
        ...besideDecoding(openBytes, decoded?.bytes),
      },
      { what: 'open and split', value: over(({ split: cost }) => cost.ms), unit: 'ms' },
      {
        what: 'open and split: growth of resident memory',
        value: over(({ split: cost }) => cost.bytes) / MEGABYTE,
        unit: 'MB',
        goal: 100,
      },
      ...LAYER_NAMES.flatMap((name) => layerFigures(name, over)),
    ],
    notes: [
      'A new process each time; opening and splitting are not warmed up. Weights are holes of sparse files.',
      ...(decoded === undefined ? [] : ['onnx-proto decodes the file once.']),
      'Reference: large weights stay where they are. Inline: they are copied into the layer.',
      'A plain read takes as many bytes as the weights have from the same file, and does nothing with them.',
    ],
  }
}

function besideDecoding(value: number, decoding: number | undefined): Pick<Figure, 'ratio'> {
  if (decoding === undefined) return {}
  return { ratio: { value: value / decoding, versus: 'of onnx-proto, which reads it all' } }
}

function layerFigures(
  name: LayerName,
  over: (pick: (answer: LargeModelAnswer) => number) => number,
): Figure[] {
  const of = (pick: (layer: LayerAnswer) => number): number => over(({ layers }) => pick(layers[name]))
  const [weights, inlineMs] = [of((layer) => layer.weights), of((layer) => layer.inline.ms)]
  const what = `${name} layer (weights: ${weights < MEGABYTE ? `${rounded(weights / 1000)} kB` : `${rounded(weights / MEGABYTE)} MB`})`
  const plain = { value: inlineMs / of(({ plainReadMs }) => plainReadMs), versus: 'of a plain read' }
  return [
    { what: `${what}, reference`, value: of(({ reference }) => reference.ms), unit: 'ms' },
    { what: `${what}, inline`, value: inlineMs, unit: 'ms', ratio: plain },
    ...(weights < MEGABYTE
      ? []
      : [{ what: `${what}, inline`, value: weights / MEGABYTE / (inlineMs / 1000), unit: 'MB/s' } as const]),
    { what: `${what}: read in vain`, value: of(readInVain) / 1000, unit: 'kB', goal: MAX_IN_VAIN_KB },
  ]
}

/** Bytes read that are not in the layer: field headers, in windows of the reader. */
function readInVain({ reference, inline }: LayerAnswer): number {
  return Math.max(0, reference.read - reference.size, inline.read - inline.size)
}

/** Some windows, whatever the size of the file or of the weights. */
const MAX_IN_VAIN_KB = 200

function rounded(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0)
}

function thousands(value: number): string {
  return value.toLocaleString('en-US')
}
