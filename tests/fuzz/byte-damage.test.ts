import { readFileSync, statSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hasShared, sharedModels } from '../support/shared.ts'
import { builtModels } from '../onnx/built-models.ts'
import { bytesInUse, FUZZ_TIMEOUT, fuzzBudget } from './budget.ts'
import { damage, edits, placesOf } from './damage.ts'
import { outcomeOf } from './pipeline.ts'

/** Small files first of all: a thousand damaged ones a second find more than one large one. */
const SMALL_BYTES = 20_000
const LARGE_BYTES = 300_000
const MAX_KEPT_BYTES = 64 * 1024 * 1024

interface Victim {
  readonly name: string
  readonly bytes: Uint8Array
  readonly places: readonly number[]
}

const built: Victim[] = Object.entries(builtModels).map(([name, bytes]) => victim(name, bytes))

describe('damaged bytes are read or refused, never a crash, a hang or a leak', () => {
  test('models built in code', { timeout: FUZZ_TIMEOUT }, () => fuzz(built, 0.3))

  test.skipIf(!hasShared)('small real models', { timeout: FUZZ_TIMEOUT }, () =>
    fuzz(realModels(0, SMALL_BYTES), 0.35),
  )

  test.skipIf(!hasShared)('real models of some size', { timeout: FUZZ_TIMEOUT }, () =>
    fuzz(realModels(SMALL_BYTES, LARGE_BYTES), 0.1),
  )
})

function fuzz(victims: readonly Victim[], share: number): void {
  for (const { name, bytes } of victims) expect(outcomeOf(bytes), `${name} as it is`).toBe('read')
  const before = bytesInUse()
  const seen = { read: 0, refused: 0 }
  fc.assert(
    fc.property(fc.constantFrom(...victims.map(({ name }) => name)), edits, (name, list) => {
      const { bytes, places } = victims.find((candidate) => candidate.name === name)!
      seen[outcomeOf(damage(bytes, places, list))]++
    }),
    fuzzBudget(share),
  )
  expect(bytesInUse() - before).toBeLessThan(MAX_KEPT_BYTES)
  // Both must happen: damage that never matters tests nothing, and neither does a pipeline never entered.
  expect(seen.read).toBeGreaterThan(0)
  expect(seen.refused).toBeGreaterThan(0)
}

/** Those that can be read at all; a pointer of Git LFS is damaged enough. */
function realModels(from: number, to: number): Victim[] {
  return sharedModels()
    .filter(({ path }) => statSync(path).size > from && statSync(path).size <= to)
    .filter(({ file }) => !UNREADABLE.has(file))
    .map(({ file, path }) => victim(file, readFileSync(path)))
}

const UNREADABLE = new Set(['odd-misc/symlink-stub.onnx', 'odd-misc/lfs-pointer.onnx'])

function victim(name: string, bytes: Uint8Array): Victim {
  return { name, bytes, places: placesOf(bytes) }
}
