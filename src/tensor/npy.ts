/**
 * .npy files: a byte source <-> one tensor, as numpy's save and load.
 *
 * Reads format versions 1 to 3, either byte order, C and Fortran order; a tensor always comes out
 * little-endian in C order. A part of a large array is read without the rest. Nothing is allocated
 * before the file is known to hold as much data as the header says. Writes version 1, C order.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'
import type { DType } from './dtype.ts'
import { locateErrors } from './locate-errors.ts'
import { bytesOfData, dataFromBytes, type FixedSizeDType, newData } from './tensor-data.ts'
import { bytesOfTensor, elementCount, type Tensor, tensor, tensorFromBytes } from './tensor.ts'

export interface NpyHeader {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly fortranOrder: boolean
  readonly bigEndian: boolean
  /** What the elements are on disk: numbers, bytes (`S`) or UTF-32 (`U`). */
  readonly kind: 'numbers' | 'bytes' | 'unicode'
  /** Bytes of one element. */
  readonly itemSize: number
  /** Where the data begins. */
  readonly dataStart: number
}

const MAGIC = '\x93NUMPY'
/** numpy aligns the data to this. */
const ALIGNMENT = 64
/** A plain array's header has some hundred bytes; only structured dtypes, which have no tensor, need more. */
const MAX_HEADER_BYTES = 2 ** 20

const NUMBERS: ReadonlyMap<string, FixedSizeDType> = new Map([
  ['b1', 'bool'],
  ['i1', 'int8'],
  ['i2', 'int16'],
  ['i4', 'int32'],
  ['i8', 'int64'],
  ['u1', 'uint8'],
  ['u2', 'uint16'],
  ['u4', 'uint32'],
  ['u8', 'uint64'],
  ['f2', 'float16'],
  ['f4', 'float32'],
  ['f8', 'float64'],
  ['c8', 'complex64'],
  ['c16', 'complex128'],
])

const DESCRIPTORS: ReadonlyMap<DType, string> = new Map([...NUMBERS].map(([name, dtype]) => [dtype, name]))

/** Reads the header and checks that the data it promises is there. */
export function readNpyHeader(source: ByteSource): NpyHeader {
  const { text, dataStart } = readHeaderText(source)
  const shape = parseShape(source, field(source, text, 'shape', /\(([^()]*)\)/))
  const header = {
    ...parseDescriptor(source, field(source, text, 'descr', /(?:'([^']*)'|"([^"]*)")/)),
    shape,
    fortranOrder: field(source, text, 'fortran_order', /(True|False)/) === 'True',
    dataStart,
  }
  const wanted = elementCount(shape) * header.itemSize
  if (dataStart + wanted > source.size) {
    throw malformed(
      source,
      `the data takes ${wanted} bytes, but there are ${source.size - dataStart}`,
      dataStart,
    )
  }
  return header
}

/** Reads the whole array. Its data is a view of the source where the layout allows. */
export function readNpy(source: ByteSource): Tensor {
  const header = readNpyHeader(source)
  const flat = readElements(source, header, 0, elementCount(header.shape))
  if (!header.fortranOrder || header.shape.length < 2) return { ...flat, shape: header.shape }
  return inRowOrder(flat, header.shape)
}

/** Reads elements [from, to), counted in C order, as a tensor of one dimension. */
export function readNpyRange(source: ByteSource, header: NpyHeader, from: number, to: number): Tensor {
  const count = elementCount(header.shape)
  if (!(Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from <= to && to <= count)) {
    throw invalidRange(source, from, to, `It has ${count} elements.`)
  }
  if (header.fortranOrder && header.shape.length > 1) {
    throw invalidRange(source, from, to, 'In Fortran order they are scattered: read the whole array.')
  }
  return readElements(source, header, from, to)
}

/** A tensor as a .npy file. */
export function npyBytes(t: Tensor): Uint8Array {
  const { descriptor, data } = t.dtype === 'string' ? unicodeData(t.data) : numberData(t)
  const shape = t.shape.length === 1 ? `${t.shape[0]},` : t.shape.join(', ')
  const text = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': (${shape}), }`
  const unpadded = MAGIC.length + 4 + text.length + 1
  const headerLength = Math.ceil(unpadded / ALIGNMENT) * ALIGNMENT
  const out = Buffer.alloc(headerLength + data.length, ' ')
  out.write(MAGIC, 'latin1')
  out.set([1, 0], MAGIC.length)
  out.writeUInt16LE(headerLength - MAGIC.length - 4, MAGIC.length + 2)
  out.write(text, MAGIC.length + 4, 'latin1')
  out.write('\n', headerLength - 1)
  out.set(data, headerLength)
  return bytesOfData(out)
}

function readHeaderText(source: ByteSource): { text: string; dataStart: number } {
  const head = Buffer.from(source.read(0, Math.min(12, source.size)))
  if (head.length < 10 || head.toString('latin1', 0, MAGIC.length) !== MAGIC) {
    throw malformed(source, 'the file does not begin as a .npy file does')
  }
  const version = head[6]!
  if (version < 1 || version > 3 || (version > 1 && head.length < 12)) {
    throw malformed(source, `there is no version ${version} of the .npy format`, 6)
  }
  const textStart = version === 1 ? 10 : 12
  const length = version === 1 ? head.readUInt16LE(8) : head.readUInt32LE(8)
  if (length > MAX_HEADER_BYTES || textStart + length > source.size)
    throw malformed(source, `the header takes ${length} bytes`, textStart)
  const text = Buffer.from(source.read(textStart, length)).toString(version === 3 ? 'utf8' : 'latin1')
  return { text, dataStart: textStart + length }
}

/** One value of the header, which is a Python dict literal. */
function field(source: ByteSource, text: string, key: string, value: RegExp): string {
  const match = new RegExp(`['"]${key}['"]\\s*:\\s*${value.source}`).exec(text)
  const found = match?.slice(1).find((group) => group !== undefined)
  if (found !== undefined) return found
  if (key === 'descr' && /['"]descr['"]\s*:\s*\[/.test(text)) {
    throw unsupported(source, 'the array has a structured dtype')
  }
  throw malformed(source, `the header has no ${key} that makes sense`)
}

function parseShape(source: ByteSource, text: string): number[] {
  const sizes = text
    .split(',')
    .map((size) => size.trim())
    .filter((size) => size !== '')
  if (!sizes.every((size) => /^\d+L?$/.test(size))) throw malformed(source, `the shape is (${text})`)
  const shape = sizes.map((size) => Number.parseInt(size, 10))
  locateErrors({ file: source.name, offset: 0, what: 'the shape' }, () => elementCount(shape))
  return shape
}

function parseDescriptor(
  source: ByteSource,
  descriptor: string,
): Pick<NpyHeader, 'dtype' | 'kind' | 'itemSize' | 'bigEndian'> {
  const match = /^([<>|=]?)([a-zA-Z])(\d*)$/.exec(descriptor)
  if (!match) throw unsupported(source, `the array has the dtype "${descriptor}"`)
  const [, order, letter, digits] = match
  const size = Number(digits)
  const bigEndian = order === '>'
  const dtype = NUMBERS.get(`${letter}${size}`)
  if (dtype) return { dtype, kind: 'numbers', itemSize: size, bigEndian }
  // Elements of no bytes could be any number of them in an empty file.
  if (size > 0 && letter === 'S') return { dtype: 'string', kind: 'bytes', itemSize: size, bigEndian }
  if (size > 0 && letter === 'U') return { dtype: 'string', kind: 'unicode', itemSize: 4 * size, bigEndian }
  throw unsupported(source, `the array has the dtype "${descriptor}"`)
}

/** Elements [from, to) in the order of the file. */
function readElements(source: ByteSource, header: NpyHeader, from: number, to: number): Tensor {
  const { itemSize, dtype, kind, bigEndian } = header
  const bytes = source.read(header.dataStart + from * itemSize, (to - from) * itemSize)
  if (dtype === 'string') {
    const text = kind === 'bytes' ? textOfBytes : textOfUnicode
    const items = Array.from({ length: to - from }, (_, i) =>
      bytes.subarray(i * itemSize, (i + 1) * itemSize),
    )
    return tensor(
      'string',
      [to - from],
      items.map((item) => text(source, item, bigEndian)),
    )
  }
  return tensorFromBytes(dtype, [to - from], bigEndian ? swapped(dtype, bytes) : bytes) as Tensor
}

/** The bytes of each number turned around; a complex number is two numbers. */
function swapped(dtype: FixedSizeDType, bytes: Uint8Array): Uint8Array {
  const copy = Buffer.from(Uint8Array.from(bytes).buffer)
  switch (newData(dtype, 0).BYTES_PER_ELEMENT) {
    case 2:
      return copy.swap16()
    case 4:
      return copy.swap32()
    case 8:
      return copy.swap64()
    default:
      return copy
  }
}

function textOfBytes(source: ByteSource, item: Uint8Array): string {
  const used = item.subarray(0, item.findLastIndex((byte) => byte !== 0) + 1)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(used)
  } catch (cause) {
    throw malformed(source, 'a string is not valid UTF-8', undefined, cause)
  }
}

function textOfUnicode(source: ByteSource, item: Uint8Array, bigEndian: boolean): string {
  const view = new DataView(item.buffer, item.byteOffset, item.length)
  const codes = Array.from({ length: item.length / 4 }, (_, i) => view.getUint32(i * 4, !bigEndian))
  if (codes.some((code) => code > 0x10ffff)) throw malformed(source, 'a string has no Unicode characters')
  const used = codes.slice(0, codes.findLastIndex((code) => code !== 0) + 1)
  return used.map((code) => String.fromCodePoint(code)).join('')
}

/** From Fortran order, where the first index moves fastest, to C order. */
function inRowOrder(flat: Tensor, shape: readonly number[]): Tensor {
  const order = rowOrder(shape)
  if (flat.dtype === 'string') {
    return tensor(
      'string',
      shape,
      Array.from(order, (at) => flat.data[at]!),
    )
  }
  const bytes = bytesOfTensor(flat)
  const size = bytes.length / Math.max(order.length, 1)
  const out = new Uint8Array(bytes.length)
  for (let i = 0; i < order.length; i++) {
    const at = order[i]! * size
    for (let k = 0; k < size; k++) out[i * size + k] = bytes[at + k]!
  }
  return tensor(flat.dtype, shape, dataFromBytes(flat.dtype, out)) as Tensor
}

/** For each element in C order, its place in Fortran order. */
function rowOrder(shape: readonly number[]): Float64Array {
  const places = new Float64Array(elementCount(shape))
  let [filled, stride] = [1, 1]
  const strides = shape.map((size) => {
    const own = stride
    stride *= size
    return own
  })
  // From the last axis to the first, each axis repeats what is there, one stride further on.
  for (let axis = shape.length - 1; axis >= 0 && places.length > 0; axis--) {
    for (let i = filled; i < filled * shape[axis]!; i++) places[i] = places[i - filled]! + strides[axis]!
    filled *= shape[axis]!
  }
  return places
}

function numberData(t: Exclude<Tensor, Tensor<'string'>>): { descriptor: string; data: Uint8Array } {
  const name = DESCRIPTORS.get(t.dtype)
  if (name === undefined) {
    throw new ModelTestError('UNSUPPORTED_DTYPE', `.npy cannot hold ${t.dtype}`, {
      hint: 'Store it as safetensors or as a TensorProto (.pb) instead.',
    })
  }
  return { descriptor: `${name.endsWith('1') ? '|' : '<'}${name}`, data: bytesOfTensor(t) }
}

function unicodeData(texts: readonly string[]): { descriptor: string; data: Uint8Array } {
  const points = texts.map((text) => [...text].map((character) => character.codePointAt(0)!))
  const length = points.reduce((longest, codes) => Math.max(longest, codes.length), 1)
  const data = Buffer.alloc(texts.length * length * 4)
  for (const [i, codes] of points.entries()) {
    for (const [k, code] of codes.entries()) data.writeUInt32LE(code, (i * length + k) * 4)
  }
  return { descriptor: `<U${length}`, data }
}

function invalidRange(source: ByteSource, from: number, to: number, hint: string): ModelTestError {
  return new ModelTestError('INVALID_OPTION', `elements ${from} to ${to} cannot be read`, {
    file: source.name,
    hint,
  })
}

function unsupported(source: ByteSource, message: string): ModelTestError {
  return new ModelTestError('UNSUPPORTED_DTYPE', message, {
    file: source.name,
    hint: 'Save plain numbers, booleans or fixed-length strings; bfloat16 and float8 fit safetensors.',
  })
}

function malformed(source: ByteSource, message: string, offset = 0, cause?: unknown): ModelTestError {
  return new ModelTestError('MALFORMED_TENSOR', message, {
    file: source.name,
    offset,
    hint: 'The file is cut short or damaged, or is no .npy file; save it again.',
    cause,
  })
}
