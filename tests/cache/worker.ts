/**
 * A process that uses caches as it is told, for tests with several of them.
 *
 * It answers every request it is sent. Every time it makes an entry it adds a line to `log` and
 * sends 'making' when half of the entry is written.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { contentHash } from '../../src/cache/content-hash.ts'
import { openCache } from '../../src/cache/store.ts'

export interface Request {
  readonly folder: string
  readonly version: string
  readonly log: string
  readonly content?: string
  readonly makeMs?: number
  readonly recompute?: boolean
  /** Fails instead of finishing the entry. */
  readonly fails?: boolean
  /** Uses the entry so many times. */
  readonly times?: number
  /** Uses all these instead of one, in this order. */
  readonly versions?: readonly string[]
  /** Takes the content hash of this file instead. */
  readonly hash?: string
  /** Gives up the rights of root, which no read-only folder stops. */
  readonly asNobody?: boolean
}

export type Answer =
  | { readonly text: string; readonly made: boolean }
  | { readonly error: string; readonly hint: string }

process.on('message', (request: Request) => {
  if (request.asNobody) process.seteuid!('nobody')
  answer(request)
    .catch((error: Error & { hint?: string }) => ({ error: error.message, hint: error.hint ?? '' }))
    .then((result) => {
      if (request.asNobody) process.seteuid!('root')
      process.send!(result)
    })
})
process.on('disconnect', () => process.exit())
process.send!('ready')

async function answer(request: Request): Promise<Answer> {
  const {
    folder,
    recompute = false,
    times = 1,
    hash,
    versions = Array(times).fill(request.version),
  } = request
  if (hash !== undefined) return { text: contentHash(hash, folder), made: false }
  const cache = openCache({ folder, recompute })
  let [made, path] = [false, '']
  for (const version of versions as string[]) {
    const hit = await cache.file({ kind: 'results', version }, (temporary) => make(request, temporary))
    made ||= hit.made
    path = hit.path
  }
  return { text: readFileSync(path, 'utf8'), made }
}

async function make(
  { content = 'content', makeMs = 0, log, fails }: Request,
  temporary: string,
): Promise<void> {
  appendFileSync(log, `${process.pid}\n`)
  writeFileSync(temporary, content.slice(0, content.length / 2))
  process.send!('making')
  await sleep(makeMs)
  if (fails) throw new Error('the maker failed')
  writeFileSync(temporary, content)
}
