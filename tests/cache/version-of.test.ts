import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { versionOf } from '../../src/cache/store.ts'

const content = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      null,
      true,
      false,
      -0,
      0,
      NaN,
      Infinity,
      -Infinity,
      '',
      '0',
      'null',
      '-0',
      '1n',
      '[]',
      '{}',
    ),
    fc.double(),
    fc.integer({ min: -3, max: 3 }),
    fc.bigInt({ min: -3n, max: 3n }),
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.uint8Array({ maxLength: 3 }),
    fc.float32Array({ maxLength: 2 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', '"', '__proto__', '1'), tie('value'), { maxKeys: 3 }),
    fc.array(tie('value'), { maxLength: 2 }).map((items) => new Set(items)),
  ),
})).value

test('the same content gives the same version, whatever the order of its keys', () => {
  fc.assert(
    fc.property(content, (value) => {
      expect(versionOf(reversed(value))).toBe(versionOf(value))
    }),
  )
})

test('different contents give different versions', () => {
  fc.assert(
    fc.property(content, content, (a, b) => {
      expect(versionOf(a) === versionOf(b)).toBe(isSame(a, b))
    }),
    { numRuns: 2000 },
  )
})

test('values that look alike stay apart', () => {
  const values = [
    0,
    -0,
    0n,
    '0',
    null,
    undefined,
    NaN,
    'NaN',
    [],
    [[]],
    [undefined],
    [null],
    {},
    { a: null },
    '',
  ]
  const bytes = [
    new Uint8Array([1]),
    [1],
    new Int8Array([1]),
    new Uint8Array([1, 0]),
    new Map([[0, 1]]),
    new Set([1]),
  ]
  expect(new Set([...values, ...bytes].map(versionOf)).size).toBe(values.length + bytes.length)
})

test('a property that is undefined counts as missing', () => {
  expect(versionOf({ a: 1, b: undefined })).toBe(versionOf({ a: 1 }))
})

test('bytes count by content: a Buffer and a view into a larger one are the same as a copy', () => {
  const bytes = new Uint8Array([1, 2, 3])
  expect(versionOf(Buffer.from(bytes))).toBe(versionOf(bytes))
  expect(versionOf(new Uint8Array([0, 1, 2, 3, 4]).subarray(1, 4))).toBe(versionOf(bytes))
})

test('objects of another realm are plain too', () => {
  expect(versionOf(runInNewContext('({ b: [1, new Map([[1, 2]])], a: 2n })'))).toBe(
    versionOf({ a: 2n, b: [1, new Map([[1, 2]])] }),
  )
})

test('the version of a fixed content never changes, or every cache would be thrown away', () => {
  expect(
    versionOf({ model: 'abc', seed: 1, shapes: { batch: [1, 4] }, bytes: new Uint8Array([1]) }),
  ).toMatchInlineSnapshot(`"ae611fe1a5b9bb97ec34bcc380e6edd4f48fe335417ad7bdc614ba964a1cfa80"`)
})

const loop: Record<string, unknown> = {}
loop['self'] = { loop }
test.for([
  [{ a: [0, () => {}] }, 'a function at a.1'],
  [{ a: Symbol('s') }, 'a symbol at a'],
  [{ at: new Date() }, 'an instance of Date at at'],
  [loop, 'an object that contains itself at self.loop'],
] as const)('%o is refused as %s', ([value, message]) => {
  expect(() => versionOf(value)).toThrow(message)
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (value instanceof Set) return new Set([...value].map(reversed).toReversed())
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  const pairs = Object.entries(value).map(([key, item]) => [key, reversed(item)] as const)
  return Object.fromEntries(pairs.toReversed())
}

/** Written apart from the code under test: compares, never renders. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (kindOf(a) !== kindOf(b)) return false
  if (ArrayBuffer.isView(a) && ArrayBuffer.isView(b)) {
    return Buffer.compare(bytesOf(a), bytesOf(b)) === 0
  }
  if (a instanceof Set && b instanceof Set)
    return isSameList([...a], [...b]) || isSameUnordered([...a], [...b])
  if (Array.isArray(a) && Array.isArray(b)) return isSameList(a, b)
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const keys = Object.keys(left)
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isSame(left[key], right[key]))
  )
}

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, at) => isSame(item, b[at]))
}

/** Sets of at most two. */
function isSameUnordered(a: readonly unknown[], b: readonly unknown[]): boolean {
  return isSameList(a, b.toReversed())
}

function kindOf(value: object): string {
  return Object.prototype.toString.call(value)
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
}
