/**
 * What generated test files import: the suite of a model, and how one of its tests runs.
 *
 * Fixtures resolve lazily; a verdict that fails is a FAIL, whatever stands in the way of a
 * verdict an ERROR. What a test did and how long it took goes into its meta, for reporters.
 */
import { afterAll, type TestContext } from 'vitest'
import { flushNotes } from '../cache/notes.ts'
import { compareOutputs, type OutputsVerdict } from '../compare/compare-outputs.ts'
import { loadTensors } from '../files/tensor-file.ts'
import { outputsLeftOut } from '../fixtures/case-fixtures.ts'
import type { ModelSource } from '../fixtures/model-source.ts'
import { firstValueOff, type TestedCase } from '../fixtures/first-value-off.ts'
import type { Subject } from '../fixtures/subject.ts'
import { unseededOp } from '../fixtures/unseeded-op.ts'
import type { GraphNode } from '../graph/resolve.ts'
import type { Case } from '../suite/cases.ts'
import type { ResolvedConfig } from '../suite/options.ts'
import { dynamicDims } from '../suite/shape-cases.ts'
import { equalTensors, type Tensor } from '../tensor/tensor.ts'
import { targetOf } from './case-target.ts'
import { expectSignature, keepAllExpectations, keepExpectations } from './expectation.ts'
import { explainMismatch, keepMismatch } from './mismatch.ts'
import { caseOf, cacheOf, modelOf, type OpenModel } from './open-model.ts'
import { cannotTell, mismatch, OutputMismatch } from './outcome.ts'
import { isOfOtherRun, type TestedModel } from './other-run.ts'
import { type CaseTolerances, thresholdsOf } from './thresholds.ts'
import { Timings } from './timings.ts'
import { skipAsReported, skipWithoutReference } from './told-elsewhere.ts'
import { workAhead, workOn } from './work-ahead.ts'

// Targets of the user may load onnxruntime in this very process.
process.env['ORT_DISABLE_TELEMETRY'] ??= '1'

export interface ModelSuite {
  /** Runs the test that the context is of, by its name. */
  readonly run: (context: TestContext) => Promise<void>
}

export function openSuite(id: string): ModelSuite {
  afterAll(flushNotes)
  return { run: (context) => runTest(id, context) }
}

async function runTest(id: string, context: TestContext): Promise<void> {
  const timings = new Timings()
  try {
    const model = modelOf(id)
    const one = caseOf(model, context.task.name)
    if (model.found.problem !== undefined) {
      skipIfTold(one, model.config, context)
      throw model.found.problem
    }
    await keepExpectations((test) => isOfOtherRun(test, testedModel(model)))
    skipIfTold(one, model.config, context)
    await judge(model, one, context, timings)
  } catch (error) {
    keepAllExpectations()
    timings.skipped = skipReason(error)
    throw isForVitest(error) ? error : cannotTell(error)
  } finally {
    Object.assign(context.task.meta, { onnx: timings.meta() })
  }
}

function testedModel({ config, discovered: model, found: { cases }, source }: OpenModel): TestedModel {
  return {
    config,
    discovered: model,
    cases,
    symbols: () => dynamicDims(source().graph, source().types),
  }
}

/** What `context.skip` throws carries the reason, which reports would lose. */
function skipReason(error: unknown): string | undefined {
  const { code, note } = (error ?? {}) as { code?: unknown; note?: unknown }
  return code === 'VITEST_PENDING' && typeof note === 'string' ? note : undefined
}

/** Skips and failed expectations are Vitest's own business. */
function isForVitest(error: unknown): boolean {
  if (error instanceof OutputMismatch) return true
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return code === 'VITEST_PENDING' || name === 'AssertionError' || name === 'FAIL'
}

async function judge(model: OpenModel, one: Case, context: TestContext, timings: Timings): Promise<void> {
  const problem = model.problemOfSettings()
  if (problem !== undefined) {
    skipAsReported(model, one, 'the settings of the model have an error', context)
    throw problem
  }
  const source = model.source()
  const unseeded = unseededOp(source, nodesOf(source, one))
  if (unseeded !== undefined && one.kind === 'layer')
    context.skip(`${unseeded} has no seed: its results differ from run to run`)
  const { target, chip } = await targetOf(model, one, context)
  const cache = cacheOf(source.config)
  const { subject: preparing, results } = workOn(model, one, { target, chip })
  workAhead(model, one, { target, chip }, context)
  const subject = await timings
    .time('reference', () => preparing)
    .catch((error: unknown) => {
      skipWithoutReference(model, one, error, context)
      throw error
    })
  const stored = await timings.time('results', () => results)
  // Only a full model's signature needs the values of what is the reference itself.
  const [actual, expected] = await timings.time('load', () =>
    one.kind !== 'full' && isReference(stored, subject)
      ? [NONE, NONE]
      : [loadTensors(stored), loadTensors(subject.reference)],
  )
  const verdict = await timings.time('compare', () =>
    compareUnlessEqual(actual, expected, () => thresholdsOf(source, one)),
  )
  if (
    verdict !== undefined &&
    (unseeded === undefined ? verdict.kind !== 'match' : verdict.kind === 'incomparable')
  )
    await fail({ source, one, subject, target, chip, cache, verdict, actual, expected, context, timings })
  model.forgetFailure(one)
  await remark(source, one, subject, context)
  if (one.xfail !== undefined) {
    timings.isUnexpectedPass = true
    await context.annotate(`unexpected pass: remove it from ${one.xfail.from}`, 'xpass')
  }
  if (unseeded !== undefined)
    await context.annotate(`only dtypes and shapes are compared: ${unseeded} has no seed`, 'unseeded')
  else if (one.kind === 'full') expectSignature(context, actual)
}

/** A pass says nothing of what was not compared. */
async function remark(
  source: ModelSource,
  { kind }: Case,
  { reference }: Subject,
  context: TestContext,
): Promise<void> {
  const left = kind === 'layer' ? [] : outputsLeftOut(source, reference)
  if (left.length > 0) await context.annotate(`not compared: ${left.join(', ')}`, 'not-compared')
}

function nodesOf({ parts, graph }: ModelSource, { part }: Case): readonly GraphNode[] {
  return part === undefined ? graph.nodes : (parts.get(part)?.nodes ?? [])
}

const NONE: ReadonlyMap<string, Tensor> = new Map()

/** Results that equal the reference bit for bit are not stored a second time. */
function isReference(stored: Subject['reference'], { reference }: Subject): boolean {
  return stored.size === reference.size && [...stored].every(([name, value]) => reference.get(name) === value)
}

/** Most layers of a healthy target are equal bit for bit, which is seen at a glance. */
function compareUnlessEqual(
  actual: ReadonlyMap<string, Tensor>,
  expected: ReadonlyMap<string, Tensor>,
  tolerances: () => CaseTolerances,
): OutputsVerdict | undefined {
  const isEqual =
    actual.size === expected.size &&
    [...expected].every(([name, value]) => {
      const other = actual.get(name)
      return other !== undefined && equalTensors(other, value)
    })
  return isEqual ? undefined : compareOutputs(actual, expected, tolerances().of)
}

interface Failing extends TestedCase {
  readonly verdict: OutputsVerdict
  readonly actual: ReadonlyMap<string, Tensor>
  readonly expected: ReadonlyMap<string, Tensor>
  readonly context: TestContext
  readonly timings: Timings
}

async function fail(failing: Failing): Promise<never> {
  const { one, context, source, timings } = failing
  if (one.xfail !== undefined) {
    timings.isXfail = true
    context.skip(xfailReason(one))
  }
  const kept = keepMismatch(failing)
  const culprit =
    one.kind === 'full'
      ? await firstValueOff({ ...failing, tolerancesOf: (other) => thresholdsOf(source, other) })
      : undefined
  throw mismatch(explainMismatch({ ...failing, kept, culprit }))
}

function skipIfTold(one: Case, { tryXfails }: ResolvedConfig, context: TestContext): void {
  if (one.skip !== undefined) context.skip(one.skip)
  if (one.xfail !== undefined && !tryXfails) context.skip(xfailReason(one))
}

function xfailReason({ xfail }: Case): string {
  return `xfail: ${xfail?.issue ?? `listed in ${xfail?.from}`}`
}
