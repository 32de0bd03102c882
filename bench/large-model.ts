/**
 * A child of the split benchmark: opens one large model and answers what that took.
 *
 * `large-model.ts <model> <file with the weights>`; with the model alone, reads and decodes all of
 * it instead, to compare with.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import type { ByteSource } from '../src/bytes/byte-source.ts'
import { type ModelFile, openModel } from '../src/files/model-file.ts'
import type { Part } from '../src/graph/part.ts'
import { weightBytes, type WeightPolicy } from '../src/graph/weights.ts'
import { LARGE_LAYERS } from './generate-models.ts'
import { answer, type Growth, measure, measureGrowth } from './measure.ts'
import { decodeWhole } from './naive-split.ts'
import { extract, takeApart, type TakenApart } from './steps.ts'

export interface LargeModelAnswer {
  readonly open: Cost
  /** Opening, and everything up to the parts. */
  readonly split: Cost
  readonly layers: Readonly<Record<LayerName, LayerAnswer>>
}

export interface Cost {
  readonly ms: number
  readonly bytes: number
}

export interface LayerAnswer {
  /** Bytes of the layer's weights. */
  readonly weights: number
  readonly reference: Extraction
  readonly inline: Extraction
  /** Reading as many bytes as the weights have, and nothing else. */
  readonly plainReadMs: number
}

export interface Extraction {
  readonly ms: number
  readonly size: number
  /** Bytes read from all files meanwhile. */
  readonly read: number
}

/** Smaller weights are copied under the policy `reference`. */
const REFERENCED_FROM = 1024

export type LayerName = keyof typeof LARGE_LAYERS

const [model = '', data] = process.argv.slice(2)
answer(
  data === undefined
    ? cost(measureGrowth(() => decodeWhole(readFileSync(model))))
    : openAndSplit(model, data),
)

function openAndSplit(modelPath: string, dataPath: string): LargeModelAnswer {
  let open: Growth<ModelFile> | undefined
  const split = measureGrowth(() => {
    open = measureGrowth(() => openModel(modelPath))
    return takeApart(open.result.model)
  })
  const file = open!.result
  const layer = (output: string): LayerAnswer => measureLayer(file, dataPath, output)
  const { small, medium, large } = LARGE_LAYERS
  return {
    open: cost(open!),
    split: cost(split),
    layers: { small: layer(small), medium: layer(medium), large: layer(large) },
  }
}

function cost({ ms, bytes }: Growth<unknown>): Cost {
  return { ms, bytes }
}

function measureLayer(file: ModelFile, dataPath: string, output: string): LayerAnswer {
  const counter = { bytes: 0 }
  const counted = takeApart({ ...file.model, source: counting(file.model.source, counter) })
  const part = partGiving(counted, output)
  const external = (location: string, tensor: string): ByteSource =>
    counting(file.external(location, tensor), counter)
  const policies = {
    reference: { kind: 'reference', location: 'model.onnx', minBytes: REFERENCED_FROM },
    inline: { kind: 'inline', external },
  } satisfies Record<string, WeightPolicy>
  const extraction = (policy: WeightPolicy): Extraction => {
    counter.bytes = 0
    const size = extract(counted, part, policy).length
    const read = counter.bytes
    return { ms: measure(() => extract(counted, part, policy), repetitions(size)), size, read }
  }
  const weights = part.weights.reduce((sum, value) => sum + weightBytes(value), 0)
  const [reference, inline] = [extraction(policies.reference), extraction(policies.inline)]
  return { weights, reference, inline, plainReadMs: plainRead(dataPath, weights) }
}

function partGiving({ parts }: TakenApart, output: string): Part {
  const found = parts.find(({ outputs }) => outputs.some(({ name }) => name === output))
  if (found === undefined) throw new Error(`no part gives "${output}"`)
  return found
}

function counting(source: ByteSource, counter: { bytes: number }): ByteSource {
  return {
    name: source.name,
    size: source.size,
    read(offset, length) {
      counter.bytes += length
      return source.read(offset, length)
    },
  }
}

function plainRead(path: string, length: number): number {
  const descriptor = openSync(path, 'r')
  try {
    return measure(
      () => readSync(descriptor, Buffer.allocUnsafeSlow(length), 0, length, 0),
      repetitions(length),
    )
  } finally {
    closeSync(descriptor)
  }
}

function repetitions(bytes: number): { runs: number; warmUp: number } {
  return bytes > 1e8
    ? { runs: 3, warmUp: 1 }
    : bytes > 1e6
      ? { runs: 15, warmUp: 3 }
      : { runs: 300, warmUp: 100 }
}
