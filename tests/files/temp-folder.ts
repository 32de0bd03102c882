/** A folder that goes with the worker. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'vitest-onnx-files-')))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))

export function newFolder(): string {
  return mkdtempSync(join(root, 'dir-'))
}
