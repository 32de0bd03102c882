/**
 * A split on disk: `<name>.onnx` per part and `manifest.json`, written last.
 *
 * Each file is whole or absent, so an interrupted split leaves parts without a manifest. A
 * folder that holds an earlier split loses the parts that the new one does not write.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type ByteSource, readInPieces } from '../bytes/byte-source.ts'
import type { MessageWriter, Slice } from '../bytes/wire-writer.ts'
import { ModelTestError } from '../errors.ts'
import type { ModelFile } from '../files/model-file.ts'
import { writeFileAtomic } from '../files/write-file.ts'
import { weightBytes, type WeightPolicy } from '../graph/weights.ts'
import { DEFAULT_GROUPS } from '../graph/split.ts'
import { type Layer, layerModel, type LayerOptions, type TypedModel } from './layers.ts'
import { outputSources, partEntryOf, type SplitManifest, splitManifest } from './split-manifest.ts'

export interface WriteSplit {
  readonly file: ModelFile
  readonly typed: TypedModel
  readonly layers: readonly Layer[]
  readonly options: LayerOptions
  readonly folder: string
  readonly onPart?: (done: number) => void
}

export function writeSplit({ file, typed, layers, options, folder, onPart }: WriteSplit): SplitManifest {
  const manifestPath = join(folder, 'manifest.json')
  const earlier = filesOfSplit(manifestPath)
  if (existsSync(manifestPath)) rmSync(manifestPath)
  const manifest: SplitManifest = {
    version: 1,
    source: { file: basename(file.path), size: file.model.source.size, sha256: sha256(file.model.source) },
    options: {
      groups: (options.groups ?? DEFAULT_GROUPS).map((group) => [...group]),
      dedup: options.dedup ?? false,
    },
    inputs: typed.graph.inputs.map(({ name }) => name),
    outputs: outputSources(typed.graph),
    parts: layers.map((layer, at) => {
      const name = fileName(layer.part.name)
      writePart(file, typed, layer, join(folder, name))
      earlier.delete(name)
      onPart?.(at + 1)
      return partEntryOf(layer, name)
    }),
  }
  for (const stale of earlier) {
    for (const path of [stale, `${stale}.data`]) rmSync(join(folder, path), { force: true })
  }
  writeFileAtomic(manifestPath, `${JSON.stringify(manifest, null, 2)}\n`)
  return manifest
}

/** Weights copied into the part, or beside it when the part would pass protobuf's 2 GiB. */
function writePart(file: ModelFile, typed: TypedModel, { part }: Layer, path: string): void {
  const external = file.external.bind(file)
  const bytes = part.weights.reduce((sum, value) => sum + weightBytes(value), 0)
  if (bytes < MAX_INLINE_BYTES) {
    writeFileAtomic(path, layerModel(typed, part, { kind: 'inline', external }).chunks())
    return
  }
  writeModelBeside(path, external, (policy) => layerModel(typed, part, policy))
}

const MAX_INLINE_BYTES = 1024 * 1024 * 1024
const BESIDE_MIN_BYTES = 1024 * 1024

/** A model file and, beside it, its large weights in `<path>.data`. */
function writeModelBeside(
  path: string,
  external: (location: string, tensorName: string) => ByteSource,
  compose: (policy: WeightPolicy) => MessageWriter,
): void {
  const data: Slice[] = []
  let size = 0
  const place = (slice: Slice): number => {
    const offset = size
    data.push(slice)
    size += slice.stop - slice.start
    return offset
  }
  const location = `${basename(path)}.data`
  const message = compose({ kind: 'beside', location, minBytes: BESIDE_MIN_BYTES, place, external })
  writeFileAtomic(`${path}.data`, bytesOf(data))
  writeFileAtomic(path, message.chunks())
}

function* bytesOf(slices: readonly Slice[]): Generator<Uint8Array> {
  for (const { source, start, stop } of slices) yield* readInPieces(source, start, stop)
}

/** File systems take names of up to 255 bytes, and deep subgraphs make long ones. */
const MAX_NAME_BYTES = 200

function fileName(partName: string): string {
  if (Buffer.byteLength(partName) <= MAX_NAME_BYTES) return `${partName}.onnx`
  const digest = createHash('sha256').update(partName).digest('hex').slice(0, 16)
  return `${Buffer.from(partName)
    .subarray(0, MAX_NAME_BYTES - 17)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}~${digest}.onnx`
}

function filesOfSplit(manifestPath: string): Set<string> {
  if (!existsSync(manifestPath)) return new Set()
  try {
    const manifest = splitManifest.parse(JSON.parse(readFileSync(manifestPath, 'utf8')))
    return new Set(manifest.parts.map(({ file }) => basename(file)))
  } catch (cause) {
    throw new ModelTestError('INVALID_OPTION', 'the folder holds a manifest.json that no split wrote', {
      file: manifestPath,
      hint: 'Choose another folder with -o, or move that file away.',
      cause,
    })
  }
}

function sha256(source: ByteSource): string {
  const hash = createHash('sha256')
  for (const piece of readInPieces(source)) hash.update(piece)
  return hash.digest('hex')
}
