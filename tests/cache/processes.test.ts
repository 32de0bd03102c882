/** What holds between processes, with real ones. */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pruneCache } from '../../src/cache/prune.ts'
import { openCache, versionOf } from '../../src/cache/store.ts'
import { tempFolder } from './temp-folder.ts'
import type { Request } from './worker.ts'
import { Workers } from './workers.ts'

const version = versionOf('the entry')
const workers = new Workers()
beforeAll(() => workers.start(4))
afterAll(() => workers.stop())

function setting(): Request & { makes(): number } {
  const root = tempFolder()
  const log = join(root, 'log')
  return {
    folder: join(root, 'cache'),
    log,
    version,
    makes: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').length : 0),
  }
}

test('of four processes that want one missing entry, one makes it and all get it whole', async () => {
  const { makes, ...request } = setting()
  const answers = await workers.race(Array.from({ length: 4 }, () => ({ ...request, makeMs: 150 })))
  expect(answers.map((answer) => 'text' in answer && answer.text)).toEqual(Array(4).fill('content'))
  expect(answers.filter((answer) => 'made' in answer && answer.made)).toHaveLength(1)
  expect(makes()).toBe(1)
  expect(readdirSync(join(request.folder, '.locks'))).toEqual([])
  expect(readdirSync(join(request.folder, '.temporary'))).toEqual([])
})

test('when the maker fails, one who waits makes the entry', async () => {
  const { makes, ...request } = setting()
  const failing = workers.run({ ...request, fails: true, makeMs: 100 })
  await failing.making
  const [waiting] = await workers.race([request])
  expect(await failing.answer).toMatchObject({ error: 'the maker failed' })
  expect(waiting).toEqual({ text: 'content', made: true })
  expect(makes()).toBe(2)
})

test('a maker killed in the middle leaves a cache that others use at once, also those who wait', async () => {
  const { makes, ...request } = setting()
  const killed = workers.run({ ...request, makeMs: 60_000 })
  await killed.making
  const waiting = [1, 2, 3].map(() => workers.run(request))
  await killed.kill()
  const answers = await Promise.all(waiting.map(({ answer }) => answer))
  expect(answers.map((answer) => 'text' in answer && answer.text)).toEqual(Array(3).fill('content'))
  expect(makes()).toBe(2)

  expect(readdirSync(join(request.folder, '.temporary'))).toHaveLength(1)
  expect(pruneCache(request.folder).leftovers).toEqual({ files: 1, bytes: 'content'.length >> 1 })
  expect(readdirSync(join(request.folder, '.temporary'))).toEqual([])
  expect(openCache(request).peek({ kind: 'results', version })).toBeDefined()
})

test('what a living process works on is not swept', async () => {
  const { makes, ...request } = setting()
  const worker = workers.run({ ...request, makeMs: 200 })
  await worker.making
  expect(pruneCache(request.folder).leftovers).toEqual({ files: 0, bytes: 0 })
  expect(await worker.answer).toEqual({ text: 'content', made: true })
  expect(makes()).toBe(1)
})

const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)
const owner = { pid: process.pid, host, started: '1', token: '0123456789abcdef' }
test.for([
  ['of a process whose number was given to another', JSON.stringify(owner), 0],
  ['of another host, silent for ten minutes', JSON.stringify({ ...owner, host: 'other' }), 600],
  ['whose owner was killed before it wrote its name', '', 10],
  ['that holds something else', '{"pid":1}', 10],
] as const)('a lock %s is taken over, once', async ([, text, ageSeconds]) => {
  const { makes, ...request } = setting()
  mkdirSync(join(request.folder, '.locks'), { recursive: true })
  const lock = join(request.folder, '.locks', `results.${version}`)
  writeFileSync(lock, text)
  const then = Date.now() / 1000 - ageSeconds
  utimesSync(lock, then, then)
  const answers = await workers.race(Array.from({ length: 3 }, () => ({ ...request, makeMs: 50 })))
  expect(answers.map((answer) => 'text' in answer && answer.text)).toEqual(Array(3).fill('content'))
  expect(makes()).toBe(1)
  expect(readdirSync(join(request.folder, '.locks'))).toEqual([])
})

test('of those who see the same dead lock at the same time one takes it over, a hundred times in a row', async () => {
  const { makes, ...request } = setting()
  const versions = Array.from({ length: 100 }, (_, at) => versionOf(at))
  mkdirSync(join(request.folder, '.locks'), { recursive: true })
  for (const each of versions) {
    writeFileSync(join(request.folder, '.locks', `results.${each}`), JSON.stringify(owner))
  }
  await workers.race(Array.from({ length: 3 }, () => ({ ...request, versions, makeMs: 1 })))
  expect(makes()).toBe(100)
})

test('a lock of another host that shows life is respected', async () => {
  const { makes, ...request } = setting()
  mkdirSync(join(request.folder, '.locks'), { recursive: true })
  const lock = join(request.folder, '.locks', `results.${version}`)
  writeFileSync(lock, JSON.stringify({ ...owner, host: 'other' }))
  const worker = workers.run(request)
  await sleep(200)
  expect(makes()).toBe(0)
  rmSync(lock)
  expect(await worker.answer).toEqual({ text: 'content', made: true })
})

test('recompute makes an existing entry once per process', async () => {
  const { makes, ...request } = setting()
  await workers.race([{ ...request, content: 'old' }])
  expect(await workers.race([{ ...request, content: 'new', recompute: true, times: 3 }])).toEqual([
    { text: 'new', made: true },
  ])
  expect(makes()).toBe(2)
  expect(await workers.race([request])).toEqual([{ text: 'new', made: false }])
})

test('processes that recompute at the same time share the work', async () => {
  const { makes, ...request } = setting()
  await workers.race([{ ...request, content: 'old' }])
  const again = { ...request, content: 'new', recompute: true, makeMs: 300 }
  const answers = await workers.race([again, again, again])
  expect(answers.map((answer) => 'text' in answer && answer.text)).toEqual(['new', 'new', 'new'])
  expect(makes()).toBe(2)
})

test('a folder that may only be read serves what it has and says what to do about the rest', async () => {
  const { makes, ...request } = setting()
  await workers.race([request])
  chmodSync(join(request.folder, '..'), 0o755)
  const folders = [request.folder, join(request.folder, '.locks'), join(request.folder, '.temporary')]
  for (const folder of folders) chmodSync(folder, 0o555)
  const asNobody = process.getuid!() === 0
  const [old, missing] = await workers.race([
    { ...request, asNobody },
    { ...request, version: versionOf('other'), asNobody },
  ])
  for (const folder of folders) chmodSync(folder, 0o755)
  expect(old).toEqual({ text: 'content', made: false })
  expect(missing).toEqual({
    error: `${request.folder}: the cache folder may not be written to`,
    hint: 'Set ONNX_TEST_CACHE_DIR to a folder that may be written to.',
  })
  expect(makes()).toBe(1)
})

test('processes that hash one large file at the same time agree', async () => {
  const { makes: _, ...request } = setting()
  mkdirSync(request.folder, { recursive: true })
  const file = join(request.folder, '..', 'weights')
  const bytes = Buffer.alloc(1 << 20, 7)
  writeFileSync(file, bytes)
  const answers = await workers.race(Array.from({ length: 3 }, () => ({ ...request, hash: file })))
  const text = createHash('sha256').update(bytes).digest('hex')
  expect(answers).toEqual(answers.map(() => ({ text, made: false })))
})
