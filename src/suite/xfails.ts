/**
 * Known failures: `xfails.txt`, a test a line, with the issue it is known by.
 *
 *   # Softmax over the second axis
 *   resnet_layer_Softmax_12-webgpu-default  owner/repo#17
 *
 * A `*` in a name stands for any characters. The files of all folders from the model's up to
 * testdata count, and so do the `xfails` of its sidecar.
 */
import { dirname, relative } from 'node:path'
import { matchesPattern } from '../compare/name-pattern.ts'
import { ModelTestError } from '../errors.ts'
import type { DiscoveredModel } from './discover.ts'
import { findUpwards } from './look-upwards.ts'
import type { ResolvedConfig } from './options.ts'
import { readText } from './read-text.ts'

export interface Xfail {
  /** A name, or a pattern with `*`. */
  readonly test: string
  readonly issue?: string
  /** File and line, for messages. */
  readonly from: string
}

export const XFAILS = 'xfails.txt'

export function parseXfails(text: string, file: string = XFAILS): Xfail[] {
  return text.split('\n').flatMap((line, at) => {
    const fields = fieldsOf(line)
    return fields.length === 0 ? [] : [xfailOf(fields, file, `${file}:${at + 1}`)]
  })
}

export function xfailFiles(model: DiscoveredModel, config: ResolvedConfig): string[] {
  return findUpwards(XFAILS, dirname(model.path), config.testdata)
}

export function readXfails(model: DiscoveredModel, config: ResolvedConfig): Xfail[] {
  return xfailFiles(model, config).flatMap((file) => readList(file, relative(config.root, file)))
}

/** One list holds for many models: it is parsed again only if its text has changed. */
const lists = new Map<string, { readonly text: string; readonly xfails: readonly Xfail[] }>()

function readList(file: string, name: string): readonly Xfail[] {
  const text = readText(file)
  const known = lists.get(`${name}\n${file}`)
  if (known?.text === text) return known.xfails
  const xfails = parseXfails(text, name)
  lists.set(`${name}\n${file}`, { text, xfails })
  return xfails
}

/** Makes (name -> its known failure): names are looked up, only patterns are gone through. */
export function xfailFinder(xfails: readonly Xfail[]): (test: string) => Xfail | undefined {
  const named = new Map<string, Xfail>()
  for (const xfail of xfails) if (!named.has(xfail.test)) named.set(xfail.test, xfail)
  const patterns = xfails.filter(({ test }) => test.includes('*'))
  return (test) => named.get(test) ?? patterns.find((xfail) => matchesPattern(xfail.test, test))
}

export interface TestResult {
  readonly test: string
  readonly passed: boolean
}

/**
 * The list after a run: what passed goes, what failed and is not listed comes last, and everything
 * else stays as it is, comments too. A pattern goes once all that it matched passed.
 */
export function updateXfails(text: string, results: readonly TestResult[]): string {
  const failed = new Set(results.filter(({ passed }) => !passed).map(({ test }) => test))
  const passed = new Set(results.map(({ test }) => test).filter((test) => !failed.has(test)))
  const kept = text.split('\n').filter((line) => {
    const [test] = fieldsOf(line)
    return test === undefined || !matchesAny(test, passed) || matchesAny(test, failed)
  })
  const isKnown = xfailFinder(parseXfails(kept.join('\n')))
  const added = [...failed].filter((test) => isKnown(test) === undefined)
  const lines = [...kept.join('\n').replace(/\n+$/, '').split('\n'), ...added]
  const body = lines.join('\n').replace(/^\n+/, '')
  return body === '' ? '' : `${body}\n`
}

function matchesAny(test: string, names: ReadonlySet<string>): boolean {
  return test.includes('*') ? [...names].some((name) => matchesPattern(test, name)) : names.has(test)
}

/** A `#` begins a comment at the start of a line or after a blank; within a word it is part of an issue. */
function fieldsOf(line: string): string[] {
  return line
    .replace(/(^|\s)#.*$/, '')
    .split(/\s+/)
    .filter((field) => field !== '')
}

const ISSUE = /^[\w.-]+\/[\w.-]+#\d+$/

export function xfailOf(fields: readonly string[], file: string, from: string): Xfail {
  const [test = '', issue, ...more] = fields
  const problem =
    more.length > 0
      ? `has ${fields.length} fields`
      : issue !== undefined && !ISSUE.test(issue)
        ? `has "${issue}" for an issue`
        : undefined
  if (problem === undefined) return issue === undefined ? { test, from } : { test, issue, from }
  throw new ModelTestError('INVALID_OPTION', `${from} ${problem}: ${fields.join(' ')}`, {
    hint: `A line of ${file} is: <test name> [owner/repo#N]. Comments start with #.`,
  })
}
