import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { WireReader } from '../../src/bytes/wire-reader.ts'
import { MessageWriter } from '../../src/bytes/wire-writer.ts'
import { type DType, onnxFromDtype } from '../../src/tensor/dtype.ts'
import { dataFromBytes, type FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import {
  readTensorInfo,
  tensorFromProto,
  tensorFromProtoBytes,
  tensorProtoBytes,
} from '../../src/tensor/tensor-proto.ts'
import { tensor, tensorFromBytes } from '../../src/tensor/tensor.ts'
import { anyTensor } from './any-tensor.ts'
import { expectDamageHandled, expectTruncationHandled } from './damage.ts'
import { bytesOf, readVectors } from './read-vectors.ts'

interface Vectors {
  readonly protos: readonly {
    name: string
    dtype: FixedSizeDType
    dims: number[]
    proto: string
    bytes: string
  }[]
  readonly strings: { texts: string[]; proto: string }
}

const vectors = readVectors<Vectors>('tensor-proto')

describe('reading what onnx wrote', () => {
  test.each(vectors.protos)('$name', ({ name, dtype, dims, proto, bytes }) => {
    const read = tensorFromProtoBytes(bytesOf(proto))
    expect(read).toEqual({ name, tensor: tensorFromBytes(dtype, dims, bytesOf(bytes)) })
  })

  test('strings', () => {
    const read = tensorFromProtoBytes(bytesOf(vectors.strings.proto))
    expect(read.tensor).toEqual(tensor('string', [2, 2], vectors.strings.texts))
  })

  test('what onnx wrote raw is written again byte for byte', () => {
    for (const { proto } of vectors.protos.filter(({ name }) => name.endsWith('_raw'))) {
      const { name, tensor: t } = tensorFromProtoBytes(bytesOf(proto))
      expect(tensorProtoBytes(name, t)).toEqual(bytesOf(proto))
    }
  })
})

describe('typed fields, made by hand', () => {
  test.each([
    ['float8e4m3fn', [0x7e, 0x81], [2], Uint8Array.of(0x7e, 0x81)],
    ['float8e5m2fnuz', [0x80], [1], Uint8Array.of(0x80)],
    ['float8e8m0', [127], [1], Uint8Array.of(127)],
    ['int4', [0x8f, 0x07], [3], Uint8Array.of(0x8f, 0x07)],
    ['uint4', [0x21], [2], Uint8Array.of(0x21)],
    ['float4e2m1', [0xf1], [2], Uint8Array.of(0xf1)],
    ['int2', [0b00_01_10_11, 0b01], [5], Uint8Array.of(0b00_01_10_11, 0b01)],
    ['uint2', [0xe4], [4], Uint8Array.of(0xe4)],
    ['bfloat16', [0x3f80], [1], Uint16Array.of(0x3f80)],
    ['bool', [0, 1, 7], [3], Uint8Array.of(0, 1, 1)],
    ['int8', [-128], [1], Int8Array.of(-128)],
  ] as const)('%s in int32_data', (dtype, entries, dims, data) => {
    const unpacked = header(dtype, dims)
    for (const entry of entries) unpacked.varintField(5, entry)
    expect(tensorFromProtoBytes(unpacked.toBytes()).tensor).toEqual(tensor(dtype, dims, data as never))

    const packed = header(dtype, dims).bytesField(5, packedVarints(entries)).toBytes()
    expect(tensorFromProtoBytes(packed).tensor).toEqual(tensor(dtype, dims, data as never))
  })

  test('float_data one by one, which is how proto2 without [packed] comes', () => {
    const message = header('float32', [2]).raw(fixed32Field(4, 1.5)).raw(fixed32Field(4, -2))
    expect(tensorFromProtoBytes(message.toBytes()).tensor.data).toEqual(Float32Array.of(1.5, -2))
  })

  test('float_data in two packed parts', () => {
    const message = header('float32', [2]).bytesField(4, floatBytes(1)).bytesField(4, floatBytes(2))
    expect(tensorFromProtoBytes(message.toBytes()).tensor.data).toEqual(Float32Array.of(1, 2))
  })

  test('complex128 in double_data', () => {
    const message = header('complex128', [1]).bytesField(10, new Uint8Array(Float64Array.of(1, -2).buffer))
    expect(tensorFromProtoBytes(message.toBytes()).tensor.data).toEqual(Float64Array.of(1, -2))
  })

  test('an empty raw_data beside typed data does not hide it', () => {
    const message = header('int64', [1]).varintField(7, -3).bytesField(9, new Uint8Array(0))
    expect(tensorFromProtoBytes(message.toBytes()).tensor.data).toEqual(BigInt64Array.of(-3n))
  })

  test('packed dims', () => {
    const message = new MessageWriter().bytesField(1, Uint8Array.of(2, 0)).varintField(2, 1)
    expect(tensorFromProtoBytes(message.toBytes()).tensor).toEqual(
      tensor('float32', [2, 0], new Float32Array(0)),
    )
  })
})

describe('round trip', () => {
  test('every tensor', () => {
    fc.assert(
      fc.property(anyTensor(), fc.string(), (t, name) => {
        const bytes = tensorProtoBytes(name, t)
        expect(tensorFromProtoBytes(bytes)).toEqual({ name, tensor: t })
      }),
      { numRuns: 400 },
    )
  })

  test('a tensor in the middle of a file', () => {
    const proto = tensorProtoBytes('x', tensor('int64', [2], BigInt64Array.of(1n, -1n)))
    const file = Buffer.concat([Buffer.alloc(3, 0xff), proto, Buffer.alloc(5, 0xff)])
    const read = tensorFromProto(bytesSource(file), 3, 3 + proto.length)
    expect(read.tensor.data).toEqual(BigInt64Array.of(1n, -1n))
  })
})

describe('external data', () => {
  const bytes = new Uint8Array(Float32Array.of(1, 2, 3).buffer)

  test('is read through the callback', () => {
    const asked: unknown[] = []
    const source = bytesSource(external('float32', [3], { location: 'w.bin', offset: '64', length: '12' }))
    const { tensor: t } = tensorFromProto(source, 0, source.size, (...where) => {
      asked.push(where)
      return bytes
    })
    expect(t.data).toEqual(Float32Array.of(1, 2, 3))
    expect(asked).toEqual([['w.bin', 64, 12]])
  })

  test('without a length, as much is asked for as the tensor takes', () => {
    const asked: unknown[] = []
    const source = bytesSource(external('float32', [3], { location: 'w.bin' }))
    tensorFromProto(source, 0, source.size, (...where) => {
      asked.push(where)
      return bytes
    })
    expect(asked).toEqual([['w.bin', 0, 12]])
  })

  test.each([
    ['no location', { offset: '0' }, 'MALFORMED_MODEL'],
    ['an offset that is no number', { location: 'w', offset: '-1' }, 'MALFORMED_MODEL'],
    ['an offset beyond 2^53', { location: 'w', offset: '99999999999999999999' }, 'MALFORMED_MODEL'],
    ['a length that is not the tensor’s', { location: 'w', length: '13' }, 'MALFORMED_TENSOR'],
  ])('%s is refused', (_, entries, code) => {
    const source = bytesSource(external('float32', [3], entries))
    expect(() => tensorFromProto(source, 0, source.size, () => bytes)).toThrow(
      expect.objectContaining({ code }),
    )
  })

  test('with no callback it cannot be read', () => {
    const proto = external('float32', [3], { location: 'w.bin' })
    expect(() => tensorFromProtoBytes(proto)).toThrow(/w\.bin/)
  })

  test('a callback that returns too little is not trusted', () => {
    const source = bytesSource(external('float32', [4], { location: 'w.bin' }))
    expect(() => tensorFromProto(source, 0, source.size, () => bytes)).toThrow(/takes 16 bytes, .* has 12/)
  })
})

describe('a tensor that lies about itself', () => {
  test.each([
    [
      'raw_data too short',
      header('float32', [3]).bytesField(9, new Uint8Array(8)),
      /takes 12 bytes, but raw_data has 8/,
    ],
    ['no data', header('float32', [3]), /takes 3 numbers, but there are 0/],
    ['too few numbers', header('int64', [2]).varintField(7, 300), /takes 2 numbers, but there are 1/],
    [
      'too many numbers',
      header('int64', [1]).varintField(7, 1).varintField(7, 1),
      /takes 1 numbers, but there are 2/,
    ],
    [
      'dims that would take all memory',
      header('float32', [2 ** 40]).bytesField(4, new Uint8Array(8)),
      /only 8 bytes/,
    ],
    [
      'dims whose product overflows',
      header('float32', [2 ** 40, 2 ** 40]).bytesField(9, new Uint8Array(8)),
      /2\^53/,
    ],
    ['a negative dim', header('float32', [-1]), /size -1/],
    ['an unknown dtype', new MessageWriter().varintField(2, 77), /data type 77/],
    ['no dtype', new MessageWriter().varintField(1, 1), /data type 0/],
    ['too few strings', header('string', [2]).stringField(6, 'a'), /takes 2 array entries, but there are 1/],
    ['raw strings', header('string', [1]).bytesField(9, Uint8Array.of(1)), /strings cannot be raw/],
    ['half a float', header('float32', [1]).bytesField(4, new Uint8Array(5)), /ends inside a number/],
    ['a varint as float_data', header('float32', [1]).varintField(4, 1000), /wire type/],
    ['segments', header('float32', [1]).bytesField(3, new Uint8Array(0)), /segments/],
    [
      'data in the wrong field',
      header('float32', [1]).varintField(7, 1000),
      /takes 1 numbers, but there are 0/,
    ],
  ])('%s', (_, message, text) => {
    const source = bytesSource(message.toBytes(), 'm.onnx')
    expect(() => tensorFromProto(source)).toThrow(text)
    expect(() => tensorFromProto(source)).toThrow(/^m\.onnx, byte \d+: /)
  })

  test('damaged bytes are refused or read, never a crash', () => {
    const files = [
      ...vectors.protos.map(({ proto }) => bytesOf(proto)),
      bytesOf(vectors.strings.proto),
      external('float32', [3], { location: 'w.bin', offset: '64', length: '12' }),
    ]
    for (const file of files) {
      expectTruncationHandled(file, tensorFromProtoBytes)
      expectDamageHandled(file, tensorFromProtoBytes, 150)
    }
  })
})

describe('the description of a tensor', () => {
  test('says what and where without the data', () => {
    const bytes = tensorProtoBytes('w', tensor('float32', [1, 3], Float32Array.of(1, 2, 3)))
    const info = readTensorInfo(new WireReader(bytesSource(bytes)), 0, bytes.length)
    expect(info).toEqual({
      name: 'w',
      dataType: 1,
      dims: [1, 3],
      nameField: { start: 6, stop: 9 },
      raw: { start: 11, stop: 23 },
      dataBytes: 12,
    })
    expect(dataFromBytes('float32', bytes.slice(11, 23))).toEqual(Float32Array.of(1, 2, 3))
  })

  test('counts typed data and external data', () => {
    expect(infoOf(header('int32', [2]).varintField(5, 1).varintField(5, 300)).dataBytes).toBe(3)
    const bytes = external('float32', [3], { location: 'w.bin', offset: '64', length: '12' })
    expect(infoOf(new MessageWriter().raw(bytes))).toMatchObject({
      external: { location: 'w.bin', offset: 64, length: 12 },
      dataBytes: 12,
    })
  })

  test('external entries without data_location are not external data', () => {
    const entry = new MessageWriter().stringField(1, 'location').stringField(2, 'w.bin')
    expect(infoOf(header('float32', [1]).messageField(13, entry)).external).toBeUndefined()
  })

  test('a dtype newer than the list is described all the same', () => {
    expect(infoOf(new MessageWriter().varintField(2, 99)).dataType).toBe(99)
  })

  test('weights are not read', () => {
    const bytes = tensorProtoBytes('w', tensor('uint8', [200_000], new Uint8Array(200_000)))
    let read = 0
    const source = {
      name: 'm',
      size: bytes.length,
      read: (offset: number, length: number) => {
        read += length
        return bytes.subarray(offset, offset + length)
      },
    }
    readTensorInfo(new WireReader(source), 0, bytes.length)
    expect(read).toBeLessThan(100_000)
  })

  test('the reader is left behind the tensor', () => {
    const file = new MessageWriter()
      .bytesField(5, external('float32', [1], { location: 'w' }))
      .varintField(6, 42)
      .toBytes()
    const reader = new WireReader(bytesSource(file)).seek(0)
    reader.next(file.length)
    readTensorInfo(reader, reader.start, reader.stop)
    expect(reader.next(file.length)).toBe(true)
    expect([reader.field, reader.number]).toEqual([6, 42])
  })
})

function infoOf(message: MessageWriter): ReturnType<typeof readTensorInfo> {
  return readTensorInfo(new WireReader(bytesSource(message.toBytes())), 0, message.size)
}

function header(dtype: DType, dims: readonly number[]): MessageWriter {
  const message = new MessageWriter()
  for (const dim of dims) message.varintField(1, dim)
  return message.varintField(2, onnxFromDtype(dtype))
}

function external(dtype: DType, dims: readonly number[], entries: Record<string, string>): Uint8Array {
  const message = header(dtype, dims)
  for (const [key, value] of Object.entries(entries)) {
    message.messageField(13, new MessageWriter().stringField(1, key).stringField(2, value))
  }
  return message.varintField(14, 1).toBytes()
}

/** The payload of varint fields, without their one-byte tags. */
function packedVarints(entries: readonly number[]): Uint8Array {
  return Buffer.concat(
    entries.map((entry) => new MessageWriter().varintField(1, entry).toBytes().subarray(1)),
  )
}

function fixed32Field(field: number, value: number): Uint8Array {
  return Uint8Array.of((field << 3) | 5, ...floatBytes(value))
}

function floatBytes(value: number): Uint8Array {
  return new Uint8Array(Float32Array.of(value).buffer)
}
