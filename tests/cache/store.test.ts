import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openCache, versionOf } from '../../src/cache/store.ts'
import { ModelTestError } from '../../src/errors.ts'
import { writeFileAtomic } from '../../src/files/write-file.ts'
import { tempFolder } from './temp-folder.ts'

const key = { kind: 'results', version: versionOf('a') }

function writing(text: string) {
  return vi.fn<(path: string) => Promise<void>>(async (path) => writeFileSync(path, text))
}

test('an entry is made once and lies under its kind and version', async () => {
  const folder = tempFolder()
  const cache = openCache({ folder })
  const make = writing('text')
  const path = join(folder, 'results', key.version.slice(0, 2), key.version)
  expect(cache.peek(key)).toBeUndefined()
  expect(await cache.file(key, make)).toEqual({ path, made: true })
  expect(await cache.file(key, make)).toEqual({ path, made: false })
  expect(await openCache({ folder }).file(key, make)).toEqual({ path, made: false })
  expect(cache.peek(key)).toBe(path)
  expect(readFileSync(path, 'utf8')).toBe('text')
  expect(make).toHaveBeenCalledOnce()
})

test('calls at the same time share one making, also through two caches of one folder', async () => {
  const folder = tempFolder()
  const make = writing('text')
  const hits = await Promise.all([1, 2, 3].map(() => openCache({ folder }).file(key, make)))
  expect(hits.map(({ made }) => made)).toEqual([true, true, true])
  expect(make).toHaveBeenCalledOnce()
})

test('what the maker throws reaches the caller, nothing stays, and the next call makes it', async () => {
  const folder = tempFolder()
  const cache = openCache({ folder })
  const failing = cache.file(key, async (path) => {
    writeFileSync(path, 'half')
    throw new RangeError('no result')
  })
  await expect(failing).rejects.toThrow(RangeError)
  expect(cache.peek(key)).toBeUndefined()
  expect(readdirSync(join(folder, '.temporary'))).toEqual([])
  expect(await cache.file(key, writing('text'))).toMatchObject({ made: true })
})

test('a maker that writes no file is told so', async () => {
  const cache = openCache({ folder: tempFolder() })
  await expect(cache.file(key, async () => {})).rejects.toThrow('what makes the results wrote no file')
})

test('an entry that the check refuses is made anew; a good one is checked once per process', async () => {
  const folder = tempFolder()
  const { path } = await openCache({ folder }).file(key, writing('text'))
  const spy = vi.fn<(path: string) => void>(check)
  truncateSync(path, 2)
  const cache = openCache({ folder })
  expect(await cache.file(key, writing('text'), spy)).toEqual({ path, made: true })
  expect(readFileSync(path, 'utf8')).toBe('text')
  expect(spy).toHaveBeenCalledOnce()

  // Another process puts its own: another file under the same name.
  writeFileAtomic(path, 'text')
  for (let time = 0; time < 3; time++) {
    expect(await cache.file(key, writing('text'), spy)).toEqual({ path, made: false })
  }
  expect(spy).toHaveBeenCalledTimes(2)
})

test.for([
  ['removed', (path: string) => rmSync(path)],
  ['removed with the whole cache', (path: string) => rmSync(join(path, '../../..'), { recursive: true })],
  ['cut short', (path: string) => truncateSync(path, 1)],
  [
    'replaced by a link',
    (path: string) => {
      renameSync(path, `${path}-elsewhere`)
      symlinkSync(`${path}-elsewhere`, path)
    },
  ],
] as const)('an entry that is %s while the process knows it is made again', async ([, damage]) => {
  const cache = openCache({ folder: join(tempFolder(), 'cache') })
  const { path } = await cache.file(key, writing('text'), check)
  damage(path)
  expect(await cache.file(key, writing('text'), check)).toEqual({ path, made: true })
  expect(lstatSync(path).isFile()).toBe(true)
  expect(readFileSync(path, 'utf8')).toBe('text')
})

test('recompute hides old entries from peek and makes each one once', async () => {
  const folder = tempFolder()
  await openCache({ folder }).file(key, writing('old'))
  const cache = openCache({ folder, recompute: true })
  expect(cache.peek(key)).toBeUndefined()
  expect(await cache.file(key, writing('new'))).toMatchObject({ made: true })
  const { path, made } = await cache.file(key, writing('newer'))
  expect({ made, text: readFileSync(path, 'utf8') }).toEqual({ made: false, text: 'new' })
  expect(cache.peek(key)).toBe(path)
})

test('use is written down, but not again within a minute', async () => {
  const cache = openCache({ folder: tempFolder() })
  const { path } = await cache.file(key, writing('text'))
  const usedAgo = () => Math.round((Date.now() - lstatSync(path).mtimeMs) / 1000)
  age(path, 30)
  await cache.file(key, writing('text'))
  expect(usedAgo()).toBe(30)
  age(path, 90)
  await cache.file(key, writing('text'))
  expect(usedAgo()).toBe(0)
  age(path, 90)
  cache.peek(key)
  expect(usedAgo()).toBe(0)
})

test('above the cap the least recently used entries go, down to nine tenths', async () => {
  const cache = openCache({ folder: tempFolder(), maxBytes: 1000 })
  const put = async (name: number) =>
    (await cache.file({ kind: 'results', version: versionOf(name) }, writing('x'.repeat(100)))).path
  const paths: string[] = []
  for (let name = 0; name < 10; name++) paths.push(await put(name))
  for (const [at, path] of paths.entries()) age(path, 1000 - at)
  await cache.file({ kind: 'results', version: versionOf(0) }, writing('unused'))
  await put(10)
  expect(paths.map((path) => existsSync(path))).toEqual([true, false, false, ...Array(7).fill(true)])
})

test('entries in use stay, even above the cap', async () => {
  const cache = openCache({ folder: tempFolder(), maxBytes: 250 })
  const paths: string[] = []
  for (let name = 0; name < 5; name++) {
    paths.push(
      (await cache.file({ kind: 'results', version: versionOf(name) }, writing('x'.repeat(100)))).path,
    )
    age(paths.at(-1)!, 59)
  }
  expect(paths.every((path) => existsSync(path))).toBe(true)
})

test('what other processes put counts towards the cap', async () => {
  const folder = tempFolder()
  const cache = openCache({ folder, maxBytes: 1000 })
  await cache.file({ kind: 'results', version: versionOf('mine') }, writing('x'.repeat(10)))
  const other = await openCache({ folder }).file(key, writing('x'.repeat(2000)))
  age(other.path, 500)
  await cache.file({ kind: 'results', version: versionOf('small') }, writing('x'.repeat(21)))
  expect(existsSync(other.path)).toBe(false)
})

test.for([
  ['a system error', (path: string) => writeFileSync('/dev/full', path)],
  [
    'an error around it',
    () => {
      const cause = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
      throw new ModelTestError('FILE_UNWRITABLE', 'the file cannot be written', { hint: '', cause })
    },
  ],
] as const)('a full disk is named, as %s', async ([, write]) => {
  const folder = tempFolder()
  const error = await openCache({ folder })
    .file(key, async (path) => write(path))
    .catch((reason: unknown) => reason as ModelTestError)
  expect(error).toMatchObject({
    code: 'FILE_UNWRITABLE',
    message: `${folder}: the disk is full: the result was computed, but is not stored`,
    hint: expect.stringContaining('ONNX_TEST_CACHE_DIR'),
  })
  expect(readdirSync(join(folder, '.locks'))).toEqual([])
})

test('a folder that cannot be is an error before anything is computed', async () => {
  const file = join(tempFolder(), 'file')
  writeFileSync(file, '')
  const make = writing('text')
  await expect(openCache({ folder: join(file, 'cache') }).file(key, make)).rejects.toMatchObject({
    code: 'FILE_UNWRITABLE',
    hint: expect.stringContaining('ONNX_TEST_CACHE_DIR'),
  })
  expect(make).not.toHaveBeenCalled()
})

test.for([
  { kind: '../up', version: key.version },
  { kind: '.locks', version: key.version },
  { kind: 'results', version: '../../etc' },
  { kind: 'results', version: `${key.version}0` },
])('the key %o is refused', async (unsafe) => {
  const cache = openCache({ folder: tempFolder() })
  await expect(cache.file(unsafe, writing('text'))).rejects.toThrow('is no key of the cache')
  expect(() => cache.peek(unsafe)).toThrow('is no key of the cache')
})

test('an entry that is a read-only file, as a maker may write it, is stored', async () => {
  const cache = openCache({ folder: tempFolder() })
  const hit = await cache.file(key, async (path) => {
    writeFileSync(path, 'text')
    chmodSync(path, 0o444)
  })
  expect(readFileSync(hit.path, 'utf8')).toBe('text')
})

test('a temporary folder that somebody removed is laid out again by the next process', async () => {
  const folder = tempFolder()
  mkdirSync(join(folder, '.locks'))
  expect(await openCache({ folder }).file(key, writing('text'))).toMatchObject({ made: true })
})

function check(path: string): void {
  if (readFileSync(path, 'utf8') !== 'text') throw new Error('damaged')
}

function age(path: string, seconds: number): void {
  const then = Date.now() / 1000 - seconds
  utimesSync(path, then, then)
}
