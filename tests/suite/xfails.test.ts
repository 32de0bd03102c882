import { expect, test } from 'vitest'
import { parseXfails, updateXfails, xfailFinder } from '../../src/suite/xfails.ts'

const TEXT = `# known failures
a_layer_Relu_0-sim-default owner/repo#17  # rounding

b_*-webgpu-default
c_full_model-sim-default
`

test('lines are a name and perhaps an issue', () => {
  expect(parseXfails(TEXT, 'x.txt')).toEqual([
    { test: 'a_layer_Relu_0-sim-default', issue: 'owner/repo#17', from: 'x.txt:2' },
    { test: 'b_*-webgpu-default', from: 'x.txt:4' },
    { test: 'c_full_model-sim-default', from: 'x.txt:5' },
  ])
})

test.each([
  ['a owner/repo#1 more', 'x.txt:1 has 3 fields: a owner/repo#1 more'],
  ['a broken', 'x.txt:1 has "broken" for an issue: a broken'],
])('"%s" is refused', (line, message) => {
  expect(() => parseXfails(line, 'x.txt')).toThrow(message)
})

test('a name is found as it is, and by a pattern', () => {
  const find = xfailFinder(parseXfails(TEXT))
  expect(find('a_layer_Relu_0-sim-default')?.issue).toBe('owner/repo#17')
  expect(find('b_layer_Add_3-webgpu-default')?.test).toBe('b_*-webgpu-default')
  expect(find('a_layer_Relu_0-cpu-default')).toBeUndefined()
})

test('an update drops what passes, adds what fails, and keeps the rest', () => {
  const results = [
    { test: 'a_layer_Relu_0-sim-default', passed: true },
    { test: 'b_one-webgpu-default', passed: true },
    { test: 'b_two-webgpu-default', passed: false },
    { test: 'd_full_model-sim-default', passed: false },
    { test: 'e_full_model-sim-default', passed: true },
  ]
  expect(updateXfails(TEXT, results)).toBe(
    '# known failures\n\nb_*-webgpu-default\nc_full_model-sim-default\nd_full_model-sim-default\n',
  )
})

test('an update of nothing changes nothing; a pattern goes when all it matches passes', () => {
  expect(updateXfails(TEXT, [])).toBe(TEXT)
  expect(updateXfails('', [{ test: 'a', passed: false }])).toBe('a\n')
  expect(updateXfails('a*\n', [{ test: 'ab', passed: true }])).toBe('')
})
