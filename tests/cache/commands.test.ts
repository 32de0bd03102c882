/** `vitest-onnx cache …` and what stands behind it. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { cacheFolder } from '../../src/cache/cache-folder.ts'
import { openCache, versionOf } from '../../src/cache/store.ts'
import { cacheCommand } from '../../src/cli/cache.ts'
import { safetensorsBytes } from '../../src/tensor/safetensors.ts'
import { tensor } from '../../src/tensor/tensor.ts'
import { tempFolder } from './temp-folder.ts'

beforeEach(() => {
  onTestFinished(() => {
    process.exitCode = undefined
  })
})

/** Runs the command as `main.ts` does and returns what it prints. */
async function cache(...args: string[]): Promise<string> {
  let text = ''
  const print = (chunk: string | Uint8Array): boolean => {
    text += String(chunk)
    return true
  }
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation(print),
  )
  const program = new Command('vitest-onnx').exitOverride()
  program.addCommand(cacheCommand().copyInheritedSettings(program))
  try {
    await program.parseAsync(['cache', ...args], { from: 'user' })
    return text
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  return JSON.parse(await cache(...args, '--json')) as Record<string, unknown>
}

/** Three entries: two texts of 100 bytes and a safetensors file. */
async function filled(folder: string): Promise<string[]> {
  const opened = openCache({ folder })
  const bytes = safetensorsBytes([['x', tensor('float32', [2], new Float32Array([1, 2]))]])
  const contents = { 'results/a': 'a'.repeat(100), 'results/b': 'b'.repeat(100), 'activations/c': bytes }
  const paths: string[] = []
  for (const [name, content] of Object.entries(contents)) {
    const key = { kind: name.split('/')[0]!, version: versionOf(name) }
    paths.push((await opened.file(key, async (path) => writeFileSync(path, content))).path)
  }
  return paths
}

test('ls shows entries, size and last use by kind', async () => {
  const folder = tempFolder()
  const [a, b, c] = await filled(folder)
  for (const path of [a!, b!, c!]) utimesSync(path, 1e9, 1e9)
  expect(await json('ls', '--dir', folder)).toEqual({
    folder,
    kinds: [
      { kind: 'activations', entries: 1, bytes: expect.any(Number), lastUsed: '2001-09-09T01:46:40.000Z' },
      { kind: 'results', entries: 2, bytes: 200, lastUsed: '2001-09-09T01:46:40.000Z' },
    ],
  })
  const text = await cache('ls', '--dir', folder)
  expect(text).toMatch(/kind +entries +size +last used/)
  expect(text).toMatch(/results +2 +200 B +\d+ days ago/)
  expect(text).toMatch(/all +3 /)
})

test.for(['ls', 'clear', 'prune', 'verify'])('%s of a cache that is not there yet is fine', async (name) => {
  const folder = join(tempFolder(), 'none')
  await cache(name, '--dir', folder)
  expect(existsSync(folder)).toBe(false)
  expect(process.exitCode).toBeUndefined()
})

test.for(['ls', 'clear', 'prune', 'verify'])('%s refuses a folder that is no cache', async (name) => {
  const folder = tempFolder()
  const [a] = await filled(folder)
  writeFileSync(
    join(folder, 'CACHEDIR.TAG'),
    'Signature: 8a477f597d28d172789f06886806bc55\n# of another tool\n',
  )
  await expect(cache(name, '--dir', folder)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  expect(existsSync(a!)).toBe(true)
})

test('clear removes entries and nothing else, and follows no link', async () => {
  const [folder, outside] = [tempFolder(), tempFolder()]
  const [a] = await filled(folder)
  const version = versionOf('foreign')
  mkdirSync(join(outside, 'ab'))
  writeFileSync(join(outside, 'ab', version), 'precious')
  symlinkSync(outside, join(folder, 'linked'))
  symlinkSync(join(outside, 'ab'), join(folder, 'results', 'zz'))
  const link = join(a!, '..', version)
  symlinkSync(join(outside, 'ab', version), link)
  writeFileSync(join(folder, 'notes.txt'), 'mine')

  expect(await json('clear', '--dir', folder)).toMatchObject({
    entries: { files: 3 },
    leftovers: { files: 0 },
  })
  expect(readFileSync(join(outside, 'ab', version), 'utf8')).toBe('precious')
  expect(existsSync(link)).toBe(true)
  expect(readdirSync(folder).toSorted()).toEqual(
    [
      '.checksums',
      '.hashes',
      '.locks',
      '.temporary',
      'CACHEDIR.TAG',
      'linked',
      'notes.txt',
      'results',
    ].toSorted(),
  )
  expect(await cache('clear', '--dir', folder)).toMatch(/entries removed +0 +files/)
  expect(await filled(folder)).toHaveLength(3)
})

test('prune sweeps half-written files once they are a day old, and no others', async () => {
  const folder = tempFolder()
  await filled(folder)
  const name = '.01234567-89ab-cdef-0123-456789abcdef.tmp'
  const day = Date.now() / 1000 - 90_000
  for (const place of ['', '.temporary', '.hashes']) {
    writeFileSync(join(folder, place, name), 'half')
    utimesSync(join(folder, place, name), day, day)
    writeFileSync(join(folder, place, name.replace('0', 'f')), 'in work')
  }
  writeFileSync(join(folder, 'notes.tmp'), 'mine')
  utimesSync(join(folder, 'notes.tmp'), day, day)
  expect(await json('prune', '--dir', folder)).toMatchObject({ leftovers: { files: 3, bytes: 12 } })
  expect(existsSync(join(folder, 'notes.tmp'))).toBe(true)
})

test('prune removes least recently used entries above the size and forgets their checksums', async () => {
  const folder = tempFolder()
  const [a, b, c] = await filled(folder)
  for (const [path, at] of [
    [b!, 1000],
    [a!, 2000],
    [c!, 3000],
  ] as const)
    utimesSync(path, at, at)
  const result = await json('prune', '--dir', folder, '--max-size', '0.2KB')
  expect(result).toMatchObject({ evicted: { files: 1, bytes: 100 }, kept: { files: 2 } })
  expect([a, b, c].map((path) => existsSync(path!))).toEqual([true, false, true])
  expect(readFileSync(join(folder, '.checksums'), 'utf8').trim().split('\n')).toHaveLength(2)
  expect(await json('verify', '--dir', folder)).toMatchObject({ entries: 2, unchecked: 0, bad: [] })
})

test('prune keeps entries in use, and says so', async () => {
  const folder = tempFolder()
  const paths = await filled(folder)
  expect(await cache('prune', '--dir', folder, '--max-size', '1')).toContain(
    'entries used in the last two minutes stay',
  )
  expect(paths.every((path) => existsSync(path))).toBe(true)
})

test.for(['5', '5b', '1.5 MiB', '2TB'])('prune understands the size %s', async (size) => {
  await cache('prune', '--dir', tempFolder(), '--max-size', size)
})

test.for([
  ['prune', '--max-size', 'much'],
  ['prune', '--max-size', '5constructor'],
  ['ls', '--unknown'],
  ['nonsense'],
])('wrong usage is an error of the command line: %s', async (args) => {
  await expect(cache(...args)).rejects.toMatchObject({ name: 'CommanderError', exitCode: 1 })
})

test('verify finds every kind of damage, removes it, and says so by its exit code', async () => {
  const folder = tempFolder()
  const [a, b, c] = await filled(folder)
  expect(await json('verify', '--dir', folder)).toMatchObject({ entries: 3, unchecked: 0, bad: [] })
  expect(process.exitCode).toBeUndefined()

  truncateSync(a!, 50)
  writeFileSync(b!, 'B'.repeat(100))
  const text = await cache('verify', '--dir', folder)
  expect(text).toContain(`results/${versionOf('results/a')}: it has 50 bytes, not 100`)
  expect(text).toContain(`results/${versionOf('results/b')}: its bytes are not those that were written`)
  expect(text).toMatch(/damaged and removed +2\n/)
  expect(process.exitCode).toBe(1)
  expect([a, b, c].map((path) => existsSync(path!))).toEqual([false, false, true])
})

test('without checksums verify still opens safetensors, and keeps what shows no damage', async () => {
  const folder = tempFolder()
  const [a, , c] = await filled(folder)
  writeFileSync(join(folder, '.checksums'), 'results.0123 cut by a ki')
  truncateSync(c!, readFileSync(c!).length - 1)
  expect(await json('verify', '--dir', folder)).toMatchObject({
    entries: 3,
    unchecked: 2,
    bad: [{ kind: 'activations', problem: expect.stringContaining('should lie at bytes') }],
  })
  expect(existsSync(a!)).toBe(true)
})

test('an entry that was made twice with different bytes is good with either', async () => {
  const folder = tempFolder()
  const [a] = await filled(folder)
  const key = { kind: 'results', version: versionOf('results/a') }
  await openCache({ folder, recompute: true }).file(key, async (path) => writeFileSync(path, 'other'))
  expect(await json('verify', '--dir', folder)).toMatchObject({ bad: [] })
  writeFileSync(a!, 'a'.repeat(100))
  expect(await json('verify', '--dir', folder)).toMatchObject({ bad: [] })
})

test('the folder is what the environment names, or that of the nearest package', () => {
  const root = tempFolder()
  mkdirSync(join(root, 'a/b'), { recursive: true })
  writeFileSync(join(root, 'package.json'), '{}')
  expect(cacheFolder(join(root, 'a/b'), '')).toBe(join(root, 'node_modules/.cache/vitest-onnx'))
  expect(cacheFolder(join(root, 'a/b'), 'mine')).toBe(join(root, 'a/b/mine'))
  expect(cacheFolder(root, '/elsewhere')).toBe('/elsewhere')
})
