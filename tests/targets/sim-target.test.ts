import { expect, test } from 'vitest'
import { simTarget } from '../../src/targets/sim-target.ts'
import type { Chip } from '../../src/targets/target.ts'
import { contractModels } from '../contracts/contract-models.ts'

const [matMul] = contractModels()
const CONTEXT = { timeoutMs: 20_000, signal: new AbortController().signal }

async function compile(chip: Chip): Promise<unknown> {
  return simTarget.compile({ ...matMul!, ranges: async () => ({}) }, chip, CONTEXT)
}

test.for([
  [{}, 'storage must be one of float32, float16, bfloat16, int8'],
  [{ storage: 'float8' }, 'storage must be one of float32, float16, bfloat16, int8'],
  [{ storage: 'float16', memoryBytes: 0 }, 'memoryBytes must be more than 0'],
  [{ storage: 'float16', memory: 5 }, 'memory'],
] as [object, string][])('the chip %j is refused by its field and file', async ([settings, message]) => {
  await expect(compile({ name: 'odd', ...settings })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    file: 'odd.json',
    message: expect.stringContaining(message),
  })
})

test.for([
  [{ unsupportedOps: ['MatMul'] }, 'chip "small" has no MatMul, which the node that gives "xw" needs'],
  [{ memoryBytes: 10 }, 'chip "small" has 10'],
] as [object, string][])(
  'a chip with %j does not compile the model and says why',
  async ([limits, message]) => {
    await expect(compile({ name: 'small', storage: 'float32', ...limits })).rejects.toMatchObject({
      code: 'COMPILE_FAILED',
      message: expect.stringContaining(message),
    })
  },
)
