import { createHash } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { contentHash } from '../../src/cache/content-hash.ts'
import { pruneCache } from '../../src/cache/prune.ts'
import { tempFolder } from './temp-folder.ts'

const [one, two] = [Buffer.alloc(100_000, 1), Buffer.alloc(100_000, 2)]

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

test('the digest of a settled file is kept; of one just changed it is not', async () => {
  const folder = tempFolder()
  const [file, cache] = [join(folder, 'weights'), join(folder, 'cache')]
  writeFileSync(file, one)
  utimesSync(file, 1e9, 1e9)
  expect(contentHash(file, cache)).toBe(sha256(one))
  expect(readdirSync(join(cache, '.hashes'))).toEqual([])

  await sleep(2100)
  expect(contentHash(file, cache)).toBe(sha256(one))
  const [memo] = readdirSync(join(cache, '.hashes'))
  expect(memo).toMatch(/^[0-9a-f]{64}$/)

  // Proof that it is used: a memo that lies is believed, here and through a link.
  const { stamp, path } = JSON.parse(readFileSync(join(cache, '.hashes', memo!), 'utf8')) as Record<
    string,
    string
  >
  const lie = sha256(two)
  writeFileSync(join(cache, '.hashes', memo!), JSON.stringify({ stamp, path, sha256: lie }))
  const otherCache = join(folder, 'other-cache')
  renameSync(cache, otherCache)
  const link = join(folder, 'link')
  symlinkSync(file, link)
  expect(contentHash(link, otherCache)).toBe(lie)

  // A change that keeps size, inode and time of change is seen.
  writeFileSync(file, Buffer.alloc(100_000, 3))
  utimesSync(file, 1e9, 1e9)
  expect(contentHash(file, otherCache)).toBe(sha256(Buffer.alloc(100_000, 3)))

  expect(pruneCache(otherCache).leftovers.files).toBe(1)
  expect(readdirSync(join(otherCache, '.hashes'))).toEqual([])
})

test.for(['', '{}', '{"path":"x"', 'null'])('a damaged memo (%o) is not believed', (text) => {
  const folder = tempFolder()
  const [file, cache] = [join(folder, 'weights'), join(folder, 'cache')]
  writeFileSync(file, one)
  mkdirSync(join(cache, '.hashes'), { recursive: true })
  writeFileSync(join(cache, '.hashes', sha256(Buffer.from(file))), text)
  expect(contentHash(file, cache)).toBe(sha256(one))
})

test('small files are hashed without a memo, and no cache folder is no error', () => {
  const folder = tempFolder()
  const [file, cache] = [join(folder, 'model'), join(folder, 'cache')]
  writeFileSync(file, 'small')
  expect(contentHash(file, cache)).toBe(sha256(Buffer.from('small')))
  writeFileSync(file, one)
  expect(contentHash(file, join(file, 'not-a-folder'))).toBe(sha256(one))
})

test('a file that is not there is the reader’s error', () => {
  const folder = tempFolder()
  expect(() => contentHash(join(folder, 'gone'), folder)).toThrow('there is no such file')
})
