import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { clearCache } from '../../src/cache/clear.ts'
import { flushNotes, notesUsage, trimNotes } from '../../src/cache/notes.ts'
import { openCache, versionOf } from '../../src/cache/store.ts'
import { tempFolder } from './temp-folder.ts'

const key = { kind: 'results', version: versionOf('a') }
const other = { kind: 'results', version: versionOf('b') }

function writingNothing() {
  return vi.fn<(path: string) => Promise<void>>(async () => {})
}

test('an entry that needs no file is made once, also for processes that come later', async () => {
  const folder = tempFolder()
  const make = writingNothing()
  const cache = openCache({ folder })
  expect(await cache.fileOrNote(key, make)).toBeUndefined()
  expect(await cache.fileOrNote(key, make)).toBeUndefined()
  expect(await openCache({ folder }).fileOrNote(key, make)).toBeUndefined()
  expect(make).toHaveBeenCalledOnce()
  flushNotes()
  expect(readFileSync(join(folder, '.notes'), 'utf8')).toBe(`results.${key.version}\n`)
})

test('an entry with a file is kept as such', async () => {
  const folder = tempFolder()
  const make = vi.fn<(path: string) => Promise<void>>(async (path) => writeFileSync(path, 'text'))
  const made = await openCache({ folder }).fileOrNote(key, make)
  expect(readFileSync(made!.path, 'utf8')).toBe('text')
  expect(await openCache({ folder }).fileOrNote(key, make)).toEqual({ path: made!.path, made: false })
  expect(make).toHaveBeenCalledOnce()
})

test('a file that the check refuses is made again', async () => {
  const folder = tempFolder()
  const { path } = await openCache({ folder }).file(key, async (temporary) => writeFileSync(temporary, 'x'))
  writeFileSync(path, 'damaged')
  await openCache({ folder }).fileOrNote(
    key,
    async (temporary) => writeFileSync(temporary, 'well again'),
    (file) => {
      if (readFileSync(file, 'utf8') === 'damaged') throw new Error('damaged')
    },
  )
  expect(readFileSync(path, 'utf8')).toBe('well again')
})

test('recompute makes it anew, once per process', async () => {
  const folder = tempFolder()
  await openCache({ folder }).fileOrNote(key, writingNothing())
  const make = writingNothing()
  const cache = openCache({ folder, recompute: true })
  await cache.fileOrNote(key, make)
  await cache.fileOrNote(key, make)
  expect(make).toHaveBeenCalledOnce()
})

test('what goes wrong is not noted, and leaves nothing behind', async () => {
  const folder = tempFolder()
  let temporary = ''
  const cache = openCache({ folder })
  await expect(
    cache.fileOrNote(key, (path) => {
      temporary = path
      writeFileSync(path, 'half')
      return Promise.reject(new Error('crashed'))
    }),
  ).rejects.toThrow('crashed')
  expect(existsSync(temporary)).toBe(false)
  const make = writingNothing()
  await cache.fileOrNote(key, make)
  expect(make).toHaveBeenCalledOnce()
})

test('a line that was cut short says nothing, and clearing forgets all', async () => {
  const folder = tempFolder()
  await openCache({ folder }).fileOrNote(key, writingNothing())
  flushNotes()
  appendFileSync(join(folder, '.notes'), `results.${other.version}`)
  const make = writingNothing()
  await openCache({ folder }).fileOrNote(other, make)
  expect(make).toHaveBeenCalledOnce()
  clearCache(folder)
  await openCache({ folder }).fileOrNote(key, make)
  expect(make).toHaveBeenCalledTimes(2)
})

test('of very many the oldest are forgotten', async () => {
  const folder = tempFolder()
  const keys = Array.from({ length: 9 }, (_, n) => ({ kind: 'results', version: versionOf(n) }))
  for (const one of keys) await openCache({ folder }).fileOrNote(one, writingNothing())
  trimNotes(folder, 9)
  expect(notesUsage(folder).count).toBe(9)
  trimNotes(folder, 8)
  const make = writingNothing()
  const cache = openCache({ folder })
  for (const one of keys.toReversed()) await cache.fileOrNote(one, make)
  expect(make).toHaveBeenCalledTimes(5)
})
