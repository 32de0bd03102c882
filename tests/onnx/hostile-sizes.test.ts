import { describe, expect, test } from 'vitest'
import { summarizeModel } from '../../src/onnx/summary.ts'
import { readAttributes } from '../../src/onnx/attributes.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { bytesInUse } from '../fuzz/budget.ts'
import { encodeModel, modelOf } from './built-models.ts'
import { expectRefused, index, refusalOf } from './refusal.ts'
import { bytesField, nested, varintField } from './wire.ts'

/** Generous: these take some hundred milliseconds on a slow machine, and hours where they go wrong. */
const MILLISECONDS = 5_000
const TIMEOUT = { timeout: 60_000 }
const MEGABYTE = 1024 * 1024

const HEAD = Buffer.concat([varintField(1, 8), bytesField(8, varintField(2, 17))])

describe('files made of nothing but headers', TIMEOUT, () => {
  test('100 MB of empty nodes', () => {
    const bytes = Buffer.concat([HEAD, bytesField(7, emptyFields(1, 50 * MEGABYTE))])
    inTime(() => {
      const before = process.memoryUsage().heapUsed
      expectRefused(bytes, 'MODEL_TOO_LARGE', /more nodes, names and values than/)
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(600 * MEGABYTE)
    })
  })

  test.each([
    ['values', 11],
    ['initializers', 5],
    ['unknown fields', 10],
  ])('20 MB of empty %s', (_, number) => {
    const fields = emptyFields(number, 10 * MEGABYTE)
    inTime(() => expectRefused(Buffer.concat([HEAD, bytesField(7, fields)]), 'MODEL_TOO_LARGE', /more nodes/))
  })

  test('20 MB of empty inputs of one node', () => {
    const node = bytesField(1, emptyFields(1, 10 * MEGABYTE))
    inTime(() => expectRefused(Buffer.concat([HEAD, bytesField(7, node)]), 'MODEL_TOO_LARGE', /more nodes/))
  })

  test('300,000 producer names', () => {
    const names = Buffer.concat(Array<Uint8Array>(300_000).fill(bytesField(2, 'me')))
    inTime(() => expect(index(Buffer.concat([HEAD, bytesField(7), names])).producer).toBe('me'))
  })
})

describe('sizes that are only claimed', TIMEOUT, () => {
  test.each([1, 7, 9])('a tensor of 2^60 elements of data type %i takes no memory', (dataType) => {
    const initializer = [{ name: 'w', dims: [2 ** 30, 2 ** 30], dataType, rawData: new Uint8Array(8) }]
    const before = bytesInUse()
    const model = index(encodeModel(modelOf({ initializer, output: [{ name: 'w' }] })))
    expect(summarizeModel(model).parameters.count).toBe(2 ** 60)
    resolveModel(model)
    expect(bytesInUse() - before).toBeLessThan(10 * MEGABYTE)
  })

  test('sizes whose product is beyond all numbers, times zero, are none', () => {
    const dims = [...Array<number>(40).fill(2 ** 52), 0]
    const { parameters } = summarizeModel(
      index(encodeModel(modelOf({ initializer: [{ name: 'w', dims, dataType: 1 }] }))),
    )
    expect(parameters).toMatchObject({ count: 0, bytes: 0 })
  })

  test('500 MB of packed integers that are not there', () => {
    const claimed = Uint8Array.of(0x0a, 0x80, 0xca, 0xb5, 0xee, 0x01, 1, 2, 3)
    for (const wrapped of [
      bytesField(5, claimed),
      bytesField(15, bytesField(1), claimed),
      bytesField(1, claimed),
    ]) {
      expectRefused(Buffer.concat([HEAD, bytesField(7, wrapped)]), 'MALFORMED_MODEL', /should go on to byte/)
    }
  })

  test('a sparse tensor of more dimensions than any runtime takes', () => {
    const sparse = bytesField(
      15,
      bytesField(1, bytesField(8, 's')),
      bytesField(3, new Uint8Array(10 * MEGABYTE)),
    )
    inTime(() => expectRefused(Buffer.concat([HEAD, bytesField(7, sparse)]), 'MALFORMED_MODEL', /dimensions/))
  })
})

describe('large numbers of one thing are linear', TIMEOUT, () => {
  const x = { name: 'x' }
  const relu = { opType: 'Relu', input: ['x'], output: ['r'] }
  const body = { node: [relu], output: [{ name: 'r' }] }
  const models: [string, () => Parameters<typeof modelOf>[0]][] = [
    ['100,000 nodes that give the same name', () => ({ input: [x], node: times(100_000, () => relu) })],
    [
      '100,000 attributes on a node',
      () => ({ node: [{ opType: 'X', attribute: times(100_000, (at) => ({ name: `a${at}`, i: at })) }] }),
    ],
    [
      '1,000,000 inputs of a node',
      () => ({ input: [x], node: [{ opType: 'Sum', input: times(1_000_000, () => 'x'), output: ['y'] }] }),
    ],
    [
      '50,000 attributes with subgraphs on a node',
      () => ({
        input: [x],
        node: [{ opType: 'X', attribute: times(50_000, (at) => ({ name: `g${at}`, g: body })) }],
      }),
    ],
    [
      '50,000 subgraphs in an attribute',
      () => ({
        input: [x],
        node: [{ opType: 'X', attribute: [{ name: 'g', graphs: times(50_000, () => body) }] }],
      }),
    ],
    [
      '100,000 initializers of one name',
      () => ({ initializer: times(100_000, () => ({ name: 'w', dims: [1], dataType: 1, floatData: [1] })) }),
    ],
  ]
  test.each(models)('%s', (_, build) => {
    const bytes = encodeModel(modelOf(build()))
    inTime(() => {
      const model = index(bytes)
      summarizeModel(model)
      resolveModel(model)
      for (const node of model.graph.nodes.slice(0, 10)) readAttributes(model.source, node)
    })
  })

  test('types of types of 10 MB, a hundred deep, are read once', () => {
    const innermost = bytesField(1, varintField(1, 1), bytesField(99, new Uint8Array(10 * MEGABYTE)))
    const type = nested(innermost, [1, 4], 99)
    const input = bytesField(11, bytesField(1, 'x'), bytesField(2, type))
    const bytes = Buffer.concat([HEAD, bytesField(7, input)])
    inTime(() => expect(refusalOf(bytes, (all) => summarizeModel(index(all)))).toBeUndefined())
  })
})

/** `count` empty fields of this number. */
function emptyFields(number: number, count: number): Buffer {
  return Buffer.alloc(2 * count).fill(Uint8Array.of((number << 3) | 2, 0))
}

function times<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function inTime(run: () => void): void {
  const start = performance.now()
  run()
  expect(performance.now() - start).toBeLessThan(MILLISECONDS)
}
