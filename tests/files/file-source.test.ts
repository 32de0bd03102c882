import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ModelTestError } from '../../src/errors.ts'
import { openFile } from '../../src/files/file-source.ts'
import { newFolder } from './temp-folder.ts'

const LARGE = 9 * 1024 * 1024
const folder = newFolder()
const at = (name: string): string => join(folder, name)

/** Larger than what is read at once, and sparse. */
function largeFile(name: string): string {
  const file = openSync(at(name), 'w')
  ftruncateSync(file, LARGE)
  closeSync(file)
  return at(name)
}

describe('what is no readable file', () => {
  test.each<[what: string, make: () => string, message: RegExp]>([
    ['a file that is not there', () => at('none.onnx'), /there is no such file/],
    ['a file in a file', () => plainFile('plain') && at('plain/x.onnx'), /there is no such file/],
    ['a folder', () => makeFolder('folder.onnx'), /this is a folder/],
    ['a link that leads nowhere', () => link('nowhere', 'dangling.onnx'), /there is no such file/],
    ['links in a circle', () => link('b.onnx', 'a.onnx') && link('a.onnx', 'b.onnx'), /lead in a circle/],
    ['a name that is too long', () => at(`${'x'.repeat(300)}.onnx`), /too long/],
    ['a name with NUL', () => at('a\u0000b'), /cannot be read/],
  ])('%s', (_, make, message) => {
    expectUnreadable(make(), message)
  })

  test.skipIf(process.platform === 'win32')(
    'a named pipe is refused at once, not waited for',
    { timeout: 30_000 },
    () => {
      execFileSync('mkfifo', [at('pipe.onnx')])
      expect(openInChild(at('pipe.onnx')).message).toMatch(/not a plain file/)
    },
  )

  test.skipIf(!existsSync('/dev/null'))('a device', () => expectUnreadable('/dev/null', /not a plain file/))
})

const canDropRights = process.getuid?.() === 0
const hasRights = process.getuid !== undefined && !canDropRights

test.skipIf(!canDropRights && !hasRights)('a file without permission says so', { timeout: 30_000 }, () => {
  const path = plainFile('secret.onnx')
  chmodSync(path, 0o000)
  if (hasRights) return expectUnreadable(path, /no permission/)
  // Nothing is forbidden to root: another user tries, in a process of its own.
  chmodSync(folder, 0o755)
  chmodSync(join(folder, '..'), 0o755)
  const { name, code, file, message, hint } = openInChild(path, 'process.setuid(65534)')
  expect([name, code, file]).toEqual(['ModelTestError', 'FILE_UNREADABLE', path])
  expect(message).toMatch(/no permission to read/)
  expect(hint).not.toBe('')
})

/** The error of opening a file in a process of its own, which is ended when it waits. */
function openInChild(
  path: string,
  before = '',
): Record<'name' | 'code' | 'file' | 'message' | 'hint', string> {
  const script = `
    const { openFile } = await import(${JSON.stringify(sourceUrl())})
    ${before}
    try { openFile(${JSON.stringify(path)}) } catch ({ name, code, file, message, hint }) {
      console.log(JSON.stringify({ name, code, file, message, hint }))
    }`
  const options = ['--import', 'tsx', '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(process.execPath, options, { encoding: 'utf8', timeout: 20_000 }))
}

describe.each([
  ['small', () => plainFile('small.bin', Buffer.from('0123456789'))],
  ['large', () => largeFile('large.bin')],
])('a %s file', (_, make) => {
  test('gives exactly what is asked for, or an error with the offset', () => {
    const file = openFile(make())
    expect(file.read(2, 3)).toHaveLength(3)
    expect(file.read(file.size, 0)).toHaveLength(0)
    for (const [offset, length] of [
      [file.size - 1, 2],
      [file.size + 1, 0],
      [-1, 1],
      [0, -1],
      [0, 2 ** 53],
    ] as const) {
      const error = thrownBy(() => file.read(offset, length))
      expect(error).toMatchObject({ code: 'FILE_UNREADABLE', file: file.name, offset })
    }
    file.close()
    file.close()
  })
})

describe('files that change', () => {
  test('a large file that becomes shorter while it is read', () => {
    const path = largeFile('shrinking.bin')
    const file = openFile(path)
    truncateSync(path, 1000)
    expect(file.read(0, 1000)).toHaveLength(1000)
    expect(thrownBy(() => file.read(500, 1000))).toMatchObject({ code: 'FILE_UNREADABLE', offset: 1000 })
    expect(thrownBy(() => file.read(500, 1000))).toMatchObject({
      message: expect.stringMatching(/became shorter/),
    })
    file.close()
  })

  test('a small file is read at once and keeps its content', () => {
    const path = plainFile('kept.bin', Buffer.from('before'))
    const file = openFile(path)
    truncateSync(path, 0)
    expect(Buffer.from(file.read(0, 6)).toString()).toBe('before')
  })

  test('after it is closed nothing is read, not even from a file that took its place', () => {
    const file = openFile(largeFile('closed.bin'))
    file.close()
    const other = openFile(largeFile('other.bin'))
    expect(thrownBy(() => file.read(0, 1))).toMatchObject({ code: 'FILE_UNREADABLE', message: /closed/ })
    other.close()
  })
})

test('more bytes than memory has are refused with the one error', () => {
  const file = openSync(at('huge.bin'), 'w')
  ftruncateSync(file, 2 ** 43)
  closeSync(file)
  const source = openFile(at('huge.bin'))
  expect(thrownBy(() => source.read(0, 2 ** 43))).toMatchObject({
    code: 'MODEL_TOO_LARGE',
    file: at('huge.bin'),
  })
  source.close()
})

function plainFile(name: string, content: Uint8Array = Uint8Array.of(1)): string {
  writeFileSync(at(name), content)
  return at(name)
}

function makeFolder(name: string): string {
  mkdirSync(at(name))
  return at(name)
}

function link(target: string, name: string): string {
  symlinkSync(target, at(name))
  return at(name)
}

function sourceUrl(): string {
  return pathToFileURL(join(import.meta.dirname, '../../src/files/file-source.ts')).href
}

function expectUnreadable(path: string, message: RegExp): void {
  const error = thrownBy(() => openFile(path))
  expect(error).toBeInstanceOf(ModelTestError)
  expect(error).toMatchObject({ code: 'FILE_UNREADABLE', file: path, offset: 0 })
  expect((error as ModelTestError).message).toMatch(message)
  expect((error as ModelTestError).hint).not.toBe('')
}

function thrownBy(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
