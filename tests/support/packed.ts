/**
 * The package as users get it: packed once per run of the tests, installed into an empty project.
 *
 * `--ignore-scripts` as the README says; the registry is that of the machine.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

export function packInto(folder: string): string {
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return join(
    folder,
    readdirSync(folder).find((name) => name.endsWith('.tgz'))!,
  )
}

export function emptyProject(): { readonly folder: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'vitest-onnx-project-'))
  mkdirSync(join(folder, 'work'))
  writeFileSync(join(folder, 'work', 'package.json'), '{ "private": true, "type": "module" }\n')
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
