/**
 * TensorProto <-> Tensor: ONNX initializers, constants and recorded test data.
 *
 * Reading takes data from wherever a file may keep it: raw_data, the typed fields (packed or one
 * by one), or outside, through a callback, since this room reads no files. Nothing is allocated
 * before the message is known to hold as much data as its dims ask for. Writing always uses
 * raw_data, in field order, so the same tensor gives the same bytes.
 */
import { type ByteSource, bytesSource } from '../bytes/byte-source.ts'
import { BYTES, FIXED32, FIXED64, WireReader } from '../bytes/wire-reader.ts'
import { MessageWriter } from '../bytes/wire-writer.ts'
import { ModelTestError } from '../errors.ts'
import { byteLength, type DType, dtypeFromOnnx, onnxFromDtype } from './dtype.ts'
import { locateErrors } from './locate-errors.ts'
import { dataFromBytes, dataLength, type FixedSizeDType, newData, type TensorData } from './tensor-data.ts'
import { FIELD, readTensorInfo, type TensorInfo } from './tensor-info.ts'
import { bytesOfTensor, elementCount, type Tensor, tensor, tensorFromBytes } from './tensor.ts'

export { type ExternalData, readTensorInfo, type TensorInfo } from './tensor-info.ts'

/** Reads external data; without a length, up to the end of the file. */
export type ReadExternal = (location: string, offset: number, length: number | undefined) => Uint8Array

export interface NamedTensor {
  readonly name: string
  readonly tensor: Tensor
}

/** Reads the TensorProto at [start, stop) of a source. The data may be a view of the source. */
export function tensorFromProto(
  source: ByteSource,
  start = 0,
  stop: number = source.size,
  readExternal?: ReadExternal,
): NamedTensor {
  const reader = new WireReader(source)
  const info = readTensorInfo(reader, start, stop)
  const proto: Proto = { reader, start, stop, info, dtype: knownDtype(source, start, info) }
  const place = { file: source.name, offset: start, what: `tensor "${info.name}"` }
  return { name: info.name, tensor: locateErrors(place, () => readTensor(proto, readExternal)) }
}

/** Reads a file that is one TensorProto, such as `input_0.pb` of the ONNX backend tests. */
export function tensorFromProtoBytes(bytes: Uint8Array, fileName?: string): NamedTensor {
  return tensorFromProto(bytesSource(bytes, fileName))
}

export function tensorProtoBytes(name: string, t: Tensor): Uint8Array {
  const message = new MessageWriter()
  for (const dim of t.shape) message.varintField(FIELD.dims, dim)
  message.varintField(FIELD.dataType, onnxFromDtype(t.dtype))
  if (t.dtype === 'string') for (const text of t.data) message.stringField(FIELD.stringData, text)
  if (name !== '') message.stringField(FIELD.name, name)
  if (t.dtype !== 'string') message.bytesField(FIELD.rawData, bytesOfTensor(t))
  return message.toBytes()
}

interface Proto {
  readonly reader: WireReader
  readonly start: number
  readonly stop: number
  readonly info: TensorInfo
  readonly dtype: DType
}

function readTensor(proto: Proto, readExternal: ReadExternal | undefined): Tensor {
  const { reader, info, dtype } = proto
  if (dtype === 'string') return tensor('string', info.dims, readStrings(proto))
  if (info.external) return tensorFromBytes(dtype, info.dims, externalBytes(proto, dtype, readExternal))
  if (info.raw && (info.raw.stop > info.raw.start || info.dataBytes === 0)) {
    return tensorFromBytes(dtype, info.dims, rawBytes(reader, info, dtype))
  }
  return tensor(dtype, info.dims, readTypedData(proto, dtype))
}

function rawBytes(reader: WireReader, info: TensorInfo, dtype: FixedSizeDType): Uint8Array {
  const { start, stop } = info.raw!
  checkBytes(info, dtype, stop - start, 'raw_data')
  return reader.source.read(start, stop - start)
}

function externalBytes(proto: Proto, dtype: FixedSizeDType, readExternal?: ReadExternal): Uint8Array {
  const { location, offset, length } = proto.info.external!
  if (!readExternal) throw malformed(`its data lies in "${location}", and there is no way to read it here`)
  if (length !== undefined) checkBytes(proto.info, dtype, length, `the data in "${location}"`)
  const bytes = readExternal(location, offset, length ?? byteLength(dtype, elementCount(proto.info.dims)))
  checkBytes(proto.info, dtype, bytes.length, `the data in "${location}"`)
  return bytes
}

function checkBytes(info: TensorInfo, dtype: FixedSizeDType, found: number, where: string): void {
  const wanted = byteLength(dtype, elementCount(info.dims))
  if (found === wanted) return
  throw malformed(`${dtype} [${info.dims.join(', ')}] takes ${wanted} bytes, but ${where} has ${found}`)
}

/** The typed field that holds a dtype: int32_data is shared by everything of up to 32 bits but uint32. */
function typedField(dtype: FixedSizeDType): number {
  switch (dtype) {
    case 'float32':
    case 'complex64':
      return FIELD.floatData
    case 'float64':
    case 'complex128':
      return FIELD.doubleData
    case 'int64':
      return FIELD.int64Data
    case 'uint32':
    case 'uint64':
      return FIELD.uint64Data
    default:
      return FIELD.int32Data
  }
}

function readTypedData<D extends FixedSizeDType>(proto: Proto, dtype: D): TensorData<D> {
  const { reader, start, stop, info } = proto
  const field = typedField(dtype)
  const wanted = dataLength(dtype, elementCount(info.dims))
  // One entry takes a byte or more, so that dims cannot ask for more memory than the file has bytes.
  if (wanted > info.dataBytes) throw wrongCount(dtype, info, info.dataBytes === 0 ? 0 : undefined)
  const data: TensorData<FixedSizeDType> = newData(dtype, elementCount(info.dims))
  let filled = 0
  reader.seek(start)
  while (reader.next(stop)) if (reader.field === field) filled = appendField(reader, dtype, data, filled)
  if (filled !== wanted) throw wrongCount(dtype, info, filled)
  return data as TensorData<D>
}

/** Appends the current field's values; returns how many there are now, counting those that do not fit. */
function appendField(
  reader: WireReader,
  dtype: FixedSizeDType,
  data: TensorData<FixedSizeDType>,
  filled: number,
): number {
  if (data instanceof Float32Array || data instanceof Float64Array)
    return appendFloats(reader, dtype, data, filled)
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    for (const value of reader.integers('a data field')) data[filled++] = value
    return filled
  }
  const value = dtype === 'bool' ? (entry: bigint) => (entry === 0n ? 0 : 1) : Number
  for (const entry of reader.integers('a data field')) data[filled++] = value(entry)
  return filled
}

function appendFloats(
  reader: WireReader,
  dtype: FixedSizeDType,
  data: Float32Array | Float64Array,
  filled: number,
): number {
  const one = data instanceof Float32Array ? FIXED32 : FIXED64
  if (reader.wireType !== BYTES) reader.expect(one, 'a data field')
  const count = (reader.stop - reader.start) / data.BYTES_PER_ELEMENT
  if (!Number.isInteger(count)) throw reader.malformed('a packed data field ends inside a number')
  if (filled + count <= data.length) {
    data.set(dataFromBytes(dtype as 'float32' | 'float64', reader.bytes), filled)
  }
  return filled + count
}

function readStrings({ reader, start, stop, info }: Proto): string[] {
  if (info.raw || info.external) throw malformed('strings cannot be raw or external data')
  const texts: string[] = []
  reader.seek(start)
  while (reader.next(stop)) {
    if (reader.field !== FIELD.stringData) continue
    reader.expect(BYTES, 'TensorProto.string_data')
    texts.push(reader.string)
  }
  return texts
}

function knownDtype(source: ByteSource, offset: number, info: TensorInfo): DType {
  const dtype = dtypeFromOnnx(info.dataType)
  if (dtype) return dtype
  throw new ModelTestError('UNSUPPORTED_DTYPE', `tensor "${info.name}" has the data type ${info.dataType}`, {
    file: source.name,
    offset,
    hint: 'Known are the ONNX data types 1 (float32) to 26 (int2); the file is newer, or damaged.',
  })
}

function wrongCount(dtype: DType, info: TensorInfo, found: number | undefined): ModelTestError {
  const wanted = dataLength(dtype, elementCount(info.dims))
  const entries =
    found === undefined ? `there are only ${info.dataBytes} bytes of data` : `there are ${found}`
  return malformed(`${dtype} [${info.dims.join(', ')}] takes ${wanted} numbers, but ${entries}`)
}

function malformed(message: string): ModelTestError {
  return new ModelTestError('MALFORMED_TENSOR', message, {
    hint: 'The file is damaged or was written by a broken exporter; export it again.',
  })
}
