/**
 * Where things lie in a cache folder, and how to tell that a folder is one.
 *
 *     CACHEDIR.TAG              says that this is a cache: backups skip it, `cache clear` demands it
 *     <kind>/<2 hex>/<version>  the entries: whole, immutable files
 *     .checksums                what every entry's bytes add up to, one line per entry made
 *     .notes                    keys of which it is enough to know that they are there (notes.ts)
 *     .locks/                   who makes which entry now
 *     .temporary/               entries that are not whole yet
 *     .hashes/                  content hashes of large files (content-hash.ts)
 *
 * A kind never starts with a dot, so entries and the rest cannot meet. Whoever removes anything
 * removes only names that follow this scheme, and never follows a symbolic link.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ModelTestError } from '../errors.ts'
import { makeFolder } from '../files/make-folder.ts'
import { writeFileAtomic } from '../files/write-file.ts'

export interface CacheKey {
  /** What it is: 'activations', 'results', 'compiled'; lower-case letters and dashes. */
  readonly kind: string
  /** The digest that `versionOf` gives for everything the entry is made from. */
  readonly version: string
}

export const KIND_PATTERN: RegExp = /^[a-z][a-z-]{0,63}$/
export const VERSION_PATTERN: RegExp = /^[0-9a-f]{64}$/
export const SHARD_PATTERN: RegExp = /^[0-9a-f]{2}$/

export function entryPath(folder: string, { kind, version }: CacheKey): string {
  if (!KIND_PATTERN.test(kind) || !VERSION_PATTERN.test(version)) throw unsafeKey(kind, version)
  return join(folder, kind, version.slice(0, 2), version)
}

/** The name that the entry has where all kinds share a folder or a file. */
export function entryName({ kind, version }: CacheKey): string {
  return `${kind}.${version}`
}

export function checksumsPath(folder: string): string {
  return join(folder, '.checksums')
}

export function notesPath(folder: string): string {
  return join(folder, '.notes')
}

export function locksFolder(folder: string): string {
  return join(folder, '.locks')
}

export function temporaryFolder(folder: string): string {
  return join(folder, '.temporary')
}

export function hashesFolder(folder: string): string {
  return join(folder, '.hashes')
}

/** The first line is fixed by https://bford.info/cachedir/, so that backup tools skip the folder. */
const TAG = `Signature: 8a477f597d28d172789f06886806bc55
# A cache of vitest-onnx. It may be removed at any time: vitest-onnx cache clear
`
const TAG_NAME = 'CACHEDIR.TAG'

/** Makes the folder a cache, unless it is one. */
export function layOut(folder: string): void {
  if (!hasTag(folder)) writeFileAtomic(join(folder, TAG_NAME), TAG)
  for (const part of [locksFolder, temporaryFolder, hashesFolder]) makeFolder(part(folder))
}

/** Whether there is a cache; throws where there is something else, so that nothing else is ever removed. */
export function isCache(folder: string): boolean {
  if (hasTag(folder)) return true
  if (namesIn(folder).length === 0) return false
  throw new ModelTestError('INVALID_OPTION', `this is no cache of vitest-onnx: it has no ${TAG_NAME} of it`, {
    file: folder,
    hint: 'Name the cache folder with --dir or ONNX_TEST_CACHE_DIR.',
  })
}

function hasTag(folder: string): boolean {
  try {
    return readFileSync(join(folder, TAG_NAME), 'utf8') === TAG
  } catch {
    return false
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw new ModelTestError(
      'FILE_UNREADABLE',
      `the cache folder cannot be read (${(cause as Error).message})`,
      {
        file: folder,
        hint: 'Name a folder that you may read with --dir or ONNX_TEST_CACHE_DIR.',
        cause,
      },
    )
  }
}

function unsafeKey(kind: string, version: string): ModelTestError {
  return new ModelTestError(
    'INVALID_OPTION',
    `${JSON.stringify(kind)} / ${JSON.stringify(version)} is no key of the cache`,
    {
      hint: 'A kind has lower-case letters and dashes; a version is what versionOf returns.',
    },
  )
}
