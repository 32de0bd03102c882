/** A folder that is gone after the test. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'vitest-onnx-cache-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
