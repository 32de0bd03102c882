import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { npyBytes, readNpy, readNpyHeader, readNpyRange } from '../../src/tensor/npy.ts'
import type { FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import { type Tensor, tensor, tensorFromBytes } from '../../src/tensor/tensor.ts'
import { anyTensor } from './any-tensor.ts'
import { expectDamageHandled, expectTruncationRefused } from './damage.ts'
import { bytesOf, readVectors } from './read-vectors.ts'

interface Vectors {
  readonly numbers: readonly { descr: string; order: string; shape: number[]; file: string; bytes: string }[]
  readonly strings: readonly { file: string; texts: string[]; shape: number[] }[]
  readonly object: string
  readonly structured: string
}

const vectors = readVectors<Vectors>('npy')

describe('reading what numpy saved', () => {
  test.each(vectors.numbers)('$descr in $order order, $shape', ({ shape, file, bytes }) => {
    const t = read(bytesOf(file))
    expect(t).toEqual(tensorFromBytes(t.dtype as FixedSizeDType, shape, bytesOf(bytes)))
  })

  test.each(vectors.strings)('strings $texts', ({ file, texts, shape }) => {
    expect(read(bytesOf(file))).toEqual(tensor('string', shape, texts))
  })

  test.each([
    ['pickled objects', vectors.object],
    ['structured dtypes', vectors.structured],
  ])('%s are refused', (_, file) => {
    expect(() => read(bytesOf(file))).toThrow(expect.objectContaining({ code: 'UNSUPPORTED_DTYPE' }))
  })

  test('the header tells dtype, shape and order', () => {
    const file = vectors.numbers.find(({ descr, order }) => descr === '>f8' && order === 'F')!
    expect(readNpyHeader(bytesSource(bytesOf(file.file)))).toMatchObject({
      dtype: 'float64',
      shape: [2, 3, 4],
      fortranOrder: true,
      bigEndian: true,
      itemSize: 8,
    })
  })
})

describe('reading a part', () => {
  const file = npyBytes(
    tensor(
      'int16',
      [4, 3],
      Int16Array.from({ length: 12 }, (_, i) => i * 10),
    ),
  )

  test('gives the elements asked for, in C order, and reads no more', () => {
    const source = countingSource(file)
    const header = readNpyHeader(source)
    const before = source.bytesRead
    expect(readNpyRange(source, header, 5, 8)).toEqual(tensor('int16', [3], Int16Array.of(50, 60, 70)))
    expect(source.bytesRead - before).toBe(6)
  })

  test.each([
    [-1, 2],
    [5, 4],
    [0, 13],
    [0.5, 2],
  ])('elements %d to %d do not exist', (from, to) => {
    const source = bytesSource(file)
    expect(() => readNpyRange(source, readNpyHeader(source), from, to)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    )
  })

  test('a matrix in Fortran order has no part to read', () => {
    const source = bytesSource(bytesOf(vectors.numbers.find(({ order }) => order === 'F')!.file))
    expect(() => readNpyRange(source, readNpyHeader(source), 0, 2)).toThrow(/cannot be read/)
  })
})

describe('writing', () => {
  test('gives the bytes that numpy writes', () => {
    const plain = vectors.numbers
      .filter(({ descr, order }) => !descr.startsWith('>') && order === 'C')
      .slice(0, 13)
    for (const { file } of plain) expect(npyBytes(read(bytesOf(file)))).toEqual(bytesOf(file))
    expect(npyBytes(read(bytesOf(vectors.strings[0]!.file)))).toEqual(bytesOf(vectors.strings[0]!.file))
  })

  test('what is written is read', () => {
    const dtypes = [
      'bool',
      'int8',
      'uint16',
      'int32',
      'uint64',
      'float16',
      'float64',
      'complex64',
      'string',
    ] as const
    fc.assert(
      fc.property(anyTensor(dtypes), (t) => {
        expect(read(npyBytes(t))).toEqual(t)
      }),
    )
  })

  test.each(['bfloat16', 'float8e5m2', 'int4'] as const)('%s has no place in .npy', (dtype) => {
    const t = tensorFromBytes(dtype, [0], new Uint8Array(0)) as Tensor
    expect(() => npyBytes(t)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED_DTYPE' }))
  })
})

describe('a file that lies', () => {
  test.each([
    ['a shape larger than the file', "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,), }"],
    [
      'a shape beyond counting',
      "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }",
    ],
    ['a negative shape', "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"],
    ['strings of no length', "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,), }"],
    ['no shape', "{'descr': '<f4', 'fortran_order': False}"],
    ['no order', "{'descr': '<f4', 'shape': (1,)}"],
    ['an odd dtype', "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }"],
  ])('%s', (_, header) => {
    expect(() => read(fileWith(header))).toThrow(
      expect.objectContaining({ name: 'ModelTestError', file: 'x.npy' }),
    )
  })

  test('says how much data is missing', () => {
    const file = npyBytes(tensor('float32', [4], new Float32Array(4)))
    expect(() => read(file.slice(0, -3))).toThrow('the data takes 16 bytes, but there are 13')
  })

  test('a header length beyond the file', () => {
    const file = fileWith('{}').slice()
    file[8] = 255
    expect(() => read(file)).toThrow(/header takes/)
  })

  test('any truncation is refused', () => {
    for (const { file } of vectors.numbers.slice(0, 8)) expectTruncationRefused(bytesOf(file), read)
    expectTruncationRefused(bytesOf(vectors.strings[0]!.file), read)
  })

  test('damaged bytes are refused or read, never a crash', () => {
    for (const { file } of vectors.strings) expectDamageHandled(bytesOf(file), read, 300)
    for (const { file } of vectors.numbers.slice(-8)) expectDamageHandled(bytesOf(file), read, 300)
  })
})

function read(bytes: Uint8Array): Tensor {
  return readNpy(bytesSource(bytes, 'x.npy'))
}

function fileWith(header: string): Uint8Array {
  const file = Buffer.alloc(10 + header.length + 8)
  file.write('\x93NUMPY\x01\x00', 'latin1')
  file.writeUInt16LE(header.length, 8)
  file.write(header, 10)
  return file
}

function countingSource(bytes: Uint8Array): ReturnType<typeof bytesSource> & { bytesRead: number } {
  const source = {
    ...bytesSource(bytes),
    bytesRead: 0,
    read(offset: number, length: number): Uint8Array {
      source.bytesRead += length
      return bytes.subarray(offset, offset + length)
    },
  }
  return source
}
