/**
 * safetensors files: a byte source <-> named tensors.
 *
 * Opening reads the header alone; tensors are read by position, one at a time or in part, never
 * the whole file. An opened file holds: every tensor lies inside the file, takes as many bytes as
 * its dtype and shape say, and overlaps no other. Writing is deterministic: the largest elements
 * first, then by name, which keeps every tensor aligned; the header is padded to 8 bytes.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'
import { bitsPerElement, byteLength } from './dtype.ts'
import { locateErrors } from './locate-errors.ts'
import type { FixedSizeDType } from './tensor-data.ts'
import { bytesOfTensor, elementCount, type Tensor, tensorFromBytes } from './tensor.ts'

/** The format's own limit, so that a damaged length cannot ask for all memory. */
const MAX_HEADER_BYTES = 100_000_000
const LENGTH_BYTES = 8

const DTYPES: ReadonlyMap<string, FixedSizeDType> = new Map([
  ['F64', 'float64'],
  ['F32', 'float32'],
  ['F16', 'float16'],
  ['BF16', 'bfloat16'],
  ['I64', 'int64'],
  ['I32', 'int32'],
  ['I16', 'int16'],
  ['I8', 'int8'],
  ['U64', 'uint64'],
  ['U32', 'uint32'],
  ['U16', 'uint16'],
  ['U8', 'uint8'],
  ['BOOL', 'bool'],
  ['C64', 'complex64'],
  ['F8_E4M3', 'float8e4m3fn'],
  ['F8_E4M3FNUZ', 'float8e4m3fnuz'],
  ['F8_E5M2', 'float8e5m2'],
  ['F8_E5M2FNUZ', 'float8e5m2fnuz'],
  ['F8_E8M0', 'float8e8m0'],
  ['F4', 'float4e2m1'],
])

const NAMES: ReadonlyMap<string, string> = new Map([...DTYPES].map(([name, dtype]) => [dtype, name]))

export interface SafetensorsEntry {
  readonly name: string
  readonly dtype: FixedSizeDType
  readonly shape: readonly number[]
  /** Where the data lies in the file: [start, stop). */
  readonly start: number
  readonly stop: number
}

export interface SafetensorsFile {
  readonly source: ByteSource
  /** By name, in the order of the header. */
  readonly entries: ReadonlyMap<string, SafetensorsEntry>
  readonly metadata: ReadonlyMap<string, string>
}

/** Reads and checks the header. */
export function openSafetensors(source: ByteSource): SafetensorsFile {
  const { json, dataStart } = readHeader(source)
  const entries = new Map<string, SafetensorsEntry>()
  for (const [name, value] of Object.entries(json)) {
    if (name !== '__metadata__') entries.set(name, checkedEntry(source, name, value, dataStart))
  }
  checkOverlap(source, [...entries.values()])
  return { source, entries, metadata: checkedMetadata(source, json['__metadata__']) }
}

/** Reads one tensor; its data may be a view of the source. */
export function readSafetensor(file: SafetensorsFile, name: string): Tensor {
  const entry = entryOf(file, name)
  return tensorFromBytes(entry.dtype, entry.shape, readSafetensorBytes(file, name)) as Tensor
}

/** Reads bytes [from, to) of one tensor's data. */
export function readSafetensorBytes(
  file: SafetensorsFile,
  name: string,
  from = 0,
  to: number = byteSize(entryOf(file, name)),
): Uint8Array {
  const entry = entryOf(file, name)
  if (!(from >= 0 && from <= to && to <= byteSize(entry))) {
    throw new ModelTestError('INVALID_OPTION', `"${name}" has no bytes ${from} to ${to}`, {
      file: file.source.name,
      hint: `It has ${byteSize(entry)} bytes.`,
    })
  }
  return file.source.read(entry.start + from, to - from)
}

/** A whole file in memory. */
export function safetensorsBytes(
  tensors: Iterable<readonly [name: string, tensor: Tensor]>,
  metadata: Iterable<readonly [key: string, value: string]> = [],
): Uint8Array {
  const chunks = [...safetensorsChunks(tensors, metadata)]
  const out = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

/** A file in pieces, in order: for writing more than fits one array. */
export function* safetensorsChunks(
  tensors: Iterable<readonly [name: string, tensor: Tensor]>,
  metadata: Iterable<readonly [key: string, value: string]> = [],
): Generator<Uint8Array> {
  const ordered = inFileOrder([...tensors])
  yield headerBytes(ordered, [...metadata])
  for (const [, t] of ordered) yield bytesOfTensor(t)
}

function inFileOrder(tensors: readonly (readonly [string, Tensor])[]): (readonly [string, Tensor])[] {
  const names = new Set(tensors.map(([name]) => name))
  if (names.size < tensors.length || names.has('__metadata__')) {
    throw new ModelTestError('INVALID_OPTION', 'two tensors have the same name, or one is "__metadata__"', {
      hint: 'Give every tensor a name of its own.',
    })
  }
  return tensors.toSorted(([a, x], [b, y]) => elementBits(y) - elementBits(x) || (a < b ? -1 : 1))
}

function byteSize(entry: SafetensorsEntry): number {
  return entry.stop - entry.start
}

function entryOf(file: SafetensorsFile, name: string): SafetensorsEntry {
  const entry = file.entries.get(name)
  if (entry) return entry
  throw new ModelTestError('INVALID_OPTION', `there is no tensor "${name}"`, {
    file: file.source.name,
    hint: `It has ${file.entries.size} tensors${file.entries.size > 0 ? `, such as "${[...file.entries.keys()][0]}"` : ''}.`,
  })
}

function readHeader(source: ByteSource): { json: Record<string, unknown>; dataStart: number } {
  if (source.size < LENGTH_BYTES) throw malformed(source, `a file of ${source.size} bytes has no header`)
  const head = source.read(0, LENGTH_BYTES)
  const length = Number(new DataView(head.buffer, head.byteOffset, LENGTH_BYTES).getBigUint64(0, true))
  if (length > MAX_HEADER_BYTES || LENGTH_BYTES + length > source.size) {
    throw isLfsPointer(source)
      ? lfsPointer(source)
      : malformed(source, `the header should have ${length} bytes, but the file has ${source.size}`)
  }
  return {
    json: parseHeader(source, source.read(LENGTH_BYTES, length)),
    dataStart: LENGTH_BYTES + length,
  }
}

function parseHeader(source: ByteSource, bytes: Uint8Array): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (isRecord(json)) return json
  } catch (cause) {
    throw malformed(source, 'the header is not JSON', cause)
  }
  throw malformed(source, 'the header is not a JSON object')
}

function checkedEntry(source: ByteSource, name: string, value: unknown, dataStart: number): SafetensorsEntry {
  if (!isRecord(value)) throw malformed(source, `the entry of "${name}" is not an object`)
  const dtype = checkedDtype(source, name, value['dtype'])
  const shape = integerList(value['shape'])
  const offsets = integerList(value['data_offsets'])
  if (!shape) throw malformed(source, `the shape of "${name}" is not a list of sizes`)
  if (offsets?.length !== 2) throw malformed(source, `the data_offsets of "${name}" are not two numbers`)
  const [start, stop] = [dataStart + offsets[0]!, dataStart + offsets[1]!]
  if (start > stop || stop > source.size) {
    throw malformed(source, `"${name}" should lie at bytes ${start} to ${stop} of ${source.size}`)
  }
  const place = { file: source.name, offset: start, what: `"${name}"` }
  const wanted = locateErrors(place, () => byteLength(dtype, elementCount(shape)))
  if (stop - start !== wanted) {
    throw malformed(
      source,
      `"${name}", ${dtype} [${shape.join(', ')}], has ${stop - start} bytes, not ${wanted}`,
    )
  }
  return { name, dtype, shape, start, stop }
}

function checkedDtype(source: ByteSource, name: string, value: unknown): FixedSizeDType {
  const dtype = typeof value === 'string' ? DTYPES.get(value) : undefined
  if (dtype) return dtype
  throw new ModelTestError('UNSUPPORTED_DTYPE', `"${name}" has the dtype ${JSON.stringify(value)}`, {
    file: source.name,
    hint: `Known are ${[...DTYPES.keys()].join(', ')}.`,
  })
}

function checkedMetadata(source: ByteSource, value: unknown): ReadonlyMap<string, string> {
  if (value === undefined || value === null) return new Map()
  const pairs = isRecord(value) ? Object.entries(value) : undefined
  if (pairs?.every((pair): pair is [string, string] => typeof pair[1] === 'string')) return new Map(pairs)
  throw malformed(source, '__metadata__ is not an object of strings')
}

function checkOverlap(source: ByteSource, entries: readonly SafetensorsEntry[]): void {
  const byStart = entries.filter((entry) => entry.stop > entry.start).toSorted((a, b) => a.start - b.start)
  for (const [i, entry] of byStart.entries()) {
    const before = byStart[i - 1]
    if (before && before.stop > entry.start) {
      throw malformed(source, `"${before.name}" and "${entry.name}" overlap at byte ${entry.start}`)
    }
  }
}

function integerList(value: unknown): number[] | undefined {
  const whole = Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0)
  return whole ? (value as number[]) : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Built by hand: an object would move names that look like numbers to the front. */
function headerBytes(
  tensors: readonly (readonly [string, Tensor])[],
  metadata: readonly (readonly [string, string])[],
): Uint8Array {
  const items = metadata.length === 0 ? [] : [item('__metadata__', Object.fromEntries(metadata))]
  let at = 0
  for (const [name, t] of tensors) {
    const dtype = dtypeName(name, t)
    const stop = at + bytesOfTensor(t).length
    items.push(item(name, { dtype, shape: t.shape, data_offsets: [at, stop] }))
    at = stop
  }
  const text = Buffer.from(`{${items.join(',')}}`)
  const padded = Buffer.alloc(LENGTH_BYTES + Math.ceil(text.length / 8) * 8, ' ')
  padded.writeBigUInt64LE(BigInt(padded.length - LENGTH_BYTES))
  text.copy(padded, LENGTH_BYTES)
  return padded
}

function item(name: string, value: unknown): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`
}

function elementBits(t: Tensor): number {
  return t.dtype === 'string' ? 0 : bitsPerElement(t.dtype)
}

function dtypeName(name: string, t: Tensor): string {
  const dtype = NAMES.get(t.dtype)
  if (dtype !== undefined) return dtype
  throw new ModelTestError('UNSUPPORTED_DTYPE', `safetensors cannot hold "${name}", which is ${t.dtype}`, {
    hint: 'Store it as a TensorProto (.pb) instead.',
  })
}

function isLfsPointer(source: ByteSource): boolean {
  const start = 'version https://git-lfs'
  return source.size >= start.length && Buffer.from(source.read(0, start.length)).toString('latin1') === start
}

function lfsPointer(source: ByteSource): ModelTestError {
  return new ModelTestError('FILE_UNREADABLE', 'the file is a Git LFS pointer, not the tensors', {
    file: source.name,
    hint: 'Fetch the real file: git lfs pull',
  })
}

function malformed(source: ByteSource, message: string, cause?: unknown): ModelTestError {
  return new ModelTestError('MALFORMED_TENSOR', message, {
    file: source.name,
    hint: 'The file is cut short or damaged, or is no safetensors file; download or export it again.',
    cause,
  })
}
