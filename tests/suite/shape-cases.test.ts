import { expect, test } from 'vitest'
import { shapeCases, type ShapeSources } from '../../src/suite/shape-cases.ts'

const NONE: ShapeSources = { config: { forced: {}, general: {} } }

test('nobody sets sizes: one case without a label', () => {
  expect(shapeCases([], NONE)).toEqual([{ sizes: {}, label: '' }])
  expect(shapeCases(['batch_size', 'x.0'], NONE)).toMatchObject([{ label: '' }])
})

test('every combination of the sizes that were set is a case, named by them', () => {
  const config = { forced: {}, general: { batch: [1, 4], seq: [16], unknown: [9] } }
  expect(shapeCases(['batch', 'seq', 'other'], { config })).toMatchObject([
    { sizes: { batch: 1, seq: 16 }, label: '@batch=1,seq=16' },
    { sizes: { batch: 4, seq: 16 }, label: '@batch=4,seq=16' },
  ])
})

test('environment, then sidecar, then options, symbol by symbol', () => {
  const config = { forced: { a: [1] }, general: { a: [2], b: [2], c: [2] } }
  const [one] = shapeCases(['a', 'b', 'c'], { config, sidecar: { a: [3], b: [3] } })
  expect(one?.sizes).toEqual({ a: 1, b: 3, c: 2 })
})

test('sizes of a kind hold for every symbol of it, a past being none', () => {
  const config = { forced: {}, general: {}, batch: [2], sequence: [5] }
  expect(shapeCases(['N', 'sequence', 'past_seq_len'], { config })).toMatchObject([
    { sizes: { N: 2, sequence: 5 }, label: '@N=2,sequence=5' },
  ])
})

test('a sidecar that names no dimension of the model is refused; so are too many combinations', () => {
  expect(() => shapeCases(['n'], { ...NONE, sidecar: { m: [1] } })).toThrow(
    'shapes.m: the model has no dimension',
  )
  const many = Array.from({ length: 40 }, (_, at) => at)
  const config = { forced: { a: many, b: many }, general: {} }
  expect(() => shapeCases(['a', 'b'], { config })).toThrow('1600 combinations (a: 40, b: 40)')
})
