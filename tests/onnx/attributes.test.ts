import * as fc from 'fast-check'
import onnxProto from 'onnx-proto'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { ModelTestError } from '../../src/errors.ts'
import { type AttributeValue, intAttribute, readAttributes } from '../../src/onnx/attributes.ts'
import { BYTES, bytesField, fieldOfType, FIXED32, FIXED64, GROUP, VARINT, varintField } from './wire.ts'

const { NodeProto } = onnxProto.onnx

describe('attributes of every kind, as onnx-proto writes them', () => {
  const table: [kind: string, written: object, read: object][] = [
    ['int', { type: 2, i: -7 }, { kind: 'int', value: -7n }],
    ['int without a type', { i: 7 }, { kind: 'int', value: 7n }],
    ['int that is zero and left out', { type: 2 }, { kind: 'int', value: 0n }],
    ['float', { type: 1, f: 0.5 }, { kind: 'float', value: 0.5 }],
    ['float without a type', { f: -2 }, { kind: 'float', value: -2 }],
    ['string', { type: 3, s: Buffer.from('héllo') }, { kind: 'string', value: 'héllo' }],
    ['empty string', { type: 3 }, { kind: 'string', value: '' }],
    ['ints', { type: 7, ints: [1, -1, 3] }, { kind: 'ints', value: [1n, -1n, 3n] }],
    ['ints without a type', { ints: [4] }, { kind: 'ints', value: [4n] }],
    ['no ints', { type: 7, ints: [] }, { kind: 'ints', value: [] }],
    ['floats', { type: 6, floats: [0.25, -1] }, { kind: 'floats', value: [0.25, -1] }],
    [
      'strings',
      { type: 8, strings: [Buffer.from('a'), Buffer.from('')] },
      { kind: 'strings', value: ['a', ''] },
    ],
    ['reference', { type: 1, refAttrName: 'alpha' }, { kind: 'reference', name: 'alpha' }],
    ['graph', { type: 5, g: { name: 'body' } }, { kind: 'graph' }],
    ['graphs', { type: 10, graphs: [{ name: 'body' }] }, { kind: 'graph' }],
    ['nothing', {}, { kind: 'other' }],
  ]
  test.each(table)('%s', (_, written, read) => {
    expect(attributesOf({ name: 'a', ...written }).get('a')).toEqual(read)
  })

  test('types stay where they are', () => {
    const value = attributesOf({ name: 'a', type: 13, tp: { denotation: 'x' } }).get('a')
    expect(value).toMatchObject({ kind: 'type', range: { start: expect.any(Number) } })
  })

  test('tensors stay where they are', () => {
    const value = attributesOf({
      name: 'a',
      type: 4,
      t: { dims: [2], dataType: 1, rawData: new Uint8Array(8) },
    }).get('a')
    expect(value).toMatchObject({ kind: 'tensor', range: { start: expect.any(Number) } })
  })

  test('any integers, packed or not', () => {
    const int32 = fc.integer()
    fc.assert(
      fc.property(fc.array(int32, { minLength: 1 }), fc.boolean(), (values, isPacked) => {
        const fields = isPacked
          ? [bytesField(8, ...values.map((value) => varintField(1, value).subarray(1)))]
          : values.map((value) => varintField(8, value))
        expect(valueOf(...fields)).toEqual({ kind: 'ints', value: values.map(BigInt) })
      }),
    )
  })

  test('of several of one name the last counts', () => {
    expect(attributesOf({ name: 'a', i: 1 }, { name: 'a', i: 2 }).get('a')).toEqual({
      kind: 'int',
      value: 2n,
    })
  })
})

describe('malformed attributes', () => {
  test.each<[what: string, number: number, allowed: number[]]>([
    ['name', 1, [BYTES]],
    ['f', 2, [FIXED32]],
    ['i', 3, [VARINT]],
    ['s', 4, [BYTES]],
    ['t', 5, [BYTES]],
    ['g', 6, [BYTES]],
    ['floats', 7, [FIXED32, BYTES]],
    ['ints', 8, [VARINT, BYTES]],
    ['strings', 9, [BYTES]],
    ['graphs', 11, [BYTES]],
    ['type', 20, [VARINT]],
    ['ref_attr_name', 21, [BYTES]],
    ['sparse_tensor', 22, [BYTES]],
  ])('%s of the wrong wire type', (_, number, allowed) => {
    for (const wireType of [VARINT, FIXED64, BYTES, FIXED32, GROUP]) {
      const read = (): AttributeValue | undefined => valueOf(fieldOfType(number, wireType))
      if (allowed.includes(wireType)) expect(read).not.toThrow()
      else expect(read).toThrow(/wire type/)
    }
  })

  test('floats that end inside a number are refused when they are asked for', () => {
    const value = valueOf(bytesField(7, new Uint8Array(6)))!
    expect(value.kind).toBe('floats')
    expect(() => 'value' in value && value.value).toThrow('a list of floats ends inside a number')
  })
})

test('a list of millions costs nothing until it is asked for, and is refused then', () => {
  const count = 5 * 1024 * 1024
  const value = valueOf(bytesField(8, new Uint8Array(count)))!
  expect(value.kind).toBe('ints')
  const error = thrownBy(() => 'value' in value && value.value)
  expect(error).toBeInstanceOf(ModelTestError)
  expect((error as ModelTestError).code).toBe('MODEL_TOO_LARGE')
})

test('an integer by name, where it is one', () => {
  const bytes = NodeProto.encode({
    attribute: [
      { name: 'axis', i: -1 },
      { name: 's', s: Buffer.from('x') },
    ],
  } as never).finish()
  const [source, node] = [bytesSource(bytes), { start: 0, stop: bytes.length } as never]
  expect(['axis', 's', 'none'].map((name) => intAttribute(source, node, name))).toEqual([
    -1,
    undefined,
    undefined,
  ])
})

function attributesOf(...attribute: object[]): Map<string, AttributeValue> {
  const bytes = NodeProto.encode({ opType: 'X', attribute } as never).finish()
  return readAttributes(bytesSource(bytes), { start: 0, stop: bytes.length })
}

/** The attribute made of these fields. */
function valueOf(...fields: Uint8Array[]): AttributeValue | undefined {
  const bytes = bytesField(5, ...fields)
  return [...readAttributes(bytesSource(bytes), { start: 0, stop: bytes.length }).values()][0]
}

function thrownBy(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
