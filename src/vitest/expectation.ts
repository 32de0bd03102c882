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
import type { Tensor } from '../tensor/tensor.ts'
import { mismatch } from './outcome.ts'

export function expectSignature(context: TestContext, outputs: ReadonlyMap<string, Tensor>): void {
  install()
  const numeric = new Map([...outputs].filter(([, value]) => value.dtype !== 'string'))
  lastResult = undefined
  const assertion = context.expect(numeric) as unknown as { toMatchSignature(): void }
  try {
    assertion.toMatchSignature()
  } catch (error) {
    if (lastResult === undefined) throw error
    throw mismatch(explain(context.task.name, numeric, lastResult))
  }
}

/**
 * What no test of a file asks for is obsolete to Vitest: an update removes it, and CI fails for it.
 * What `isOfOtherRun` says yes to stays; for a file this is settled once.
 */
export async function keepExpectations(isOfOtherRun: (test: string) => Promise<boolean>): Promise<void> {
  const { snapshotState } = expect.getState()
  if (settled.has(snapshotState)) return
  settled.add(snapshotState)
  for (const test of uncheckedTests(snapshotState))
    if (await isOfOtherRun(test)) snapshotState.markSnapshotsAsCheckedForTest(test)
}

/** After a test that did not come to its expectation, nothing in the file is known to be obsolete. */
export function keepAllExpectations(): void {
  const { snapshotState } = expect.getState()
  for (const test of uncheckedTests(snapshotState)) snapshotState.markSnapshotsAsCheckedForTest(test)
}

type SnapshotState = ReturnType<typeof expect.getState>['snapshotState']

const settled = new WeakSet<SnapshotState>()

function uncheckedTests(state: SnapshotState): string[] {
  return state.getUncheckedKeys().map((key) => key.replace(/ \d+$/, ''))
}

interface MatchResult {
  readonly pass: boolean
  /** Undefined where there is no expectation. */
  readonly expected?: string | undefined
}

/** Vitest makes its error from a text alone; what it is about stays here. */
let lastResult: MatchResult | undefined

function explain(
  test: string,
  outputs: ReadonlyMap<string, Tensor>,
  { expected }: MatchResult,
): readonly string[] {
  if (!expected) {
    return [
      `${test}: there is no expectation, and none is written in CI`,
      'hint: Run it on your machine and commit the file in __snapshots__ beside the model.',
    ]
  }
  return [
    `${test}: the outputs match the reference, but not the expectation`,
    ...differences(adapter.capture(outputs), parseDigests(expected)).map((line) => `  - ${line}`),
    'hint: If the change is meant, run vitest with --update and commit the file in __snapshots__ beside the model.',
  ]
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
  parseExpected: (text: string): string => text,
  match(captured: Digests, expected: string): { pass: boolean; message: string } {
    const lines = differencesFrom(captured, expected)
    return { pass: lines.length === 0, message: lines.join('\n') }
  },
}

/** What cannot be read does not match, so that `--update` replaces it. */
function differencesFrom(captured: Digests, expected: string): string[] {
  try {
    return differences(captured, parseDigests(expected))
  } catch (error) {
    return [(error as Error).message]
  }
}

function parseDigests(text: string): Digests {
  return new Map(
    text
      .trim()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map(parseLine),
  )
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
      lastResult = Snapshots.toMatchDomainSnapshot.call(this as never, adapter as never, received) as never
      return lastResult as never
    },
  })
}
