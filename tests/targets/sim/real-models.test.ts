import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compileForSim } from '../../../src/targets/sim/compile.ts'
import { DEFAULT_CHIPS, type SimChip } from '../../../src/targets/sim/chip.ts'
import { fromFloat64, type Tensor, toFloat64 } from '../../../src/tensor/tensor.ts'
import { differences, type Tensors } from '../../support/composition.ts'
import { hasShared, type SharedModel, sharedModels } from '../../support/shared.ts'
import { feedsFor, rangesOf, roundedNames, run, runAll } from './simulate.ts'

/** Every kind once, none that takes seconds. */
const NAMES =
  /super-res|bert-toy|tiny-random|distilbert|bilstm|qlstm|mnist|light_squeezenet|vad_legacy|qdq16|odd-/
const models = sharedModels().filter(({ file, runsOnOrtCpu }) => runsOnOrtCpu && NAMES.test(file))

/**
 * How far outputs may be off, as a share of the largest. Elsewhere only running is asked for: the
 * models of audio and the "light" ones leave the range of float16 and int8, and a model that
 * quantises coarsely itself makes whole steps of what is rounded before.
 */
const LIMITS: Readonly<Record<string, number>> = { default: 1e-5, float16: 0.01, bfloat16: 0.04, int8: 0.2 }
const UNBOUNDED = /silero|light_|quant16/
/** Holds a float64 beyond the range of every storage. */
const BEYOND_ALL = 'odd-burn/all_dtypes.onnx'

// Without the shared models there is nothing real to compile.
describe.skipIf(!hasShared)('a real model on every chip', () => {
  test.each(models)('$file', { timeout: 60_000 }, async (model) => {
    const [bytes, folder] = [readFileSync(model.path), dirname(model.path)]
    const feeds = feedsFor(model, bytes)
    const reference = await run(bytes, feeds, { folder })
    const ranges = rangesOf(await runAll(bytes, feeds, folder))
    for (const chip of DEFAULT_CHIPS) {
      const results = await run(compileForSim(bytes, chip, ranges).bytes, feeds, { folder })
      if (chip.name === 'float32' && model.file !== BEYOND_ALL)
        expect(differences(reference, results)).toEqual([])
      expect([...results.keys()]).toEqual([...reference.keys()])
      for (const [name, expected] of reference) {
        expect([results.get(name)!.dtype, results.get(name)!.shape]).toEqual([expected.dtype, expected.shape])
      }
      if (isWithin(model, chip)) expectClose(reference, results, LIMITS[chip.name]!)
    }
  })

  const chips = DEFAULT_CHIPS.filter(({ storage }) => storage === 'float16' || storage === 'bfloat16')
  const cases = models
    .filter(({ file }) => !/^odd-|super-res|vad|light_/.test(file))
    .flatMap((model) => chips.map((chip) => ({ model, chip })))

  test.each(cases)(
    '$model.file holds numbers of $chip.name wherever it stores',
    { timeout: 60_000 },
    async ({ model, chip }) => {
      const [bytes, folder] = [readFileSync(model.path), dirname(model.path)]
      const values = await runAll(compileForSim(bytes, chip).bytes, feedsFor(model, bytes), folder)
      for (const name of roundedNames(bytes, chip.storage)) {
        const value = values.get(name)
        if (value !== undefined) expect([name, misfit(value, chip)]).toEqual([name, undefined])
      }
    },
  )
})

function isWithin({ file }: SharedModel, { name }: SimChip): boolean {
  return name !== 'float32' && file !== BEYOND_ALL && (name === 'default' || !UNBOUNDED.test(file))
}

function expectClose(reference: Tensors, results: Tensors, limit: number): void {
  for (const [name, expected] of reference) {
    if (expected.dtype === 'string' || expected.data.length === 0) continue
    const [a, b] = [toFloat64(expected), toFloat64(results.get(name)!)]
    const scale = a.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const error = a.reduce((most, value, at) => Math.max(most, distance(value, b[at]!)), 0)
    expect(error, name).toBeLessThanOrEqual(limit * scale)
  }
}

function distance(a: number, b: number): number {
  return Object.is(a, b) ? 0 : Math.abs(a - b)
}

/** The first number that the storage of a chip does not have. */
function misfit(value: Tensor, { storage }: SimChip): number | undefined {
  const numbers = toFloat64(value)
  const nearest = toFloat64(fromFloat64(storage, value.shape, numbers))
  return numbers.find((number, at) => number !== nearest[at] && !Number.isNaN(number))
}
