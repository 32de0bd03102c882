import { expect, test } from 'vitest'
import { shapeCases, type ShapeSources } from '../../src/suite/shape-cases.ts'

const NONE: ShapeSources = { config: { forced: {}, general: {} } }

test('nobody sets sizes: one case without a label, batches of 1, others small', () => {
  expect(shapeCases([], NONE)).toEqual([{ sizes: {}, label: '' }])
  expect(shapeCases(['batch_size', 'seq_len', 'height', 'state.1', 'x.0'], NONE)).toEqual([
    { sizes: { batch_size: 1, seq_len: 8, height: 64, 'state.1': 8, 'x.0': 1 }, label: '' },
  ])
})

test('every combination of the sizes that were set is a case, named by them', () => {
  const config = { forced: {}, general: { batch: [1, 4], seq: [16], unknown: [9] } }
  expect(shapeCases(['batch', 'seq', 'other'], { config })).toEqual([
    { sizes: { batch: 1, seq: 16, other: 8 }, label: '@batch=1,seq=16' },
    { sizes: { batch: 4, seq: 16, other: 8 }, label: '@batch=4,seq=16' },
  ])
})

test('environment, then sidecar, then options, symbol by symbol', () => {
  const config = { forced: { a: [1] }, general: { a: [2], b: [2], c: [2] } }
  const [one] = shapeCases(['a', 'b', 'c'], { config, sidecar: { a: [3], b: [3] } })
  expect(one?.sizes).toEqual({ a: 1, b: 3, c: 2 })
})

test('sizes of a kind hold for every symbol of it', () => {
  const config = { forced: {}, general: {}, batch: [2], sequence: [5] }
  expect(shapeCases(['N', 'sequence', 'past_seq_len'], { config })[0]?.sizes).toEqual({
    N: 2,
    sequence: 5,
    past_seq_len: 4,
  })
})

test('sums follow from their terms', () => {
  const symbols = ['past_len', 'seq_len', 'past_len + 1', 'past_len + seq_len', 'total_len', 'other + 1']
  const [one] = shapeCases(symbols, { config: { forced: { past_len: [3], seq_len: [2] }, general: {} } })
  expect(one).toEqual({
    sizes: {
      past_len: 3,
      seq_len: 2,
      'past_len + 1': 4,
      'past_len + seq_len': 5,
      total_len: expect.any(Number),
      'other + 1': 8,
    },
    label: '@past_len=3,seq_len=2',
  })
  const [total] = shapeCases(['past_seq', 'seq', 'total_seq'], NONE)
  expect(total?.sizes).toEqual({ past_seq: 4, seq: 8, total_seq: 12 })
})

test('a sidecar that names no dimension of the model is refused; so are too many combinations', () => {
  expect(() => shapeCases(['n'], { ...NONE, sidecar: { m: [1] } })).toThrow(
    'shapes.m: the model has no dimension',
  )
  const many = Array.from({ length: 40 }, (_, at) => at)
  const config = { forced: { a: many, b: many }, general: {} }
  expect(() => shapeCases(['a', 'b'], { config })).toThrow('1600 combinations (a: 40, b: 40)')
})
