/**
 * Expectations: the signature of a full model's outputs, beside the model in `__snapshots__`.
 *
 * Vitest writes what is missing, updates with `--update`, fails in CI where one is missing, and
 * leaves alone what is within tolerance.
 */
import { expect, Snapshots, type TestContext } from 'vitest'
import {
  captureSignature,
  parseSignature,
  renderSignature,
  type SignatureDigest,
  signatureDifferences,
} from '../compare/signature.ts'
import type { ModelSource } from '../fixtures/model-source.ts'
import type { Case } from '../suite/cases.ts'
import type { Tensor } from '../tensor/tensor.ts'

export function expectSignature(
  context: TestContext,
  _source: ModelSource,
  _one: Case,
  outputs: ReadonlyMap<string, Tensor>,
): void {
  install()
  const numeric = [...outputs].filter(([, value]) => value.dtype !== 'string')
  ;(context.expect(new Map(numeric)) as unknown as { toMatchSignature(): void }).toMatchSignature()
}

type Digests = ReadonlyMap<string, SignatureDigest>

const adapter = {
  name: 'signature',
  capture: (received: unknown): Digests =>
    new Map(
      [...(received as ReadonlyMap<string, Tensor>)].map(([name, value]) => [name, captureSignature(value)]),
    ),
  render: (digests: Digests): string =>
    [...digests].map(([name, digest]) => `${JSON.stringify(name)} ${renderSignature(digest)}`).join('\n'),
  parseExpected: (text: string): Digests =>
    new Map(
      text
        .trim()
        .split('\n')
        .filter((line) => line.trim() !== '')
        .map(parseLine),
    ),
  match(
    captured: Digests,
    expected: Digests,
  ): { pass: boolean; message: string; resolved?: string; expected?: string } {
    const lines = differences(captured, expected)
    return { pass: lines.length === 0, message: lines.join('\n') }
  },
}

function parseLine(line: string): [string, SignatureDigest] {
  const [, name, rest] = /^\s*("(?:[^"\\]|\\.)*") (.*)$/.exec(line) ?? []
  if (name === undefined || rest === undefined) throw new Error(`not a signature: ${line}`)
  return [JSON.parse(name) as string, parseSignature(rest)]
}

function differences(captured: Digests, expected: Digests): string[] {
  const names = new Set([...captured.keys(), ...expected.keys()])
  return [...names].flatMap((name) => {
    const [actual, wanted] = [captured.get(name), expected.get(name)]
    if (actual === undefined) return [`${name}: expected, but the model does not give it`]
    if (wanted === undefined) return [`${name}: not in the expectation`]
    return signatureDifferences(actual, wanted).map((line) => `${name}: ${line}`)
  })
}

let isInstalled = false

function install(): void {
  if (isInstalled) return
  isInstalled = true
  expect.extend({
    toMatchSignature(received: unknown) {
      const result = Snapshots.toMatchDomainSnapshot.call(this as never, adapter as never, received)
      return result as never
    },
  })
}
