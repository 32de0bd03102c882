/**
 * The plugin and runtime tests on Vitest 5 and Node 24: `npm run e2e:newest`.
 *
 * npm's own packages bring both, into a temporary folder.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'vitest-onnx-newest-'))
try {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const node = `node-${process.platform}-${process.arch}`
  const install = ['install', '--no-save', '--ignore-scripts', `${node}@24`, 'vitest@5', '@vitest/ui@5']
  // The project's own settings refuse packages for newer engines, and npm hands them down.
  const plain = Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith('npm_'))
  execFileSync('npm', install, { cwd: folder, stdio: 'inherit', env: Object.fromEntries(plain) })
  const modules = join(folder, 'node_modules')
  const env = {
    ...process.env,
    PLUGIN_TEST_MODULES: modules,
    PLUGIN_TEST_NODE: join(modules, node, 'bin/node'),
  }
  const tests = ['tests/e2e/plugin', 'tests/e2e/runtime']
  const { status } = spawnSync(
    join(ROOT, 'node_modules/.bin/vitest'),
    ['run', '--project', 'e2e', ...tests],
    {
      cwd: ROOT,
      env,
      stdio: 'inherit',
    },
  )
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
