/**
 * What every target holds to, whoever wrote it.
 *
 * Models that it says it cannot run must be refused with a reason; all others run and come close
 * to the reference.
 */
import { describe, expect, test } from 'vitest'
import { rangesOf } from '../../src/fixtures/value-ranges.ts'
import { sharedOrtPool } from '../../src/targets/ort-pool.ts'
import type { Chip, Runner, Target, TargetContext, TargetModel, Tensors } from '../../src/targets/target.ts'
import { type Tensor, tensor, toFloat64 } from '../../src/tensor/tensor.ts'
import { buildModel, floats, op } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'
import { type ContractModel, contractModels } from './contract-models.ts'

export interface ContractOptions {
  readonly chip?: Chip
  /** Largest error, as a share of the largest number of the output. */
  readonly tolerance: number
  /** Models that the target refuses, and what the message says. */
  readonly refuses?: Readonly<Record<string, RegExp>>
  /** Models that some of its devices lack the means for, and what the message then says. */
  readonly mayRefuse?: Readonly<Record<string, RegExp>>
  /** Fields of a chip that the target does not take are an error. @default true */
  readonly checksChips?: boolean
}

const CONTEXT: TargetContext = { timeoutMs: 20_000, signal: new AbortController().signal }
const MODELS = contractModels()

export function targetContract(target: Target, options: ContractOptions): void {
  const { chip = { name: 'default' }, tolerance, refuses = {}, mayRefuse = {}, checksChips = true } = options

  describe(`${target.name} ${chip.name}`, () => {
    test('has a name that fits into test names, and a version that stays', async () => {
      expect(target.name).toMatch(/^[\w.-]+$/)
      const version = await target.version()
      expect(version).toMatch(/\S/)
      expect(await target.version()).toBe(version)
      expect(await target.unavailable?.()).toBeUndefined()
      expect(target.chips?.[0]?.name ?? 'default').toBe('default')
    })

    for (const model of MODELS.filter(({ name }) => !(name in refuses))) {
      test(`runs ${model.name} as the reference does, twice alike`, async ({ skip }) => {
        const expected = await reference(model)
        await using loaded = await load(target, chip, model)
        const run = async (): Promise<Tensors> => loaded.runner.run(new Map(Object.entries(model.inputs)))
        const first = await run().catch((error: Error) => {
          if (mayRefuse[model.name]?.test(error.message)) skip(error.message)
          throw error
        })
        expect([...first.keys()]).toEqual(model.outputs)
        for (const [name, value] of first) expectClose(value, expected[name]!, tolerance)
        expect([...(await run())]).toEqual([...first])
      })
    }

    for (const [name, message] of Object.entries(refuses)) {
      test(`refuses ${name} with a reason`, async () => {
        const model = MODELS.find((one) => one.name === name)!
        await expect(runOnce(target, chip, model, model.inputs)).rejects.toThrow(message)
      })
    }

    const [matMul] = MODELS as [ContractModel]
    test.for([
      ['a missing input', {}],
      ['another shape', { x: floats([2, 2], [1, 2, 3, 4]) }],
      ['another dtype', { x: tensor('int64', [3, 4], new BigInt64Array(12)) }],
    ] as [string, ContractModel['inputs']][])('takes %s for an error and runs on', async ([, inputs]) => {
      await expect(runOnce(target, chip, matMul, inputs)).rejects.toThrow(/\w{3}/)
      const results = await runOnce(target, chip, matMul, matMul.inputs)
      expect(results.get('y')?.shape).toEqual([3, 5])
    })

    test('names an operator that it does not know', async () => {
      const spec = { nodes: [op('NoSuchOp', ['x'], ['y'])], inputs: { x: ['float32', [1]] } } as const
      const bytes = buildModel({ ...spec, outputs: { y: ['float32', [1]] } })
      const unknown = { ...matMul, bytes, inputs: { x: floats([1], [1]) } }
      await expect(runOnce(target, chip, unknown, unknown.inputs)).rejects.toThrow('NoSuchOp')
    })

    test('takes half a model for an error', async () => {
      const bytes = matMul.bytes.subarray(0, matMul.bytes.length >> 1)
      await expect(runOnce(target, chip, { ...matMul, bytes }, matMul.inputs)).rejects.toThrow(/\w{3}/)
    })

    test('takes lost external data for an error', async () => {
      const model = MODELS.find(({ name }) => name === 'external weights')!
      const moved = { ...model, folder: tempFolder() }
      await expect(runOnce(target, chip, moved, model.inputs)).rejects.toThrow(/weights-\d\.bin/)
    })

    test.runIf(checksChips)('names a field that its chips do not have', async () => {
      const misspelt = { ...chip, thredas: 2 }
      await expect(runOnce(target, misspelt, matMul, matMul.inputs)).rejects.toThrow('thredas')
    })
  })
}

async function runOnce(
  target: Target,
  chip: Chip,
  model: ContractModel,
  inputs: ContractModel['inputs'],
): Promise<Tensors> {
  await using loaded = await load(target, chip, model)
  return await loaded.runner.run(new Map(Object.entries(inputs)))
}

async function load(
  target: Target,
  chip: Chip,
  model: ContractModel,
): Promise<AsyncDisposable & { runner: Runner }> {
  const artefact = await target.compile(targetModel(model), chip, CONTEXT)
  const runner = await target.load(artefact, CONTEXT)
  return { runner, [Symbol.asyncDispose]: async () => runner.dispose?.() }
}

function targetModel(model: ContractModel): TargetModel {
  const { bytes, folder, outputs, name, inputs } = model
  const ranges: TargetModel['ranges'] = async () =>
    rangesOf(new Map(Object.entries({ ...inputs, ...(await reference(model)) })))
  return { bytes, folder, outputs, name, ranges }
}

async function reference({ bytes, folder, inputs, outputs }: ContractModel): Promise<Record<string, Tensor>> {
  const model = { bytes, folder }
  const answer = await sharedOrtPool().ask({ kind: 'run', model, feeds: inputs, fetches: outputs })
  return answer.kind === 'ran' ? answer.outputs : {}
}

function expectClose(actual: Tensor, expected: Tensor, tolerance: number): void {
  expect([actual.dtype, actual.shape]).toEqual([expected.dtype, expected.shape])
  if (!expected.dtype.startsWith('float')) return expect(actual.data).toEqual(expected.data)
  const [got, wanted] = [toFloat64(actual), toFloat64(expected)]
  const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  for (const [at, value] of wanted.entries()) {
    expect(Math.abs(got[at]! - value)).toBeLessThanOrEqual(tolerance * largest)
  }
}
