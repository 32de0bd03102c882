import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { ModelTestError } from '../../../src/errors.ts'
import { DEFAULT_CHIPS, parseSimChip, simChip } from '../../../src/targets/sim/chip.ts'

const FILE = 'testdata/chips/tiny.json'

describe('a chip file', () => {
  test('is named after itself unless it says otherwise', () => {
    expect(parseSimChip('{"storage":"float16"}', FILE)).toEqual({ name: 'tiny', storage: 'float16' })
    expect(parseSimChip('{"name":"a","storage":"int8"}', FILE).name).toBe('a')
  })

  test('sets everything a chip has', () => {
    const chip = {
      name: 'all',
      storage: 'bfloat16',
      accumulate: 'float64',
      unsupportedOps: ['Conv', 'com.microsoft.Attention'],
      memoryBytes: 1024,
      opsPerSecond: 1e12,
      bytesPerSecond: 0.5,
    }
    expect(parseSimChip(JSON.stringify(chip), FILE)).toEqual(chip)
  })

  test.each([
    ['not JSON', '{', /is not JSON/],
    ['no object', '[]', /must be an object that describes a chip/],
    ['nothing', 'null', /must be an object that describes a chip/],
    ['no storage', '{}', /storage must be one of float32, float16, bfloat16, int8/],
    ['another storage', '{"storage":"float8"}', /storage must be one of/],
    ['a narrow sum', '{"storage":"float16","accumulate":"float16"}', /accumulate must be one of/],
    ['a misspelt field', '{"storage":"int8","memoryByte":1}', /memoryByte/],
    ['negative memory', '{"storage":"int8","memoryBytes":-1}', /memoryBytes must be more than 0/],
    ['half a byte', '{"storage":"int8","memoryBytes":1.5}', /memoryBytes must be a whole number/],
    ['endless speed', '{"storage":"int8","opsPerSecond":1e999}', /opsPerSecond must be a number/],
    ['ops that are no list', '{"storage":"int8","unsupportedOps":"Conv"}', /unsupportedOps must be a list/],
    ['an op that is no text', '{"storage":"int8","unsupportedOps":[1]}', /unsupportedOps\.0 must be/],
    ['a name with a slash', '{"storage":"int8","name":"../x"}', /name must be made of/],
    ['a prototype', '{"storage":"int8","__proto__":{"memoryBytes":1}}', /__proto__/],
  ])('with %s is refused with the file and the field', (_, text, message) => {
    const error = errorOf(() => parseSimChip(text, FILE))
    expect(error).toMatchObject({
      code: 'INVALID_OPTION',
      file: FILE,
      hint: expect.stringContaining('storage'),
    })
    expect(error.message).toMatch(message)
    expect(error.message).toContain(FILE)
  })

  test('of any content is read or refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        try {
          parseSimChip(text, FILE)
        } catch (error) {
          expect(error).toBeInstanceOf(ModelTestError)
        }
      }),
    )
  })
})

test('the default chips are valid, have names of their own, and "default" comes first', () => {
  for (const chip of DEFAULT_CHIPS) expect(simChip.parse(chip)).toEqual(chip)
  const names = DEFAULT_CHIPS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toEqual(['default', 'float32', 'float16', 'bfloat16', 'int8'])
})

function errorOf(act: () => unknown): ModelTestError {
  try {
    act()
  } catch (error) {
    if (error instanceof ModelTestError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
