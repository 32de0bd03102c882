/**
 * A config file and a storage folder -> a report: the two verbs of convergence testing.
 *
 * Edge. A regression is a value in the report, and so is an application that failed; what is thrown
 * means that config, manifest or storage cannot be used.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ModelTestError } from '../errors.ts'
import type { OnEvent } from './events.ts'
import { gatherTest, type GatherResult } from './gather-test.ts'
import type { Manifest } from './manifest.ts'
import { parseConfig, type ConvergenceTest } from './parse-config.ts'
import { requireCheckpoint, runCheckpoint, type CheckpointResult } from './run-checkpoint.ts'
import { DEFAULT_MANIFEST_NAME, readManifest, storageOf, type TestStorage } from './storage.ts'

export interface ConvergenceOptions {
  /** The YAML config. */
  readonly config: string
  /** The folder of the manifest and the checkpoints. */
  readonly storage: string
  /** @default 'convergence_harness_manifest.json' */
  readonly manifestName?: string | undefined
  /** The name of the only test to use. @default all tests of the config */
  readonly test?: string | undefined
  /** What `directory` in the config is relative to. @default the working directory */
  readonly root?: string | undefined
  /** Seconds without a new step after which the application is stopped. @default no limit */
  readonly stepTimeout?: number | undefined
  /** Stops the application when it is aborted. */
  readonly signal?: AbortSignal | undefined
  readonly onEvent?: OnEvent | undefined
}

export interface GatherConvergenceOptions extends ConvergenceOptions {
  /** Start over where an interrupted gather would go on. @default false */
  readonly fresh?: boolean | undefined
}

export interface RunReport {
  readonly kind: 'run'
  readonly outcome: CheckpointResult['outcome']
  readonly tests: readonly TestRun[]
}

export interface TestRun {
  readonly test: string
  readonly manifest: string
  readonly outcome: CheckpointResult['outcome']
  readonly checkpoints: readonly CheckpointResult[]
  readonly warnings: readonly string[]
}

export interface GatherReport {
  readonly kind: 'gather'
  readonly outcome: GatherResult['outcome']
  readonly tests: readonly GatherResult[]
}

/** A test of the config with its place in the storage. */
export interface LocatedTest {
  readonly test: ConvergenceTest
  readonly storage: TestStorage
}

/** Runs the application from every gathered checkpoint and compares what it logs. */
export async function runConvergence(options: ConvergenceOptions): Promise<RunReport> {
  const tests: TestRun[] = []
  for (const located of locateTests(options)) {
    if (options.signal?.aborted === true) break
    tests.push(await runTest(located, options))
  }
  return { kind: 'run', outcome: worst(RUN_OUTCOMES, tests), tests }
}

/** Runs the application to its end and records the checkpoints that it saves. */
export async function gatherConvergence(options: GatherConvergenceOptions): Promise<GatherReport> {
  const { fresh = false, signal, stepTimeout, onEvent = ignore } = options
  const tests: GatherResult[] = []
  for (const { test, storage } of locateTests(options)) {
    if (signal?.aborted === true) break
    tests.push(await gatherTest(test, storage, { fresh, signal, stepTimeout, onEvent }))
  }
  return { kind: 'gather', outcome: worst(GATHER_OUTCOMES, tests), tests }
}

/** The tests that the options select, with their folders resolved. */
export function locateTests(options: ConvergenceOptions): LocatedTest[] {
  const tests = parseConfig(readConfig(options.config), options.config)
  return selectTests(tests, options).map((test) => ({
    test: { ...test, directory: resolveDirectory(test, options) },
    storage: storageOf(test.name, options.storage, options.manifestName ?? DEFAULT_MANIFEST_NAME),
  }))
}

/** The manifest of a test that can be run: only the checkpoints that have something to compare. */
export function requireManifest({ test, storage }: LocatedTest): Manifest {
  const manifest = readManifest(storage)
  if (manifest === undefined) throw manifestError(storage, `test "${test.name}" has no manifest`)

  const metrics = new Set(test.metrics.map(({ name }) => name))
  const checkpoints = manifest.checkpoints.filter(({ values }) =>
    values.some(({ metric }) => metrics.has(metric)),
  )
  if (checkpoints.length === 0)
    throw manifestError(storage, `holds no value of the metrics of test "${test.name}"`)
  return { ...manifest, checkpoints }
}

async function runTest(located: LocatedTest, options: ConvergenceOptions): Promise<TestRun> {
  const { test, storage } = located
  const { signal, stepTimeout, onEvent = ignore } = options
  const manifest = requireManifest(located)
  const warnings = manifestWarnings(test, manifest)
  for (const message of warnings) onEvent({ kind: 'warning', test: test.name, message })

  // A file that is missing is told now, not after hours of other checkpoints.
  for (const record of manifest.checkpoints) requireCheckpoint(test, storage, record)
  const checkpoints: CheckpointResult[] = []
  for (const record of manifest.checkpoints) {
    checkpoints.push(await runCheckpoint(test, storage, record, { signal, stepTimeout, onEvent }))
    if (signal?.aborted === true) break
  }
  const outcome = worst(RUN_OUTCOMES, checkpoints)
  return { test: test.name, manifest: storage.manifestFile, outcome, checkpoints, warnings }
}

function manifestWarnings(test: ConvergenceTest, manifest: Manifest): string[] {
  const recorded = new Set(manifest.checkpoints.flatMap(({ values }) => values.map(({ metric }) => metric)))
  const unrecorded = test.metrics.filter(({ name }) => !recorded.has(name)).map(({ name }) => name)
  return [
    ...(manifest.incomplete
      ? ['the gather was interrupted: only its complete checkpoints are compared']
      : []),
    ...unrecorded.map(
      (name) => `metric ${name} is not in the manifest and is not compared: gather again to record it`,
    ),
  ]
}

function readConfig(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ModelTestError('CONVERGENCE_CONFIG', 'the config cannot be read', {
      file,
      hint: 'Give the path of the YAML config.',
      cause: error,
    })
  }
}

function selectTests(
  tests: readonly ConvergenceTest[],
  { test: name, config }: ConvergenceOptions,
): ConvergenceTest[] {
  if (name === undefined) return [...tests]
  const selected = tests.filter((test) => test.name === name)
  if (selected.length > 0) return selected
  throw new ModelTestError('INVALID_OPTION', `there is no test "${name}" in ${config}`, {
    hint: `Its tests are: ${tests.map((test) => test.name).join(', ')}.`,
  })
}

/** Relative to the root, as configs that were written for a whole repository are; else to the config. */
function resolveDirectory(
  { name, directory }: ConvergenceTest,
  { root = '.', config }: ConvergenceOptions,
): string {
  const places = [path.resolve(root, directory), path.resolve(path.dirname(config), directory)]
  const found = places.find((place) => existsSync(place))
  if (found !== undefined) return found
  throw new ModelTestError(
    'CONVERGENCE_CONFIG',
    `test "${name}", directory: there is no folder ${directory}`,
    {
      file: config,
      hint: `Looked for ${[...new Set(places)].join(' and ')}.`,
    },
  )
}

function manifestError({ manifestFile }: TestStorage, message: string): ModelTestError {
  return new ModelTestError('CONVERGENCE_MANIFEST', message, {
    file: manifestFile,
    hint: 'Gather first: `vitest-onnx converge -g` with the same config, storage and manifest name, or `vitest --update`.',
  })
}

const RUN_OUTCOMES = ['interrupted', 'failed', 'regressed', 'passed'] as const
const GATHER_OUTCOMES = ['interrupted', 'failed', 'gathered'] as const

/** The first outcome of the list that any part has; nothing was done only where it was interrupted. */
function worst<T extends string>(
  outcomes: readonly [T, ...T[]],
  parts: readonly { readonly outcome: T }[],
): T {
  return outcomes.find((outcome) => parts.some((part) => part.outcome === outcome)) ?? outcomes[0]
}

function ignore(): void {}
