import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findTarget } from '../../src/targets/registry.ts'
import { tempFolder } from '../support/temp-model.ts'

function moduleOf(code: string): string {
  const path = join(tempFolder(), 'target.mjs')
  writeFileSync(path, code)
  return path
}

test.for(['sim', 'cpu', 'wasm', 'webgpu', 'cuda', 'coreml'])('%s is known by its name', async (name) => {
  expect(await findTarget(name, undefined)).toMatchObject({ name })
})

test('a name that is not known comes with those that are', async () => {
  await expect(findTarget('webgup', undefined)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: 'there is no target "webgup"',
    hint: expect.stringMatching(/sim, cpu, wasm, .*webgpu.*path of a module/),
  })
})

test('a module goes before a built-in target of the same name', async () => {
  const path = moduleOf(`export default { name: 'mine', version: () => '1', compile() {}, load() {} }`)
  expect(await findTarget('cpu', path)).toMatchObject({ name: 'mine' })
})

test.for([
  ['without a default export', 'export const target = 1', 'does not default-export a target'],
  ['with half a target', 'export default { compile() {} }', 'does not default-export a target'],
  ['with a mistake', 'throw new Error("no licence")', 'cannot be loaded (no licence)'],
] as [string, string, string][])('a module %s is an error with its file', async ([, code, message]) => {
  const path = moduleOf(code)
  await expect(findTarget('x', path)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    file: path,
    message: expect.stringContaining(message),
  })
})

test('a module that is not there is an error with its file', async () => {
  const path = join(tempFolder(), 'nowhere.mjs')
  await expect(findTarget('x', path)).rejects.toMatchObject({ code: 'INVALID_OPTION', file: path })
})
