/**
 * What generated test files import: the suite of a model, and how one of its tests runs.
 *
 * Fixtures resolve lazily; a verdict that fails is a FAIL, whatever stands in the way of a
 * verdict an ERROR. What a test did and how long it took goes into its meta, for reporters.
 */
import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, type TestContext } from 'vitest'
import { flushNotes } from '../cache/notes.ts'
import { type Cache, openCache } from '../cache/store.ts'
import { compareOutputs, type OutputsVerdict } from '../compare/compare-outputs.ts'
import { ModelTestError } from '../errors.ts'
import { loadTensors } from '../files/tensor-file.ts'
import { FixtureFailure, resultsOf, subjectOf } from '../fixtures/case-fixtures.ts'
import { checkInputNames } from '../fixtures/model-inputs.ts'
import { type ModelSource, modelSource } from '../fixtures/model-source.ts'
import { firstValueOff } from '../fixtures/first-value-off.ts'
import type { Subject } from '../fixtures/subject.ts'
import { unseededOp } from '../fixtures/unseeded-op.ts'
import type { GraphNode } from '../graph/resolve.ts'
import { type Case, type CasesOfModel, openCases } from '../suite/cases.ts'
import { readChip } from '../suite/chip-files.ts'
import { chipSettings, hasChip } from '../suite/chip-targets.ts'
import { type DiscoveredModel, discoverModels } from '../suite/discover.ts'
import type { ResolvedConfig, ResolvedTarget } from '../suite/options.ts'
import { dynamicDims } from '../suite/shape-cases.ts'
import { allowOrtProcesses, sharedOrtPool } from '../targets/ort-pool.ts'
import { findTarget } from '../targets/registry.ts'
import type { Chip, Target } from '../targets/target.ts'
import { equalTensors, type Tensor } from '../tensor/tensor.ts'
import { currentConfig, processesPerWorker } from './config-channel.ts'
import { expectSignature, keepAllExpectations, keepExpectations } from './expectation.ts'
import { explainMismatch, keepMismatch } from './mismatch.ts'
import { cannotTell, mismatch, OutputMismatch } from './outcome.ts'
import { isOfOtherRun, type TestedModel } from './other-run.ts'
import { type CaseTolerances, checkThresholds, thresholdsOf } from './thresholds.ts'
import { Timings } from './timings.ts'

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
  const { subject: preparing, results } = takeAhead(model, one) ?? beginning(model, one, { target, chip })
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
    await fail({
      model,
      source,
      one,
      subject,
      target,
      chip,
      cache,
      verdict,
      actual,
      expected,
      context,
      timings,
    })
  if (one.xfail !== undefined)
    await context.annotate(`unexpected pass: remove it from ${one.xfail.from}`, 'xpass')
  if (unseeded !== undefined)
    await context.annotate(`only dtypes and shapes are compared: ${unseeded} has no seed`, 'unseeded')
  else if (one.kind === 'full') expectSignature(context, actual)
}

function nodesOf({ parts, graph }: ModelSource, { part }: Case): readonly GraphNode[] {
  return part === undefined ? graph.nodes : (parts.get(part)?.nodes ?? [])
}

const NONE: ReadonlyMap<string, Tensor> = new Map()

/** Results that equal the reference bit for bit are not stored a second time. */
function isReference(stored: Subject['reference'], { reference }: Subject): boolean {
  return stored.size === reference.size && [...stored].every(([name, value]) => reference.get(name) === value)
}

/** What a test needs, in the making. */
interface Ahead {
  readonly subject: Promise<Subject>
  readonly results: Promise<Subject['reference']>
}

/** Tests whose work is under way: enough to keep the processes of onnxruntime busy. */
const MAX_AHEAD = 24

/**
 * While this test is judged, the processes of onnxruntime run those that follow; what goes wrong is
 * the business of the test it belongs to. A user's own target may live in this process, so its tests
 * run strictly in turn.
 */
function workAhead(
  model: OpenModel,
  { target: name, chip: chipName }: Case,
  { target, chip }: { readonly target: Target; readonly chip: Chip },
  { task }: TestContext,
): void {
  if (model.config.targets.find((entry) => entry.name === name)?.module !== undefined) return
  const { tasks } = task.file
  const at = positionIn(tasks, task)
  for (const next of tasks.slice(at + 1, at + 1 + MAX_AHEAD)) {
    const one = next.type === 'test' && next.mode === 'run' ? model.byName.get(next.name) : undefined
    if (one === undefined || one.skip !== undefined || one.xfail !== undefined) continue
    if (one.target !== name || one.chip !== chipName || model.aheads.has(one)) continue
    model.aheads.set(one, beginning(model, one, { target, chip }))
  }
}

function beginning(model: OpenModel, one: Case, on: { readonly target: Target; readonly chip: Chip }): Ahead {
  const source = model.source()
  const { timeouts } = source.config
  const cache = cacheOf(source.config)
  const subject = subjectOf(source, one, cache)
  const results = subject.then((made) => resultsOf(made, one.name, { ...on, timeouts }, cache))
  // Whoever runs the test hears of it.
  results.catch(() => {})
  return { subject, results }
}

type Tasks = TestContext['task']['file']['tasks']

const positions = new WeakMap<Tasks, ReadonlyMap<Tasks[number], number>>()

function positionIn(tasks: Tasks, task: Tasks[number]): number {
  const known = positions.get(tasks) ?? new Map(tasks.map((one, at) => [one, at]))
  positions.set(tasks, known)
  return known.get(task) ?? tasks.length
}

function takeAhead({ aheads }: OpenModel, one: Case): Ahead | undefined {
  const ahead = aheads.get(one)
  aheads.delete(one)
  return ahead
}

/**
 * A model that the reference cannot run is one ERROR, that of its full model, not one per layer. A
 * body that cannot run may be a branch that is not taken with these inputs.
 */
function skipWithoutReference(model: OpenModel, one: Case, error: unknown, context: TestContext): void {
  if (one.kind !== 'layer' || !(error instanceof FixtureFailure) || error.fixture !== 'reference') return
  const cause = error.cause as Error
  if (cause instanceof ModelTestError && cause.code === 'FILE_UNWRITABLE')
    return skipAsReported(model, one, 'the cache cannot be written', context)
  if (model.source().parts.get(one.part ?? '')?.scope !== '') {
    const [reason] = String(cause.message).split('\n')
    context.skip(`the body cannot run on these inputs: ${reason}`)
  }
  skipAsReported(model, one, WHY_NO_REFERENCE[codeOf(cause)] ?? 'the reference cannot run the model', context)
}

const WHY_NO_REFERENCE: Readonly<Record<string, string>> = {
  EXTERNAL_DATA_UNREADABLE: 'the external data of the model cannot be read',
  EXTERNAL_DATA_OUTSIDE: 'the external data of the model cannot be read',
  INVALID_OPTION: 'the inputs of the model cannot be made',
  FILE_UNREADABLE: 'the inputs of the model cannot be made',
}

function codeOf(error: unknown): string {
  return error instanceof ModelTestError ? error.code : ''
}

/**
 * What goes wrong for all layers of a model is told by one test: its full model, else its first
 * layer. One that this run leaves out tells nothing.
 */
function skipAsReported(
  { found, source }: OpenModel,
  one: Case,
  why: string,
  { skip, task }: TestContext,
): void {
  if (one.kind !== 'layer') return
  const left = new Set(task.file.tasks.filter(({ mode }) => mode !== 'run').map(({ name }) => name))
  const tells = (other: Case): boolean =>
    other.target === one.target &&
    other.chip === one.chip &&
    isDeepStrictEqual(other.sizes, one.sizes) &&
    other.skip === undefined &&
    other.xfail === undefined &&
    !left.has(other.name)
  const teller =
    found.cases.find((other) => other.kind === 'full' && tells(other)) ??
    found.cases.find(
      (other) => other.kind === 'layer' && source().parts.get(other.part!)?.scope === '' && tells(other),
    )
  if (teller !== undefined && teller !== one) skip(`${why}: see ${teller.name}`)
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

interface Failing {
  readonly model: OpenModel
  readonly source: ModelSource
  readonly one: Case
  readonly subject: Subject
  readonly target: Target
  readonly chip: Chip
  readonly cache: Cache
  readonly verdict: OutputsVerdict
  readonly actual: ReadonlyMap<string, Tensor>
  readonly expected: ReadonlyMap<string, Tensor>
  readonly context: TestContext
  readonly timings: Timings
}

async function fail(failing: Failing): Promise<never> {
  const { one, context, source, subject, target, chip, cache, timings } = failing
  if (one.xfail !== undefined) {
    timings.isXfail = true
    context.skip(xfailReason(one))
  }
  const kept = keepMismatch(failing)
  const culprit =
    one.kind === 'full'
      ? await firstValueOff({
          source,
          one,
          subject,
          target,
          chip,
          cache,
          tolerancesOf: (other) => thresholdsOf(source, other),
        })
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

async function targetOf(
  { config, discovered }: OpenModel,
  one: Case,
  context: TestContext,
): Promise<{ target: Target; chip: Chip }> {
  const entry = config.targets.find(({ name }) => name === one.target)
  const target = await findTarget(one.target, entry?.module)
  if (await isForOthers(one, discovered, config))
    context.skip(`the target ${one.target} has no chip "${one.chip}"; other targets of the run have it`)
  const why = await target.unavailable?.()
  if (why !== undefined && entry?.isNamed !== true) context.skip(why)
  if (why !== undefined) {
    throw new ModelTestError('RUNTIME_MISSING', `the target ${one.target} is not available: ${why}`, {
      hint: 'Leave it out of ONNX_TEST_TARGETS, or install what it needs.',
    })
  }
  return { target, chip: chipOf(target, one, discovered, config) }
}

/** A chip that only some targets have is tested there; one that none has is an error. */
async function isForOthers(
  { target, chip }: Case,
  discovered: DiscoveredModel,
  config: ResolvedConfig,
): Promise<boolean> {
  const { targets } = config
  if (targets.length === 1) return false
  const settings = chipSettings(chip, discovered, config)
  const has = async ({ name, module }: ResolvedTarget): Promise<boolean> =>
    hasChip(await findTarget(name, module), chip, settings, { isOwn: module !== undefined })
  const takers = await Promise.all(targets.map((entry) => has(entry).catch(() => false)))
  return takers.includes(true) && !takers[targets.findIndex(({ name }) => name === target)]
}

/** A file of that name goes before a chip that the target brings. */
function chipOf(
  target: Target,
  { chip: name }: Case,
  discovered: DiscoveredModel,
  config: ResolvedConfig,
): Chip {
  const file = readChip(name, discovered, config)
  if (typeof file === 'object' && file !== null) return { ...file, name }
  const known = target.chips?.find((chip) => chip.name === name)
  if (known !== undefined) return known
  if (name === 'default') return { name }
  const names = target.chips?.map((chip) => chip.name) ?? []
  throw new ModelTestError('INVALID_OPTION', `the target ${target.name} has no chip "${name}"`, {
    hint: `It has ${names.join(', ') || 'none'}; a file chips/${name}.json in the testdata folder adds one.`,
  })
}

interface OpenModel {
  /** With what its sidecar sets. */
  readonly config: ResolvedConfig
  readonly discovered: DiscoveredModel
  readonly found: CasesOfModel
  readonly byName: ReadonlyMap<string, Case>
  readonly source: () => ModelSource
  /** What none of its tests would come upon while all results are equal. */
  readonly problemOfSettings: () => ModelTestError | undefined
  readonly aheads: Map<Case, Ahead>
  close(): void
}

/** In the order of use, the latest last. */
const models = new Map<string, OpenModel>()

/** Of a thousand models in one worker, few need to be open: files follow one another. */
const MAX_OPEN = 4

/** Opened once per worker; a change of the model starts new workers or gives a new stamp. */
function modelOf(id: string): OpenModel {
  const model = models.get(id) ?? openModel(id)
  models.delete(id)
  models.set(id, model)
  const [oldest] = models.keys()
  if (models.size > MAX_OPEN && oldest !== undefined) {
    models.get(oldest)?.close()
    models.delete(oldest)
  }
  return model
}

function openModel(id: string): OpenModel {
  const config = currentConfig()
  allowOrtProcesses(processesPerWorker())
  const discovered = discoverAll(config.testdata).get(id)
  if (discovered === undefined) {
    throw new ModelTestError('FILE_UNREADABLE', `${id} is no longer in ${config.testdata}`, {
      hint: 'Start Vitest again, or run `vitest-onnx generate`.',
    })
  }
  // With nothing in the cache there is work for sure, and the process can start meanwhile.
  if (!existsSync(config.cacheDir)) sharedOrtPool().start()
  const { open, ...found } = openCases(discovered, config)
  let source: ModelSource | undefined
  const sourceOf = (): ModelSource => {
    if (open === undefined) throw found.problem
    return (source ??= modelSource(discovered, open))
  }
  let settings: { readonly problem: ModelTestError | undefined } | undefined
  return {
    config: open?.config ?? config,
    discovered,
    found,
    byName: new Map(found.cases.map((one) => [one.name, one])),
    source: sourceOf,
    problemOfSettings: () => (settings ??= { problem: problemOfSettings(sourceOf()) }).problem,
    aheads: new Map<Case, Ahead>(),
    close: () => open?.file.close(),
  }
}

function problemOfSettings(source: ModelSource): ModelTestError | undefined {
  try {
    checkInputNames(source)
    checkThresholds(source)
    return undefined
  } catch (error) {
    if (error instanceof ModelTestError) return error
    throw error
  }
}

const discovered = new Map<string, ReadonlyMap<string, DiscoveredModel>>()

function discoverAll(testdata: string): ReadonlyMap<string, DiscoveredModel> {
  const known = discovered.get(testdata)
  if (known !== undefined) return known
  const all = new Map(discoverModels(testdata).map((model) => [model.id, model]))
  discovered.set(testdata, all)
  return all
}

function caseOf({ byName, found: { problem }, discovered: { id } }: OpenModel, name: string): Case {
  const one = byName.get(name)
  if (one !== undefined) return one
  if (problem !== undefined) throw problem
  throw new ModelTestError('INVALID_OPTION', `${id} has no test "${name}" any more`, {
    hint: 'The test file is older than the model or the settings: run `vitest-onnx generate`.',
  })
}

const caches = new Map<string, Cache>()

function cacheOf({ cacheDir, recompute }: ResolvedConfig): Cache {
  const known = caches.get(cacheDir)
  if (known !== undefined) return known
  const cache = openCache({ folder: cacheDir, recompute })
  caches.set(cacheDir, cache)
  return cache
}
