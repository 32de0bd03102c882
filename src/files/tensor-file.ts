/**
 * Named tensors in one file, and references to single tensors of it.
 *
 * A safetensors file; string tensors, which that format lacks, stand in its metadata. A
 * reference can be handed to another process, which reads only that tensor. Of tensors that the
 * reader has already the file need only hold the names.
 */
import { ModelTestError } from '../errors.ts'
import { openSafetensors, type SafetensorsFile, safetensorsChunks } from '../tensor/safetensors.ts'
import type { FixedSizeDType } from '../tensor/tensor-data.ts'
import { type Tensor, tensor, tensorFromBytes } from '../tensor/tensor.ts'
import { type FileSource, openFile } from './file-source.ts'
import { writeFileAtomic } from './write-file.ts'

/** A tensor that lies in a file. */
export interface TensorRef {
  readonly kind: 'ref'
  readonly dtype: FixedSizeDType
  readonly shape: readonly number[]
  readonly path: string
  readonly start: number
  readonly stop: number
}

export type StoredTensor = Tensor | TensorRef

export function isRef(stored: StoredTensor): stored is TensorRef {
  return 'kind' in stored
}

export function writeTensorFile(
  path: string,
  tensors: ReadonlyMap<string, Tensor>,
  known: readonly string[] = [],
): void {
  const marks = known.map((name) => [`${KNOWN_MARK}${name}`, ''] as const)
  writeTensors(
    path,
    [...tensors].map(([name, value]) => [`${MARK}${name}`, value]),
    marks,
  )
}

/** For people, who look the tensors up by their own names; only odd names are marked. */
export function writePlainTensorFile(path: string, tensors: ReadonlyMap<string, Tensor>): void {
  writeTensors(
    path,
    [...tensors].map(([name, value]) => [ODD_NAME.test(name) ? `${MARK}${name}` : name, value]),
  )
}

function writeTensors(
  path: string,
  tensors: readonly (readonly [key: string, value: Tensor])[],
  metadata: readonly (readonly [key: string, text: string])[] = [],
): void {
  const [plain, strings] = [new Map<string, Tensor>(), new Map<string, string>()]
  for (const [key, value] of tensors) {
    if (value.dtype === 'string') strings.set(key, JSON.stringify([value.shape, value.data]))
    else plain.set(key, value)
  }
  writeFileAtomic(path, safetensorsChunks(plain, [...strings, ...metadata]))
}

/** References to every tensor of a file; only the header is read. Throws when the file is damaged. */
export function readTensorRefs(
  path: string,
  known: ReadonlyMap<string, StoredTensor> = new Map(),
): Map<string, StoredTensor> {
  const { entries, metadata } = openTensorFile(path)
  const refs = new Map<string, StoredTensor>()
  for (const [key, { dtype, shape, start, stop }] of entries) {
    refs.set(nameOf(key), { kind: 'ref', dtype, shape, path, start, stop })
  }
  for (const [key, text] of metadata) {
    if (key.startsWith(KNOWN_MARK)) {
      const name = key.slice(KNOWN_MARK.length)
      refs.set(name, known.get(name) ?? unknown(path, name))
      continue
    }
    const [shape, data] = JSON.parse(text) as [number[], string[]]
    refs.set(nameOf(key), tensor('string', shape, data))
  }
  return refs
}

export function loadTensor(stored: StoredTensor): Tensor {
  if (!isRef(stored)) return stored
  const { source } = openTensorFile(stored.path)
  const read = source.read(stored.start, stored.stop - stored.start)
  // A view of a file that was read whole may lie at any offset, and runtimes want aligned data: so copy.
  const bytes = read.byteLength === read.buffer.byteLength ? read : read.slice()
  return tensorFromBytes(stored.dtype, stored.shape, bytes) as Tensor
}

export function loadTensors(stored: ReadonlyMap<string, StoredTensor>): Map<string, Tensor> {
  return new Map([...stored].map(([name, value]) => [name, loadTensor(value)]))
}

/** Forgets an open file, before it is replaced or removed. */
export function closeTensorFile(path: string): void {
  opened.get(path)?.source.close()
  opened.delete(path)
}

/** A value may be called `__metadata__`, which the format keeps for itself. */
const MARK = '='

/** In front of the name of a tensor that the reader has. */
const KNOWN_MARK = '~'

/** Names that would be read as something else. */
const ODD_NAME = /^[=~]|^__(metadata|proto)__$/

function nameOf(key: string): string {
  return key.startsWith(MARK) ? key.slice(MARK.length) : key
}

function unknown(path: string, name: string): never {
  throw new ModelTestError(
    'MALFORMED_TENSOR',
    `the file only names "${name}", and its values are not known`,
    {
      file: path,
      hint: 'Clear the cache: npx vitest-onnx cache clear.',
    },
  )
}

type OpenTensorFile = SafetensorsFile & { readonly source: FileSource }

/** Layers of one model read the same file, so a few stay open. */
const MAX_OPEN = 8
const opened = new Map<string, OpenTensorFile>()

function openTensorFile(path: string): OpenTensorFile {
  const known = opened.get(path)
  if (known !== undefined) return known
  const source = openFile(path)
  try {
    const file = { ...openSafetensors(source), source }
    const [oldest] = opened.keys()
    if (opened.size >= MAX_OPEN && oldest !== undefined) closeTensorFile(oldest)
    opened.set(path, file)
    return file
  } catch (error) {
    source.close()
    throw error
  }
}
