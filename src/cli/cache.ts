/** `vitest-onnx cache ls|clear|prune|verify`: what is kept between runs. Exit codes: 0 fine, 1 damaged entries, 2 wrong usage. */
import { resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { cacheFolder } from '../cache/cache-folder.ts'
import { clearCache } from '../cache/clear.ts'
import { pruneCache, type FileSum } from '../cache/prune.ts'
import { cacheUsage, type KindUsage } from '../cache/usage.ts'
import { type VerifyResult, verifyCache } from '../cache/verify.ts'
import { bytesText, heading, note, print, printJson, safe, startProgress, table } from './output.ts'

interface CacheCommandOptions {
  readonly dir?: string
  readonly json?: true
}

export function cacheCommand(): Command {
  return new Command('cache')
    .summary('look at, empty and check what is kept between runs')
    .description(
      'What is kept between runs: reference results, activations, compiled models. All of it can be made again.',
    )
    .addCommand(action('ls', 'show what is kept, by kind').action(list))
    .addCommand(action('clear', 'remove all entries').action(clear))
    .addCommand(
      action('prune', 'remove what killed runs left, and the least recently used entries above a size')
        .option('--max-size <size>', 'what may stay: 500MB, 5GB, 2GiB (default: 10GiB)', sizeInBytes)
        .action(prune),
    )
    .addCommand(action('verify', 'read every entry, and remove the damaged ones').action(verify))
    .addHelpText(
      'after',
      '\nExample:\n  $ vitest-onnx cache prune --max-size 5GB\n\nExit codes: 0 fine, 1 damaged entries were found, 2 wrong usage.',
    )
}

function action(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .exitOverride()
    .option(
      '--dir <folder>',
      'the cache folder (default: ONNX_TEST_CACHE_DIR, or node_modules/.cache/vitest-onnx)',
    )
    .option('--json', 'print JSON')
}

function list(options: CacheCommandOptions): void {
  const folder = folderOf(options)
  const kinds = cacheUsage(folder)
  if (options.json) {
    printJson({
      folder,
      kinds: kinds.map(({ lastUsedMs, ...kind }) => ({
        ...kind,
        lastUsed: new Date(lastUsedMs).toISOString(),
      })),
    })
    return
  }
  print(`${heading(safe(folder))}\n${kinds.length === 0 ? '  nothing is kept' : usageTable(kinds)}`)
}

function usageTable(kinds: readonly KindUsage[]): string {
  const sum = (of: (kind: KindUsage) => number): number => kinds.reduce((total, kind) => total + of(kind), 0)
  return table([
    ['kind', 'entries', 'size', 'last used'],
    ...kinds.map(({ kind, entries, bytes, lastUsedMs }) => [
      kind,
      entries,
      bytesText(bytes),
      agoText(Date.now() - lastUsedMs),
    ]),
    ['all', sum(({ entries }) => entries), bytesText(sum(({ bytes }) => bytes))],
  ])
}

function clear(options: CacheCommandOptions): void {
  const folder = folderOf(options)
  const result = clearCache(folder)
  if (options.json) printJson({ folder, ...result })
  else print(`${heading(safe(folder))}\n${removedTable(result)}`)
}

function prune({ maxSize, ...options }: CacheCommandOptions & { readonly maxSize?: number }): void {
  const folder = folderOf(options)
  const result = pruneCache(folder, maxSize)
  if (options.json) printJson({ folder, ...result })
  else print(`${heading(safe(folder))}\n${removedTable(result)}`)
  if (result.kept.bytes > (maxSize ?? Infinity)) note('entries used in the last two minutes stay')
}

function removedTable(parts: object): string {
  return table(
    Object.entries(parts as Record<string, FileSum>).map(([name, { files, bytes }]) => [
      WORDS[name] ?? name,
      files,
      files === 1 ? 'file' : 'files',
      bytesText(bytes),
    ]),
  )
}

const WORDS: Readonly<Record<string, string>> = {
  entries: 'entries removed',
  leftovers: 'leftovers of killed runs removed',
  evicted: 'entries removed',
  kept: 'entries kept',
}

function verify(options: CacheCommandOptions): void {
  const folder = folderOf(options)
  const progress = startProgress('checking')
  const result = verifyCache(folder, (done, of) => progress.update(`${done} of ${of} entries`))
  progress.done()
  if (result.bad.length > 0) process.exitCode = 1
  if (options.json) printJson({ folder, ...result })
  else print(`${heading(safe(folder))}\n${verifyText(result)}`)
}

function verifyText({ entries, bytes, unchecked, bad }: VerifyResult): string {
  const rows = [
    ['entries read', entries, bytesText(bytes)],
    ...(unchecked === 0 ? [] : [['without a checksum', unchecked]]),
    ['damaged and removed', bad.length],
  ]
  const lines = bad.map(({ kind, version, problem }) => `  ${kind}/${version}: ${safe(problem)}`)
  return [table(rows), ...lines].join('\n')
}

function folderOf({ dir }: CacheCommandOptions): string {
  return dir === undefined ? cacheFolder() : resolve(dir)
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['kb', 1e3],
  ['mb', 1e6],
  ['gb', 1e9],
  ['tb', 1e12],
  ['kib', 1024],
  ['mib', 1024 ** 2],
  ['gib', 1024 ** 3],
  ['tib', 1024 ** 4],
])

function sizeInBytes(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text) ?? []
  const factor = UNITS.get(unit?.toLowerCase() ?? '?')
  if (factor !== undefined) return Math.floor(Number(number) * factor)
  throw new InvalidArgumentError('It must be a size such as 500MB, 5GB or 2GiB.')
}

/** How long ago, in the largest unit that fits. */
function agoText(ms: number): string {
  const units = [
    ['day', 86_400_000],
    ['hour', 3_600_000],
    ['minute', 60_000],
  ] as const
  for (const [name, size] of units) {
    const count = Math.floor(ms / size)
    if (count > 0) return `${count} ${name}${count === 1 ? '' : 's'} ago`
  }
  return 'just now'
}
