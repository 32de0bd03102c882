import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { discoverModels } from '../../src/suite/discover.ts'
import { modelNames } from '../../src/suite/model-names.ts'
import { tempFolder } from '../support/temp-model.ts'

function folderWith(...paths: readonly string[]): string {
  const folder = tempFolder()
  for (const path of paths) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), '')
  }
  return folder
}

const ids = (folder: string): string[] => discoverModels(folder).map(({ id }) => id)

test('every .onnx file is a model, sorted by path', () => {
  const folder = folderWith('b.onnx', 'a/z.onnx', 'a/b/c.ONNX', 'a.txt', 'model.onnx.txt')
  expect(discoverModels(folder)).toEqual([
    { path: join(folder, 'a/b/c.ONNX'), id: 'a/b/c.ONNX', name: 'c', dataSets: [] },
    { path: join(folder, 'a/z.onnx'), id: 'a/z.onnx', name: 'z', dataSets: [] },
    { path: join(folder, 'b.onnx'), id: 'b.onnx', name: 'b', dataSets: [] },
  ])
})

test('names that start with "disable" or a dot, and node_modules, are passed over', () => {
  const folder = folderWith(
    'disabled.onnx',
    'disable-me/a.onnx',
    'x/disable/deep/b.onnx',
    'node_modules/p/c.onnx',
    '.git/d.onnx',
    '.e.onnx',
    'x/not-disabled.onnx',
  )
  expect(ids(folder)).toEqual(['x/not-disabled.onnx'])
})

test("ONNX's own layout: the folder gives the name, data sets come in order of their numbers", () => {
  const sets = [10, 2, 0].map((n) => `test_add/test_data_set_${n}/input_0.pb`)
  const folder = folderWith('test_add/model.onnx', ...sets, 'test_add/test_data_set_x/input_0.pb')
  expect(discoverModels(folder)).toMatchObject([
    { name: 'test_add', dataSets: [0, 2, 10].map((n) => join(folder, `test_add/test_data_set_${n}`)) },
  ])
})

test('data sets belong to the only model of their folder, or to model.onnx', () => {
  const folder = folderWith(
    'alone/resnet.onnx',
    'alone/test_data_set_0/input_0.pb',
    'two/model.onnx',
    'two/other.onnx',
    'two/test_data_set_0/input_0.pb',
  )
  expect(discoverModels(folder).map(({ name, dataSets }) => [name, dataSets.length])).toEqual([
    ['resnet', 1],
    ['two', 1],
    ['other', 0],
  ])
})

test('a sidecar is found by the stem of its model', () => {
  const folder = folderWith('a.onnx', 'a.test.yaml', 'b.onnx')
  expect(discoverModels(folder).map(({ sidecar }) => sidecar)).toEqual([
    join(folder, 'a.test.yaml'),
    undefined,
  ])
})

test('blanks in a file name do not reach the names of tests', () => {
  expect(discoverModels(folderWith('my model.onnx'))).toMatchObject([
    { id: 'my model.onnx', name: 'my_model' },
  ])
})

test('line ends and other odd characters in a file name do not hide it', () => {
  expect(discoverModels(folderWith('new\nline.onnx', 'a*[b]{c}!(d).onnx'))).toMatchObject([
    { id: 'a*[b]{c}!(d).onnx', name: 'a*[b]{c}!(d)' },
    { id: 'new\nline.onnx', name: 'new_line' },
  ])
})

test.each<[string, Readonly<Record<string, string>>]>([
  ['a file gives its name', { 'a/example.onnx': 'example' }],
  [
    'model.onnx takes that of its folder',
    { 'a/x/model.onnx': 'x', 'a/y/model.onnx': 'y', 'model.onnx': 'model' },
  ],
  [
    'or of the one above',
    { 'bert/onnx/model.onnx': 'bert', 'gpt/onnx/model.onnx': 'gpt', 'onnx/model.onnx': 'onnx' },
  ],
  ['folders tell models of one name apart', { 'x/net.onnx': 'x-net', 'y/net.onnx': 'y-net' }],
  ['as many as it takes', { 'a/q/m.onnx': 'a-q-m', 'b/q/m.onnx': 'b-q-m', 'b/r/m.onnx': 'r-m' }],
  ['the one without folders keeps its name', { 'net.onnx': 'net', 'x/net.onnx': 'x-net' }],
  ['and model.onnx is called so then', { 'x/model.onnx': 'x-model', 'x.onnx': 'x' }],
  ['a digest is the last resort', { 'a b.onnx': 'a_b~DIGEST', 'a_b.onnx': 'a_b~DIGEST' }],
])('names: %s', (_, expected) => {
  const found = discoverModels(folderWith(...Object.keys(expected)))
  const names = found.map(({ id, name }) => [id, name.replace(/~[0-9a-f]{6}$/, '~DIGEST')])
  expect(Object.fromEntries(names)).toEqual(expected)
  expect(new Set(found.map(({ name }) => name)).size).toBe(found.length)
})

test('no two models have one name, however alike their paths are', () => {
  const part = fc.constantFrom('a', 'b', 'a-b', 'a b', 'a_b', 'model', 'onnx', 'a~1')
  const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => `${parts.join('/')}.onnx`)
  fc.assert(
    fc.property(fc.uniqueArray(path, { maxLength: 30 }), fc.boolean(), (paths, hasSets) => {
      const names = modelNames(paths, 'testdata', () => hasSets)
      expect([...names.keys()]).toEqual(paths)
      expect(new Set(names.values()).size).toBe(paths.length)
    }),
  )
})

test('links are followed, and those in a circle end', () => {
  const [folder, elsewhere] = [folderWith('a/m.onnx'), folderWith('deep/n.onnx')]
  symlinkSync(folder, join(folder, 'a/up'))
  symlinkSync(elsewhere, join(folder, 'linked'))
  symlinkSync(join(folder, 'linked'), join(elsewhere, 'deep/back'))
  symlinkSync(join(folder, 'a/m.onnx'), join(folder, 'same.onnx'))
  symlinkSync('self.onnx', join(folder, 'self.onnx'))
  expect(ids(folder)).toEqual(['a/m.onnx', 'linked/deep/n.onnx', 'same.onnx', 'self.onnx'])
})

test('no folder holds no models; a file in its place is an error', () => {
  const folder = folderWith('file')
  expect(discoverModels(join(folder, 'nothing'))).toEqual([])
  expect(() => discoverModels(join(folder, 'file'))).toThrow('is a file, not a folder')
})
