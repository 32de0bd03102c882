import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { DTYPES } from '../../src/tensor/dtype.ts'
import {
  openSafetensors,
  readSafetensor,
  readSafetensorBytes,
  safetensorsBytes,
} from '../../src/tensor/safetensors.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { anyTensor } from './any-tensor.ts'
import { expectDamageHandled, expectTruncationRefused } from './damage.ts'

const bias = tensor('float32', [2], Float32Array.of(1, 2))
const mask = tensor('bool', [3], Uint8Array.of(1, 0, 1))
const ids = tensor('int64', [1], BigInt64Array.of(-7n))
const example = safetensorsBytes(
  [
    ['bias', bias],
    ['mask', mask],
    ['ids', ids],
  ],
  [['format', 'pt']],
)

describe('reading', () => {
  test('lists and reads tensors', () => {
    const file = openSafetensors(bytesSource(example))
    expect([...file.entries.keys()]).toEqual(['ids', 'bias', 'mask'])
    expect(readSafetensor(file, 'bias')).toEqual(bias)
    expect(readSafetensor(file, 'mask')).toEqual(mask)
    expect(readSafetensor(file, 'ids')).toEqual(ids)
    expect([...file.metadata]).toEqual([['format', 'pt']])
  })

  test('an entry says where its data lies in the file', () => {
    const { start, stop } = openSafetensors(bytesSource(example)).entries.get('bias')!
    expect(example.slice(start, stop)).toEqual(new Uint8Array(Float32Array.of(1, 2).buffer))
  })

  test('a part of a tensor', () => {
    const file = openSafetensors(bytesSource(example))
    expect([...readSafetensorBytes(file, 'mask', 1, 3)]).toEqual([0, 1])
    expect(() => readSafetensorBytes(file, 'mask', 1, 4)).toThrow(/no bytes 1 to 4/)
  })

  test('reads the header and what is asked for, nothing else', () => {
    const big = safetensorsBytes([
      ['big', tensor('uint8', [1_000_000], new Uint8Array(1_000_000))],
      ['ids', ids],
    ])
    let bytesRead = 0
    const source = {
      name: 'x',
      size: big.length,
      read(offset: number, length: number): Uint8Array {
        bytesRead += length
        return big.subarray(offset, offset + length)
      },
    }
    readSafetensor(openSafetensors(source), 'ids')
    expect(bytesRead).toBeLessThan(300)
  })

  test('an unknown name', () => {
    const file = openSafetensors(bytesSource(example, 'm.safetensors'))
    expect(() => readSafetensor(file, 'nope')).toThrow('m.safetensors: there is no tensor "nope"')
  })

  test('a file written by hand from the format’s description', () => {
    const header = '{"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}} '
    const file = openSafetensors(bytesSource(fileWith(header, 4)))
    expect(readSafetensor(file, 'a')).toEqual(tensor('bfloat16', [2, 1], new Uint16Array(2)))
  })
})

describe('writing', () => {
  test('is deterministic: the largest elements first, then by name', () => {
    const shuffled = safetensorsBytes(
      [
        ['mask', mask],
        ['ids', ids],
        ['bias', bias],
      ],
      [['format', 'pt']],
    )
    expect(shuffled).toEqual(example)
  })

  test('the data begins at a multiple of 8 and every tensor at a multiple of its element', () => {
    const file = openSafetensors(bytesSource(example))
    expect([...file.entries.values()].map(({ start }) => start % 8)).toEqual([0, 0, 0])
  })

  test('names that look like numbers keep their order', () => {
    const file = openSafetensors(
      bytesSource(
        safetensorsBytes([
          ['b', bias],
          ['10', bias],
          ['9', ids],
        ]),
      ),
    )
    const byStart = [...file.entries.values()].toSorted((x, y) => x.start - y.start)
    expect(byStart.map(({ name }) => name)).toEqual(['9', '10', 'b'])
  })

  test('what is written is read', () => {
    const without = new Set(['string', 'complex128', 'int4', 'uint4', 'int2', 'uint2'])
    const dtypes = DTYPES.filter((dtype) => !without.has(dtype))
    const named = fc.uniqueArray(fc.tuple(fc.string(), anyTensor(dtypes)), { selector: ([name]) => name })
    fc.assert(
      fc.property(named, (tensors) => {
        const file = openSafetensors(bytesSource(safetensorsBytes(tensors)))
        expect(file.entries.size).toBe(tensors.length)
        for (const [name, t] of tensors) expect(readSafetensor(file, name)).toEqual(t)
      }),
    )
  })

  test.each([
    ['a string tensor', [['s', tensor('string', [1], ['a'])]], 'UNSUPPORTED_DTYPE'],
    ['an int4 tensor', [['s', tensor('int4', [1], new Uint8Array(1))]], 'UNSUPPORTED_DTYPE'],
    [
      'two tensors of one name',
      [
        ['s', bias],
        ['s', ids],
      ],
      'INVALID_OPTION',
    ],
    ['a tensor named as the metadata', [['__metadata__', bias]], 'INVALID_OPTION'],
  ] as [string, [string, Tensor][], string][])('%s is refused', (_, tensors, code) => {
    expect(() => safetensorsBytes(tensors)).toThrow(expect.objectContaining({ code }))
  })
})

describe('a file that lies', () => {
  test.each([
    ['not JSON', '{"a":', /not JSON/],
    ['not an object', '[]', /not a JSON object/],
    ['an entry that is no object', '{"a":1}', /not an object/],
    ['an unknown dtype', entry('"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]'), /F6_E2M3/],
    ['no shape', entry('"dtype":"U8","data_offsets":[0,1]'), /shape/],
    ['a negative size', entry('"dtype":"U8","shape":[-1],"data_offsets":[0,1]'), /shape/],
    [
      'a shape beyond counting',
      entry('"dtype":"U8","shape":[4503599627370496,4],"data_offsets":[0,1]'),
      /2\^53/,
    ],
    ['one offset', entry('"dtype":"U8","shape":[1],"data_offsets":[0]'), /two numbers/],
    ['offsets turned around', entry('"dtype":"U8","shape":[1],"data_offsets":[1,0]'), /should lie/],
    ['data beyond the file', entry('"dtype":"U8","shape":[99],"data_offsets":[0,99]'), /should lie/],
    [
      'a length that is not the shape’s',
      entry('"dtype":"F32","shape":[1],"data_offsets":[0,3]'),
      /has 3 bytes, not 4/,
    ],
    [
      'an overlap',
      '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
      /"a" and "b" overlap/,
    ],
    ['metadata that is no text', '{"__metadata__":{"a":1}}', /__metadata__/],
  ])('%s', (_, header, message) => {
    const open = (): unknown => openSafetensors(bytesSource(fileWith(header, 8), 'm.safetensors'))
    expect(open).toThrow(message)
    expect(open).toThrow(expect.objectContaining({ name: 'ModelTestError', file: 'm.safetensors' }))
  })

  test('a header length of exabytes is not allocated', () => {
    const file = new Uint8Array(64).fill(0x7f)
    expect(() => openSafetensors(bytesSource(file))).toThrow(/the header should have/)
  })

  test('a header beyond the format’s limit is not read, however large the file', () => {
    const head = new Uint8Array(BigUint64Array.of(150_000_000n).buffer)
    const source = {
      name: 'x',
      size: 1e12,
      read: (at: number, length: number) => head.subarray(at, at + length),
    }
    expect(() => openSafetensors(source)).toThrow(/the header should have 150000000 bytes/)
  })

  test('a Git LFS pointer says how to get the file', () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n'
    expect(() => openSafetensors(bytesSource(Buffer.from(pointer)))).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('git lfs pull') }),
    )
  })

  test('any truncation is refused', () => {
    expectTruncationRefused(example, readAll)
  })

  test('damaged bytes are refused or read, never a crash', () => {
    expectDamageHandled(example, readAll, 3000)
  })
})

function entry(fields: string): string {
  return `{"a":{${fields}}}`
}

function readAll(bytes: Uint8Array): unknown {
  const file = openSafetensors(bytesSource(bytes))
  return [...file.entries.keys()].map((name) => readSafetensor(file, name))
}

function fileWith(header: string, dataBytes: number): Uint8Array {
  const file = Buffer.alloc(8 + header.length + dataBytes)
  file.writeBigUInt64LE(BigInt(header.length))
  file.write(header, 8)
  return file
}
