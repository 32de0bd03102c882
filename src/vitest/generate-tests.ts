/**
 * Models -> test files on disk, one per model, several for models with many tests.
 *
 * A file is written only if it would change, and whole or not at all. The files of models that are
 * gone are removed; a file without our header is never touched. A model whose files carry its stamp
 * is not even opened.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { existsSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import glob from 'fast-glob'
import { writeFileAtomic } from '../files/write-file.ts'
import { casesOf } from '../suite/cases.ts'
import { type DiscoveredModel, discoverModels } from '../suite/discover.ts'
import { stampOf } from '../suite/model-stamp.ts'
import type { ResolvedConfig } from '../suite/options.ts'
import { ModelTestError } from '../errors.ts'
import { checkTargetName } from '../targets/registry.ts'
import { portions, readHeader, renderTestFile, tagsInFile } from './test-file.ts'

export interface GeneratedModel {
  readonly model: DiscoveredModel
  /** Absolute, in order; none for a model without tests. */
  readonly files: readonly string[]
}

export interface Generated {
  readonly models: readonly GeneratedModel[]
  /** Of all tests, sorted. */
  readonly tags: readonly string[]
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  readonly unchanged: number
}

export interface GenerateOptions {
  /** Only find out what would change. @default false */
  readonly dryRun?: boolean
}

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

/** Raise the number when cases of the same model change between releases. */
const REVISION = `${version} 1`

export function generateTests(config: ResolvedConfig, { dryRun = false }: GenerateOptions = {}): Generated {
  checkApart(config)
  checkTargets(config)
  const existing = existingFiles(config.output)
  const [added, changed, tags] = [[] as string[], [] as string[], new Set<string>()]
  let unchanged = 0
  const models = discoverModels(config.testdata).map((model): GeneratedModel => {
    const wanted = filesOf(model, config, existing)
    for (const [path, text] of wanted) {
      for (const tag of tagsInFile(text)) tags.add(tag)
      const before = existing.get(path)
      existing.delete(path)
      if (before === text) unchanged++
      else {
        ;(before === undefined ? added : changed).push(path)
        if (!dryRun) writeFileAtomic(path, text)
      }
    }
    return { model, files: [...wanted.keys()] }
  })
  const removed = [...existing].filter(([, text]) => readHeader(text) !== undefined).map(([path]) => path)
  if (!dryRun) for (const path of removed) removeFile(path, config.output)
  return { models, tags: [...tags].toSorted(), added, changed, removed: removed.toSorted(), unchanged }
}

/** Whether a path in the output folder is a test file of the model. */
export function isTestFileOf(id: string, file: string): boolean {
  const start = safePath(id)
  return file.startsWith(start) && /^(\.\d+-of-\d+)?\.test\.ts$/.test(file.slice(start.length))
}

/** Whether a path in the output folder is a test file of a model whose id starts so. */
export function isTestFileBelow(idStart: string, file: string): boolean {
  return file.startsWith(safeCharacters(idStart))
}

/** Said where models have no test; undefined where all have some. */
export function untested({ models }: Generated): string | undefined {
  const ids = models.filter(({ files }) => files.length === 0).map(({ model }) => model.id)
  if (ids.length === 0) return undefined
  const named = `${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ` and ${ids.length - 5} more` : ''}`
  return (
    `${ids.length === models.length ? 'no tests are left: there are none' : 'there are no tests'} of ${named} ` +
    '(layers or whole models are left out: see ONNX_TEST_LAYERS, ONNX_TEST_FULL_MODEL and the settings layers, fullModel)'
  )
}

type Files = Map<string, string>

function existingFiles(output: string): Files {
  if (!existsSync(output)) return new Map()
  const names = glob.sync('**/*.test.ts', { cwd: output, dot: true, followSymbolicLinks: false })
  return new Map(
    names.toSorted().map((name) => [join(output, name), readFileSync(join(output, name), 'utf8')]),
  )
}

function filesOf(model: DiscoveredModel, config: ResolvedConfig, existing: Files): Files {
  const stamp = stampOf(model, config, REVISION)
  const start = join(config.output, safePath(model.id))
  const source = slashed(relative(config.root, model.path))
  return upToDate(start, stamp, existing) ?? renderFiles(model, config, { start, stamp, source })
}

function renderFiles(
  model: DiscoveredModel,
  config: ResolvedConfig,
  { start, stamp, source }: { readonly start: string; readonly stamp: string; readonly source: string },
): Files {
  const { cases, problem } = casesOf(model, config)
  // Vitest takes a file without tests for a mistake.
  if (cases.length === 0) return new Map()
  const parts = portions(cases, config.maxTestsPerFile)
  return new Map(
    parts.map((part, at) => [
      fileName(start, at, parts.length),
      renderTestFile({
        source,
        id: model.id,
        stamp: problem === undefined ? stamp : PROBLEM_STAMP,
        cases: part,
      }),
    ]),
  )
}

/** No stamp is like it: a model with a problem is looked at again until the problem is solved. */
const PROBLEM_STAMP = '0'

function fileName(start: string, at: number, count: number): string {
  return count === 1 ? `${start}.test.ts` : `${start}.${at + 1}-of-${count}.test.ts`
}

/** The files that are there, if they are all of one generation and carry the stamp. */
function upToDate(start: string, stamp: string, existing: Files): Files | undefined {
  const count = existing.has(fileName(start, 0, 1)) ? 1 : countOf(start, existing)
  const files: Files = new Map()
  for (let at = 0; at < count; at++) {
    const path = fileName(start, at, count)
    const text = existing.get(path)
    const header = text === undefined ? undefined : readHeader(text)
    if (text === undefined || header?.stamp !== stamp || !header.isIntact) return undefined
    files.set(path, text)
  }
  return count === 0 ? undefined : files
}

/** Of how many files the first is, going by the name of any. */
function countOf(start: string, existing: Files): number {
  for (let count = 2; count <= MAX_FILES; count++) if (existing.has(fileName(start, 0, count))) return count
  return 0
}

/** 64 files of 1000 tests: beyond that the model is opened on every start. */
const MAX_FILES = 64

function removeFile(path: string, output: string): void {
  rmSync(path, { force: true })
  for (let folder = dirname(path); folder !== output && folder.startsWith(output); folder = dirname(folder)) {
    try {
      rmdirSync(folder)
    } catch {
      return // not empty
    }
  }
}

/** Generated files among the models would be found by neither. */
function checkApart({ testdata, output, root }: ResolvedConfig): void {
  if (output !== testdata && output !== root && !testdata.startsWith(`${output}${sep}`)) return
  throw new ModelTestError('INVALID_OPTION', `output ${output} is the folder of the models or around it`, {
    hint: 'Give the test files a folder of their own: onnx({ output: ".vitest-onnx/tests" }).',
  })
}

/** Once, and not by every test. */
function checkTargets({ targets }: ResolvedConfig): void {
  for (const { name, module, isNamed } of targets) {
    if (module === undefined) checkTargetName(name, isNamed ? 'ONNX_TEST_TARGETS' : 'the option targets')
  }
}

/** Vite reads `?` and `#` as the end of a path; other systems refuse more. */
function safePath(id: string): string {
  const safe = safeCharacters(id)
  return safe === id ? id : `${safe}~${createHash('sha256').update(id).digest('hex').slice(0, 6)}`
}

function safeCharacters(id: string): string {
  return id.replaceAll(/[?#%*:"<>|\\\p{Cc}]/gu, '_')
}

export function slashed(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/')
}
