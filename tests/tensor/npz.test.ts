import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { openNpz, readNpzTensor } from '../../src/tensor/npz.ts'
import { tensor, toFloat64 } from '../../src/tensor/tensor.ts'
import { expectDamageHandled, expectTruncationRefused } from './damage.ts'
import { bytesOf, readVectors } from './read-vectors.ts'

const vectors = readVectors<{ npz: string; npzCompressed: string }>('npy')
const stored = bytesOf(vectors.npz)
const deflated = bytesOf(vectors.npzCompressed)

describe('.npz as numpy writes it', () => {
  test('savez', () => {
    const file = openNpz(bytesSource(stored))
    expect([...file.members.keys()]).toEqual(['a', 'b', 'empty'])
    expect([...toFloat64(readNpzTensor(file, 'a'))]).toEqual(Array.from({ length: 24 }, (_, i) => i))
    expect(readNpzTensor(file, 'b')).toEqual(tensor('string', [2], ['x', 'yy']))
    expect(readNpzTensor(file, 'empty')).toEqual(tensor('int32', [0], new Int32Array(0)))
  })

  test('savez_compressed', () => {
    const file = openNpz(bytesSource(deflated))
    expect(readNpzTensor(file, 'a').shape).toEqual([2, 3, 4])
    expect(readNpzTensor(file, 'zeros')).toEqual(tensor('float64', [50, 50], new Float64Array(2500)))
  })

  test('an unknown name says which there are', () => {
    const file = openNpz(bytesSource(stored))
    expect(() => readNpzTensor(file, 'nope')).toThrow(
      expect.objectContaining({ hint: 'It has: a, b, empty.' }),
    )
  })
})

describe('damage', () => {
  test('a changed byte of the data is noticed by its checksum', () => {
    const damaged = stored.slice()
    damaged[200]! ^= 1
    expect(() => readAll(damaged)).toThrow(/checksum/)
  })

  test('a size that deflate cannot reach is not allocated', () => {
    const damaged = deflated.slice()
    const directory = Buffer.from(damaged.buffer).indexOf('PK\x01\x02')
    new DataView(damaged.buffer).setUint32(directory + 24, 0xf000_0000, true)
    expect(() => readAll(damaged)).toThrow(/cannot unpack to/)
  })

  test('any truncation is refused', () => {
    expectTruncationRefused(stored, readAll)
    expectTruncationRefused(deflated, readAll)
  })

  test('damaged bytes are refused or read, never a crash', () => {
    expectDamageHandled(stored, readAll)
    expectDamageHandled(deflated, readAll)
    expectDamageHandled(deflated.slice(-200), readAll)
  })
})

function readAll(bytes: Uint8Array): unknown {
  const file = openNpz(bytesSource(bytes))
  return [...file.members.keys()].map((name) => readNpzTensor(file, name))
}
