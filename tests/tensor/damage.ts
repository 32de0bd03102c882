/**
 * Damaged files: whatever is wrong with the bytes, a reader may succeed or throw ModelTestError.
 *
 * Anything else (TypeError, RangeError, a giant allocation) is a bug that a user would see raw.
 */
import * as fc from 'fast-check'
import { expect } from 'vitest'
import { ModelTestError } from '../../src/errors.ts'

type Read = (bytes: Uint8Array) => unknown

/** Every prefix of the file must be refused. */
export function expectTruncationRefused(file: Uint8Array, read: Read): void {
  for (let length = 0; length < file.length; length++) {
    expect(outcome(file.slice(0, length), read), `cut to ${length} of ${file.length} bytes`).toBe('refused')
  }
}

/** Every prefix of the file must be read or refused. */
export function expectTruncationHandled(file: Uint8Array, read: Read): void {
  for (let length = 0; length < file.length; length++) {
    expect(['read', 'refused']).toContain(outcome(file.slice(0, length), read))
  }
}

/** Files with a few bytes changed must be read or refused. */
export function expectDamageHandled(file: Uint8Array, read: Read, runs = 1500): void {
  const change = fc.tuple(fc.nat(file.length - 1), fc.nat(255))
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      const damaged = file.slice()
      for (const [at, byte] of changes) damaged[at] = byte
      expect(['read', 'refused']).toContain(outcome(damaged, read))
    }),
    { numRuns: runs },
  )
}

function outcome(bytes: Uint8Array, read: Read): 'read' | 'refused' | unknown {
  try {
    read(bytes)
    return 'read'
  } catch (error) {
    return error instanceof ModelTestError ? 'refused' : error
  }
}
