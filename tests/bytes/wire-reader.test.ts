import * as fc from 'fast-check'
import protobuf from 'protobufjs/minimal.js'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { BYTES, FIXED32, FIXED64, MAX_DEPTH, VARINT, WireReader } from '../../src/bytes/wire-reader.ts'
import { ModelTestError } from '../../src/errors.ts'
import { SOURCES } from './sources.ts'

const START_GROUP = 3

type Field = { readonly number: number } & (
  | { readonly kind: 'varint'; readonly value: bigint }
  | { readonly kind: 'bytes'; readonly value: Uint8Array }
  | { readonly kind: 'fixed32'; readonly value: number }
  | { readonly kind: 'fixed64'; readonly value: number }
  | { readonly kind: 'group'; readonly value: readonly Field[] }
)

const fieldNumber = fc.oneof(fc.integer({ min: 1, max: 25 }), fc.integer({ min: 1, max: 2 ** 29 - 1 }))
/** Every length of varint, both signs. */
const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.tuple(fc.nat(63), fc.boolean(), fc.integer({ min: -1, max: 1 })).map(([bits, isNegative, off]) => {
    const value = 2n ** BigInt(bits) + BigInt(off)
    return BigInt.asIntN(64, isNegative ? -value : value)
  }),
)
const plainField = fc.oneof(
  fc.record({ number: fieldNumber, kind: fc.constant('varint' as const), value: int64 }),
  fc.record({
    number: fieldNumber,
    kind: fc.constant('bytes' as const),
    value: fc.uint8Array({ maxLength: 40 }),
  }),
  fc.record({
    number: fieldNumber,
    kind: fc.constant('bytes' as const),
    value: fc.integer({ min: 32_000, max: 70_000 }).map((length) => new Uint8Array(length).fill(7)),
  }),
  fc.record({ number: fieldNumber, kind: fc.constant('fixed32' as const), value: fc.nat() }),
  fc.record({ number: fieldNumber, kind: fc.constant('fixed64' as const), value: fc.nat() }),
)
const field: fc.Arbitrary<Field> = fc.oneof(
  { weight: 6, arbitrary: plainField },
  {
    weight: 1,
    arbitrary: fc.record({
      number: fieldNumber,
      kind: fc.constant('group' as const),
      value: fc.array(plainField, { maxLength: 3 }),
    }),
  },
)

describe.each(Object.entries(SOURCES))('%s', (name, place) => {
  const runs = name.includes('large file') ? 40 : 300

  test('fields written by protobufjs come back in order, with their values and places', () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 12 }), (fields) => {
        const bytes = encode(fields)
        const { source, start, stop } = place(bytes)
        const reader = new WireReader(source).seek(start)
        let at = start
        for (const expected of fields) {
          expect(reader.next(stop)).toBe(true)
          expect(reader.field).toBe(expected.number)
          expect(reader.fieldStart).toBe(at)
          expectValue(reader, expected)
          at = reader.stop
        }
        expect(at).toBe(stop)
        expect(reader.next(stop)).toBe(false)
        closeSource(source)
      }),
      { numRuns: runs },
    )
  })

  test('lists of integers are read packed and one by one', () => {
    fc.assert(
      fc.property(fc.array(int64, { minLength: 1, maxLength: 300 }), fc.boolean(), (values, isPacked) => {
        const { source, start, stop } = place(isPacked ? packed(values) : unpacked(values))
        const reader = new WireReader(source).seek(start)
        const read: bigint[] = []
        while (reader.next(stop)) read.push(...reader.integers('a list'))
        expect(read).toEqual(values)
        closeSource(source)
      }),
      { numRuns: runs },
    )
  })

  test('a text that crosses windows is read whole', () => {
    const text = `${'é'.repeat(40_000)}😀`
    const { source, start, stop } = place(protobuf.Writer.create().uint32(10).string(text).finish())
    const reader = new WireReader(source).seek(start)
    reader.next(stop)
    expect(reader.string).toBe(text)
    closeSource(source)
  })
})

describe('numbers', () => {
  const cases: [bigint][] = [
    0n,
    1n,
    127n,
    128n,
    2n ** 31n,
    2n ** 32n - 1n,
    2n ** 32n,
    2n ** 53n,
    2n ** 63n - 1n,
  ].flatMap((value) => [[value], [-value]] as [bigint][])
  test.each(cases)('%s is read exactly as an integer and nearest as a double', (value) => {
    const reader = firstField(encode([{ number: 1, kind: 'varint', value }]))
    expect(reader.bigint).toBe(value)
    expect(reader.number).toBe(Number(value))
  })

  test('a varint may be longer than it needs to be', () => {
    expect(firstField([0x08, 0x81, 0x80, 0x00]).bigint).toBe(1n)
  })
})

describe('malformed bytes are refused at the place where they go wrong', () => {
  const deepGroups = [...Array<number>(MAX_DEPTH + 1).fill(0x0b), ...Array<number>(MAX_DEPTH + 1).fill(0x0c)]
  test.each<[what: string, bytes: number[], offset: number, message: RegExp]>([
    ['a field number of 0', [0x08, 1, 0x00, 1], 2, /number 0/],
    ['a tag that is cut off', [0x08, 1, 0x80], 2, /cut off/],
    ['a tag of 11 bytes', [...Array<number>(10).fill(0x80), 1, 0], 0, /10 bytes/],
    ['a tag beyond 32 bits', [0x80, 0x80, 0x80, 0x80, 0x10, 0], 0, /too large/],
    ['a number of 11 bytes', [0x08, ...Array<number>(10).fill(0x80), 1], 1, /10 bytes/],
    ['a number that is cut off', [0x08, 0x80], 1, /cut off/],
    ['a length that is cut off', [0x0a, 0xff], 1, /cut off/],
    ['a length past the end', [0x0a, 2, 0], 0, /byte 4, but what holds it ends at byte 3/],
    ['a length beyond 2^32', [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 0, /but what holds it ends/],
    ['a length of -1', [0x0a, ...Array<number>(9).fill(0xff), 1], 0, /but what holds it ends/],
    ['32 bits that are cut off', [0x0d, 0, 0, 0], 0, /but what holds it ends/],
    ['64 bits that are cut off', [0x09, 0, 0, 0, 0, 0, 0, 0], 0, /but what holds it ends/],
    ['wire type 6', [0x0e, 0], 0, /wire type 6/],
    ['wire type 7', [0x0f, 0], 0, /wire type 7/],
    ['the end of a group that was not begun', [0x0c], 0, /wire type 4/],
    ['a group that does not end', [0x08, 1, 0x0b, 0x08, 1], 2, /group 1 does not end/],
    ['a group that ends as another', [0x0b, 0x14], 1, /group 1 ends as group 2/],
    ['a field number of 0 in a group', [0x0b, 0x00, 0, 0x0c], 1, /number 0/],
    ['groups nested without end', deepGroups, MAX_DEPTH, /nested more than/],
    ['ten thousand groups never closed', Array<number>(10_000).fill(0x0b), MAX_DEPTH, /nested more than/],
  ])('%s', (_, bytes, offset, message) => {
    const reader = new WireReader(bytesSource(Uint8Array.from(bytes), 'x.onnx'))
    expectRefusal(
      () => {
        while (reader.next(bytes.length));
      },
      { offset, message },
    )
  })

  test('a message may not reach beyond what holds it, though the file goes on', () => {
    const reader = new WireReader(bytesSource(Uint8Array.of(0x0a, 4, 1, 2, 3, 4), 'x.onnx')).seek(0)
    expectRefusal(() => reader.next(4), { offset: 0, message: /ends at byte 4/ })
  })

  test('a packed list ends where its field ends', () => {
    const reader = firstField([0x0a, 2, 1, 0x80, 0x01])
    expectRefusal(() => [...reader.integers('a list')], { offset: 3, message: /cut off at byte 4/ })
  })

  test.each([FIXED32, FIXED64])('a list of integers cannot have wire type %i', (wireType) => {
    const reader = firstField([8 | wireType, 0, 0, 0, 0, 0, 0, 0, 0])
    expectRefusal(() => [...reader.integers('a list')], { offset: 0, message: /a list has wire type/ })
  })

  test.each<[string, number[]]>([
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a sequence that is cut off', [0x61, 0xe2, 0x82]],
    ['0xff', [0xff]],
  ])('a name with %s is not UTF-8', (_, bytes) => {
    const reader = firstField([0x0a, bytes.length, ...bytes])
    expectRefusal(() => reader.string, { offset: 0, message: /not valid UTF-8/ })
  })

  test('the replacement character itself is a character like any other', () => {
    expect(firstField([0x0a, 3, 0xef, 0xbf, 0xbd]).string).toBe('\uFFFD')
  })

  test('a text longer than a string can be is refused without being read', () => {
    const length = 2 ** 30
    const head = protobuf.Writer.create().uint32(10).uint32(length).finish()
    const source = {
      name: 'x.onnx',
      size: head.length + length,
      read: (offset: number, count: number): Uint8Array => {
        if (count > 1_000_000) throw new Error('read far too much')
        return Buffer.concat([head.subarray(offset), Buffer.alloc(count)]).subarray(0, count)
      },
    }
    const reader = new WireReader(source)
    reader.next(source.size)
    expectRefusal(() => reader.string, { offset: 0, message: /too long/ })
  })
})

describe('reading by windows', () => {
  test('payloads that nobody asks for are not read', () => {
    const bytes = encode(
      Array.from({ length: 20 }, (_, at) => ({
        number: at + 1,
        kind: 'bytes',
        value: new Uint8Array(1_000_000),
      })),
    )
    let read = 0
    const source = bytesSource(bytes)
    const counting = {
      name: 'x',
      size: bytes.length,
      read: (offset: number, length: number): Uint8Array => {
        read += length
        return source.read(offset, length)
      },
    }
    const reader = new WireReader(counting)
    let fields = 0
    while (reader.next(bytes.length)) fields++
    expect(fields).toBe(20)
    expect(read).toBeLessThan(1_000_000)
  })
})

function expectValue(reader: WireReader, { kind, value }: Field): void {
  switch (kind) {
    case 'varint':
      expect(reader.wireType).toBe(VARINT)
      expect(reader.bigint).toBe(value)
      return
    case 'bytes':
      expect(reader.wireType).toBe(BYTES)
      expect(Buffer.compare(reader.bytes, value)).toBe(0)
      return
    case 'fixed32':
      expect(reader.wireType).toBe(FIXED32)
      expect(Buffer.from(reader.bytes).readUInt32LE()).toBe(value)
      return
    case 'fixed64':
      expect(reader.wireType).toBe(FIXED64)
      expect(Buffer.from(reader.bytes).readBigUInt64LE()).toBe(BigInt(value))
      return
    case 'group':
      expect(reader.wireType).toBe(START_GROUP)
      expect(reader.stop - reader.start).toBeGreaterThan(0)
  }
}

function encode(fields: readonly Field[], writer: protobuf.Writer = protobuf.Writer.create()): Uint8Array {
  for (const { number, ...content } of fields) {
    const tag = (wireType: number): protobuf.Writer => writer.uint32(((number << 3) | wireType) >>> 0)
    switch (content.kind) {
      case 'varint':
        tag(VARINT).int64(toLong(content.value))
        break
      case 'bytes':
        tag(BYTES).bytes(content.value)
        break
      case 'fixed32':
        tag(FIXED32).fixed32(content.value)
        break
      case 'fixed64':
        tag(FIXED64).fixed64(content.value)
        break
      case 'group':
        tag(START_GROUP)
        encode(content.value, writer)
        tag(START_GROUP + 1)
    }
  }
  return writer.finish()
}

function packed(values: readonly bigint[]): Uint8Array {
  const writer = protobuf.Writer.create().uint32(0x0a).fork()
  for (const value of values) writer.int64(toLong(value))
  return writer.ldelim().finish()
}

function unpacked(values: readonly bigint[]): Uint8Array {
  return encode(values.map((value) => ({ number: 1, kind: 'varint', value })))
}

/** protobufjs takes 64 bits as two halves. */
function toLong(value: bigint): never {
  const bits = BigInt.asUintN(64, value)
  return { low: Number(bits & 0xffff_ffffn) | 0, high: Number(bits >> 32n) | 0, unsigned: false } as never
}

function firstField(bytes: Uint8Array | number[]): WireReader {
  const reader = new WireReader(bytesSource(Uint8Array.from(bytes), 'x.onnx'))
  reader.next(bytes.length)
  return reader
}

function expectRefusal(run: () => unknown, { offset, message }: { offset: number; message: RegExp }): void {
  let thrown: unknown
  try {
    run()
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(ModelTestError)
  const { code, file, offset: at, hint, message: text } = thrown as ModelTestError
  expect({ code, file, at }).toEqual({ code: 'MALFORMED_MODEL', file: 'x.onnx', at: offset })
  expect(hint).not.toBe('')
  expect(text).toMatch(message)
}

function closeSource(source: object): void {
  if ('close' in source) (source as { close: () => void }).close()
}
