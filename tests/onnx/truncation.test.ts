import { readFileSync, statSync } from 'node:fs'
import * as fc from 'fast-check'
import protobuf from 'protobufjs/minimal.js'
import { describe, expect, test } from 'vitest'
import { hasShared, sharedModels } from '../support/shared.ts'
import { builtModels } from './built-models.ts'
import { refusalOf } from './refusal.ts'

const SMALL_BYTES = 3_000
const files = sharedModels().filter(({ file }) => !/symlink-stub|lfs-pointer/.test(file))
const small = files.filter(({ path }) => statSync(path).size <= SMALL_BYTES)
const large = files.filter(({ path }) => statSync(path).size > SMALL_BYTES)

/**
 * A file cut between two top-level fields is a valid file: protobuf has no end mark. It is
 * taken as long as IR version, graph and opsets are all there. Everything else is refused.
 */
describe('cut at any byte, a model is refused unless the cut is between top-level fields behind all it needs', () => {
  test.each(Object.entries(builtModels))('built model %s', (_, bytes) => expectEveryCut(bytes))

  test.skipIf(!hasShared).each(small)('$file', ({ path }) => expectEveryCut(readFileSync(path)))

  test.skipIf(!hasShared).each(large)('$file at some bytes', ({ path }) => {
    const bytes = readFileSync(path)
    const whole = legitimateCuts(bytes)
    const anywhere = fc.oneof(
      fc.nat(bytes.length - 1),
      fc.nat(400),
      fc.nat(400).map((n) => bytes.length - 1 - n),
    )
    fc.assert(
      fc.property(anywhere, (length) => expectCut(bytes, length, whole)),
      { numRuns: 60 },
    )
  })
})

test('metadata at the end of a file may be cut off, the graph may not', () => {
  const bytes = builtModels['chain']!
  const cuts = legitimateCuts(bytes)
  expect(cuts.size).toBeGreaterThan(0)
  expect(refusalOf(bytes.subarray(0, Math.min(...cuts)))).toBeUndefined()
  expect(refusalOf(bytes.subarray(0, Math.min(...cuts) - 1))?.code).toBe('MALFORMED_MODEL')
})

function expectEveryCut(bytes: Uint8Array): void {
  const whole = legitimateCuts(bytes)
  for (let length = 0; length < bytes.length; length++) expectCut(bytes, length, whole)
}

function expectCut(bytes: Uint8Array, length: number, whole: ReadonlySet<number>): void {
  const error = refusalOf(bytes.subarray(0, length))
  const code = error?.code ?? 'read'
  expect(code, `${length} of ${bytes.length} bytes`).toBe(
    whole.has(length) ? 'read' : isText(bytes.subarray(0, length)) ? 'NOT_ONNX' : 'MALFORMED_MODEL',
  )
}

/** Lengths at which all required top-level fields are there, as protobufjs steps over them. */
function legitimateCuts(bytes: Uint8Array): Set<number> {
  const reader = protobuf.Reader.create(bytes)
  const seen = new Set<number>()
  const cuts = new Set<number>()
  let ir = 0
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    const at = reader.pos
    if (tag >>> 3 === 1) ir = protobuf.Reader.create(bytes.subarray(at)).uint32()
    reader.skipType(tag & 7)
    seen.add(tag >>> 3)
    if (ir > 0 && seen.has(7) && (seen.has(8) || ir < 3)) cuts.add(reader.pos)
  }
  return cuts
}

/** An empty file, or printable bytes only, is told apart as no model at all. */
function isText(bytes: Uint8Array): boolean {
  return bytes.length <= 256 && /^[\u0020-\u007e\r\n\t]*$/.test(Buffer.from(bytes).toString('latin1'))
}
