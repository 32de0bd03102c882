import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ModelTestError } from '../../src/errors.ts'
import { openModel } from '../../src/files/model-file.ts'
import { extractPart } from '../../src/graph/part.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { splitGraph } from '../../src/graph/split.ts'
import { encodeModel, floatType, modelOf } from '../onnx/built-models.ts'
import { newFolder } from './temp-folder.ts'

/** Four floats, outside the model. */
function externalModel(location: string, range: { offset?: string; length?: string } = {}): Uint8Array {
  const externalData = Object.entries({ location, ...range }).map(([key, value]) => ({ key, value }))
  return encodeModel(
    modelOf({
      input: [{ name: 'x', type: floatType(4) }],
      output: [{ name: 'y' }],
      initializer: [{ name: 'w', dims: [4], dataType: 1, dataLocation: 1, externalData }],
      node: [{ opType: 'Add', input: ['x', 'w'], output: ['y'] }],
    }),
  )
}

interface Place {
  readonly folder: string
  readonly model: string
}

/** root/secret.bin, root/models/weights.bin, root/models/inside/w.bin, links, and the model. */
function place(location: string, range?: { offset?: string; length?: string }): Place {
  const folder = newFolder()
  const models = join(folder, 'models')
  mkdirSync(join(models, 'inside'), { recursive: true })
  writeFileSync(join(folder, 'secret.bin'), new Uint8Array(16))
  writeFileSync(join(models, 'weights.bin'), Float32Array.of(1, 2, 3, 4))
  writeFileSync(join(models, 'inside/w.bin'), Float32Array.of(1, 2, 3, 4))
  symlinkSync('../secret.bin', join(models, 'out.bin'))
  symlinkSync('..', join(models, 'up'))
  symlinkSync('inside/w.bin', join(models, 'in.bin'))
  writeFileSync(join(models, 'model.onnx'), externalModel(location, range))
  return { folder, model: join(models, 'model.onnx') }
}

/** Extracts the one part, with its weights. */
function extract(path: string): Uint8Array {
  const file = openModel(path)
  try {
    const [part] = splitGraph(resolveModel(file.model), { stem: file.stem, typeOf: () => undefined })
    return extractPart(part!, () => undefined, { kind: 'inline', external: file.external }).toBytes()
  } finally {
    file.close()
  }
}

describe('external data is read', () => {
  const WEIGHTS = Buffer.from(Float32Array.of(1, 2, 3, 4).buffer)
  test.each(['weights.bin', './weights.bin', 'inside/w.bin', 'inside/../weights.bin', 'in.bin'])(
    'from %s',
    (location) => {
      expect(Buffer.from(extract(place(location).model)).includes(WEIGHTS)).toBe(true)
    },
  )

  test('from the cache of Hugging Face, where model and data are links to blobs', () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'blobs'))
    mkdirSync(join(folder, 'snapshots/abc'), { recursive: true })
    writeFileSync(join(folder, 'blobs/1111'), externalModel('model.onnx_data'))
    writeFileSync(join(folder, 'blobs/2222'), WEIGHTS)
    symlinkSync('../../blobs/1111', join(folder, 'snapshots/abc/model.onnx'))
    symlinkSync('../../blobs/2222', join(folder, 'snapshots/abc/model.onnx_data'))
    expect(Buffer.from(extract(join(folder, 'snapshots/abc/model.onnx'))).includes(WEIGHTS)).toBe(true)
  })
})

describe('external data outside the folder is refused', () => {
  test.each([
    '../secret.bin',
    'inside/../../secret.bin',
    '/etc/hostname',
    'out.bin',
    'up/secret.bin',
    '..',
    '.',
    'weights.bin\u0000.txt',
  ])('%j', (location) => {
    const { model } = place(location)
    expectRefused(model, 'EXTERNAL_DATA_OUTSIDE', JSON.stringify(location).slice(1, 4))
  })
})

test('an absolute path is refused even if it leads into the folder', () => {
  const { folder, model } = place('weights.bin')
  const inside = join(folder, 'models/weights.bin')
  writeFileSync(model, externalModel(inside))
  expectRefused(model, 'EXTERNAL_DATA_OUTSIDE', inside)
})

describe('external data that cannot be read', () => {
  test('a file that is not there', () => {
    expectRefused(place('none.bin').model, 'EXTERNAL_DATA_UNREADABLE', 'none.bin')
  })

  test('a folder', () => {
    expectRefused(place('inside').model, 'FILE_UNREADABLE', 'this is a folder')
  })

  test.each([
    [{ offset: '8', length: '16' }],
    [{ offset: '17', length: '0' }],
    [{ offset: '17' }],
    [{ offset: '0', length: '9007199254740991' }],
    [{ offset: '9007199254740991', length: '9007199254740991' }],
  ])('a range past the end: %j', (range) => {
    expectRefused(place('weights.bin', range).model, 'FILE_UNREADABLE', 'ends at byte 16')
  })
})

test('the stem is the file name without its ending', () => {
  const folder = newFolder()
  for (const [name, stem] of [
    ['a.b.onnx', 'a.b'],
    ['X.ONNX', 'X'],
    ['plain', 'plain'],
  ] as const) {
    writeFileSync(join(folder, name), externalModel('w'))
    expect(openModel(join(folder, name)).stem).toBe(stem)
  }
})

test('a file that is no model is named in the error', () => {
  const path = join(newFolder(), 'broken.onnx')
  writeFileSync(path, externalModel('w').subarray(0, -1))
  expect(() => openModel(path)).toThrow(ModelTestError)
  expect(() => openModel(path)).toThrow(`${path}, byte `)
})

function expectRefused(model: string, code: string, message: string): void {
  let error: unknown
  try {
    extract(model)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(ModelTestError)
  const { code: actual, message: text, hint, file } = error as ModelTestError
  expect(actual).toBe(code)
  expect(text).toContain(message)
  expect(file).toContain('models')
  expect(hint).not.toBe('')
}
