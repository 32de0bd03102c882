/** Where the two results of a failed test are kept, and what is kept with them. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { ResolvedThreshold } from '../compare/thresholds.ts'

export interface KeptFailure {
  readonly test: string
  /** The model, relative to the testdata folder. */
  readonly model: string
  /** By output. */
  readonly thresholds: Readonly<Record<string, ResolvedThreshold>>
}

export function failureFolder(root: string, test: string): string {
  return join(root, '.vitest-onnx', 'failures', folderName(test))
}

/** Names of tests may hold characters, or be longer, than file systems take. */
function folderName(test: string): string {
  const plain = test.replaceAll(/[^\w.@=,-]/g, '_')
  if (plain === test && plain.length <= 150) return plain
  return `${plain.slice(0, 130)}~${createHash('sha256').update(test).digest('hex').slice(0, 12)}`
}
