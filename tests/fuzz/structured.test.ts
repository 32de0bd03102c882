import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyModel } from './any-model.ts'
import { bytesInUse, FUZZ_TIMEOUT, fuzzBudget } from './budget.ts'
import { outcomeOf } from './pipeline.ts'

const MAX_KEPT_BYTES = 64 * 1024 * 1024

test('models of any content are read or refused', { timeout: FUZZ_TIMEOUT }, () => {
  const before = bytesInUse()
  const seen = { read: 0, refused: 0 }
  fc.assert(
    fc.property(anyModel, (bytes) => {
      seen[outcomeOf(bytes)]++
    }),
    fuzzBudget(0.25),
  )
  expect(bytesInUse() - before).toBeLessThan(MAX_KEPT_BYTES)
  // A generator whose models are all refused at the door would test the door.
  expect(seen.read).toBeGreaterThan(seen.refused / 10)
  expect(seen.refused).toBeGreaterThan(0)
})
