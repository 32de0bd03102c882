import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CASE_FILE, failureFolder, keptFailures } from '../../src/suite/failures.ts'
import { tempFolder } from '../support/temp-model.ts'

test('every model has a folder of its own, whatever its tests are called', () => {
  const root = tempFolder()
  const pairs = [
    ['x/model.onnx', 'm_full_model-sim-default'],
    ['y/model.onnx', 'm_full_model-sim-default'],
    ['a b.onnx', 'n'],
    ['a_b.onnx', 'n'],
    ['a_b.onnx', `n/${'long'.repeat(100)}`],
  ] as const
  const folders = pairs.map(([model, name]) => failureFolder(root, model, name))
  expect(folders[0]).toBe(join(root, '.vitest-onnx/failures/x/model.onnx/m_full_model-sim-default'))
  expect(new Set(folders).size).toBe(pairs.length)
  for (const [at, [model, name]] of pairs.entries()) {
    mkdirSync(folders[at]!, { recursive: true })
    writeFileSync(join(folders[at]!, CASE_FILE), JSON.stringify({ test: name, model, thresholds: {} }))
  }
  const found = keptFailures(root).map(({ folder, kept }) => [folder, kept.model, kept.test])
  expect(found.toSorted()).toEqual(pairs.map((pair, at) => [folders[at], ...pair]).toSorted())
})

test('nothing is kept where nothing failed', () => {
  expect(keptFailures(tempFolder())).toEqual([])
})
