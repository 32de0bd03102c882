import * as fc from 'fast-check'
import protobuf from 'protobufjs/minimal.js'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { MessageWriter } from '../../src/bytes/wire-writer.ts'
import { ModelTestError } from '../../src/errors.ts'
import { SOURCES } from './sources.ts'

const field = fc.integer({ min: 1, max: 2 ** 28 - 1 })
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

describe('what is written, protobufjs reads', () => {
  test('integers', () => {
    fc.assert(
      fc.property(field, int64, (number, value) => {
        const reader = protobuf.Reader.create(new MessageWriter().varintField(number, value).toBytes())
        expect(reader.uint32()).toBe(number * 8)
        const long = reader.int64() as { low: number; high: number } | number
        expect(
          typeof long === 'number' ? BigInt(long) : (BigInt(long.high) << 32n) | BigInt(long.low >>> 0),
        ).toBe(value)
        expect(reader.pos).toBe(reader.len)
      }),
      { numRuns: 500 },
    )
  })

  test.each([-1, 0, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1])(
    'the number %d as the bigint',
    (value) => {
      expect(new MessageWriter().varintField(3, value).toBytes()).toEqual(
        new MessageWriter().varintField(3, BigInt(value)).toBytes(),
      )
    },
  )

  test('texts and bytes', () => {
    fc.assert(
      fc.property(field, fc.string({ unit: 'grapheme' }), fc.uint8Array(), (number, text, bytes) => {
        const message = new MessageWriter().stringField(number, text).bytesField(number, bytes).toBytes()
        const reader = protobuf.Reader.create(message)
        expect(reader.uint32()).toBe(number * 8 + 2)
        expect(reader.string()).toBe(text)
        expect(reader.uint32()).toBe(number * 8 + 2)
        expect(Buffer.compare(reader.bytes(), bytes)).toBe(0)
        expect(reader.pos).toBe(reader.len)
      }),
    )
  })

  test.each([0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])('a payload of %d bytes', (length) => {
    const message = new MessageWriter().bytesField(1, new Uint8Array(length)).toBytes()
    const expected = protobuf.Writer.create().uint32(10).bytes(new Uint8Array(length)).finish()
    expect(Buffer.compare(message, expected)).toBe(0)
  })
})

describe.each(Object.entries(SOURCES))('slices of %s', (_, place) => {
  test('nested messages come out the same at once and in chunks, and the size is known before', () => {
    const bytes = Uint8Array.from({ length: 5_000 }, (_entry, at) => at * 7)
    const { source, start, stop } = place(bytes)
    const inner = new MessageWriter().slice({ source, start, stop: start + 10 }).varintField(1, 300)
    const message = new MessageWriter()
      .messageField(2, inner)
      .sliceField(3, { source, start: start + 100, stop })
      .slice({ source, start, stop: start })
      .raw(new Uint8Array(0))
    const whole = message.toBytes()
    expect(message.size).toBe(whole.length)
    expect(Buffer.concat([...message.chunks()]).equals(whole)).toBe(true)
    const head = [0x12, 13, ...bytes.subarray(0, 10), 0x08, 0xac, 0x02, 0x1a, 0xa4, 0x26]
    expect(Buffer.compare(whole, Buffer.concat([Uint8Array.from(head), bytes.subarray(100)]))).toBe(0)
  })
})

test('a slice longer than a piece comes in several chunks', () => {
  const bytes = new Uint8Array(9 * 1024 * 1024).fill(3)
  const message = new MessageWriter().slice({ source: bytesSource(bytes), start: 0, stop: bytes.length })
  const chunks = [...message.chunks()]
  expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThanOrEqual(4 * 1024 * 1024)
  expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
})

test('a message that no array can hold is refused, but can be described', () => {
  const source = { name: 'huge', size: 2 ** 54, read: () => new Uint8Array(0) }
  const message = new MessageWriter().sliceField(1, { source, start: 0, stop: 2 ** 52 })
  expect(message.size).toBeGreaterThan(2 ** 52)
  expect(() => message.toBytes()).toThrow(ModelTestError)
  expect(() => message.toBytes()).toThrow(/do not fit into memory/)
})

test('bytes written are a plain array: slicing them copies', () => {
  const bytes = new MessageWriter().varintField(1, 1).toBytes()
  bytes.slice()[0] = 0
  expect(bytes[0]).toBe(8)
})
