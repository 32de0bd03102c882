/** Wrong usage ends with 2, of inner commands too. */
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')

test.each([
  [['xfails', 'update']],
  [['xfails']],
  [['xfails', 'updat']],
  [['cache', 'ls', '--jsn']],
  [['diff']],
])('%j', (args) => {
  const { status, stderr } = spawnSync(
    join(ROOT, 'node_modules/.bin/tsx'),
    [join(ROOT, 'src/cli/main.ts'), ...args],
    { encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } },
  )
  expect([status, stderr]).toEqual([2, expect.stringMatching(/error:|Usage:/)])
})
