/** Where the two results of a failed test are kept, and what is kept with them. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { ResolvedThreshold } from '../compare/thresholds.ts'

export interface KeptFailure {
  readonly test: string
  /** The model, relative to the testdata folder. */
  readonly model: string
  /** By output. */
  readonly thresholds: Readonly<Record<string, ResolvedThreshold>>
}

/** Of a test of a model, which goes by its path relative to testdata. */
export function failureFolder(root: string, model: string, test: string): string {
  return join(failuresOf(root, model), folderName(test))
}

/** All failures of a model. */
export function failuresOf(root: string, model: string): string {
  return join(failuresFolder(root), ...model.split('/').map(folderName))
}

export interface FoundFailure {
  readonly folder: string
  readonly kept: KeptFailure
}

/** All that are kept, in the order of their folders. */
export function keptFailures(root: string): FoundFailure[] {
  const top = failuresFolder(root)
  if (!existsSync(top)) return []
  const files = readdirSync(top, { recursive: true, encoding: 'utf8' }).filter(
    (file) => basename(file) === CASE_FILE,
  )
  return files.toSorted().map((file) => ({
    folder: join(top, dirname(file)),
    kept: JSON.parse(readFileSync(join(top, file), 'utf8')) as KeptFailure,
  }))
}

export const CASE_FILE = 'case.json'

function failuresFolder(root: string): string {
  return join(root, '.vitest-onnx', 'failures')
}

/** Names may hold characters, or be longer, than file systems take. */
function folderName(name: string): string {
  const plain = name.replaceAll(/[^\w.@=,-]/g, '_')
  if (plain === name && plain.length <= 150) return plain
  return `${plain.slice(0, 130)}~${createHash('sha256').update(name).digest('hex').slice(0, 12)}`
}
