import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ModelTestError } from '../../src/errors.ts'
import { writeFileAtomic } from '../../src/files/write-file.ts'
import { newFolder } from './temp-folder.ts'

describe('a file is written whole', () => {
  test('from text and from chunks, into folders that are made', () => {
    const folder = newFolder()
    writeFileAtomic(join(folder, 'a/b/text.json'), '{"é": 1}')
    expect(readFileSync(join(folder, 'a/b/text.json'), 'utf8')).toBe('{"é": 1}')
    const chunks = Array.from({ length: 700 }, (_, at) => new Uint8Array(1000).fill(at))
    writeFileAtomic(join(folder, 'chunks.bin'), [new Uint8Array(0), ...chunks])
    expect(readFileSync(join(folder, 'chunks.bin')).equals(Buffer.concat(chunks))).toBe(true)
    expect(readdirSync(folder).toSorted()).toEqual(['a', 'chunks.bin'])
  })

  test('empty as well', () => {
    const path = join(newFolder(), 'empty')
    writeFileAtomic(path, [])
    expect(readFileSync(path)).toHaveLength(0)
  })

  test('under the longest name that there is', () => {
    const path = join(newFolder(), 'n'.repeat(255))
    writeFileAtomic(path, 'x')
    expect(readFileSync(path, 'utf8')).toBe('x')
  })

  test('while it is written, its place holds what was there before', () => {
    const folder = newFolder()
    const path = join(folder, 'model.onnx')
    writeFileSync(path, 'before')
    writeFileAtomic(
      path,
      (function* () {
        for (let part = 0; part < 3; part++) {
          yield new Uint8Array(300_000)
          expect(readFileSync(path, 'utf8')).toBe('before')
        }
      })(),
    )
    expect(readFileSync(path)).toHaveLength(900_000)
    expect(readdirSync(folder)).toEqual(['model.onnx'])
  })

  test('two writers of one file do not disturb each other', () => {
    const folder = newFolder()
    const path = join(folder, 'model.onnx')
    writeFileAtomic(
      path,
      (function* () {
        yield new Uint8Array(300_000).fill(1)
        writeFileAtomic(path, [new Uint8Array(10).fill(2)])
        expect(readFileSync(path)).toHaveLength(10)
        yield new Uint8Array(300_000).fill(1)
      })(),
    )
    expect(readFileSync(path).every((byte) => byte === 1)).toBe(true)
    expect(readdirSync(folder)).toEqual(['model.onnx'])
  })
})

describe('when writing fails, nothing is left behind and the error names the file', () => {
  test('the source of the bytes fails: its own error is kept', () => {
    const folder = newFolder()
    const fault = new ModelTestError('FILE_UNREADABLE', 'gone', { hint: 'look' })
    const chunks = (function* () {
      yield new Uint8Array(500_000)
      throw fault
    })()
    writeFileSync(join(folder, 'kept'), 'before')
    expect(thrownBy(() => writeFileAtomic(join(folder, 'kept'), chunks))).toBe(fault)
    expect(readFileSync(join(folder, 'kept'), 'utf8')).toBe('before')
    expect(readdirSync(folder)).toEqual(['kept'])
  })

  test.each<[string, (folder: string) => string]>([
    ['the place is a folder', (folder) => join(folder, 'folder')],
    ['the folder is a file', (folder) => join(folder, 'file/x.onnx')],
    ['the name is too long', (folder) => join(folder, 'n'.repeat(256))],
    ['the name has a NUL', (folder) => join(folder, 'a\u0000b')],
    ['the folder name has a NUL', (folder) => join(folder, 'a\u0000b/c')],
  ])('%s', (_, path) => {
    const folder = newFolder()
    mkdirSync(join(folder, 'folder'))
    writeFileSync(join(folder, 'file'), '')
    expectUnwritable(path(folder))
    expect(readdirSync(folder).toSorted()).toEqual(['file', 'folder'])
  })

  // Where even root cannot write; a folder without permission is the same error from the system.
  test.skipIf(!existsSync('/proc/self'))('a place that nobody can write to', () => {
    expectUnwritable('/proc/self/new/model.onnx')
  })
})

function expectUnwritable(path: string): void {
  const error = thrownBy(() => writeFileAtomic(path, 'x'))
  expect(error).toBeInstanceOf(ModelTestError)
  expect(error).toMatchObject({ code: 'FILE_UNWRITABLE', file: path })
  expect((error as ModelTestError).hint).not.toBe('')
  expect((error as ModelTestError).cause).toBeInstanceOf(Error)
}

function thrownBy(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
