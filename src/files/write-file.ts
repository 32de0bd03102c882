/**
 * Files that are there whole or not at all: written beside their place, then renamed into it.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ModelTestError } from '../errors.ts'
import { makeFolder } from './make-folder.ts'

export function writeFileAtomic(path: string, chunks: Iterable<Uint8Array> | string): void {
  // A name of its own: the file's name may be as long as the disk allows, and others may write it too.
  const temporary = join(dirname(path), `.${randomUUID()}.tmp`)
  try {
    writeChunks(openNew(temporary), typeof chunks === 'string' ? [Buffer.from(chunks)] : chunks)
    renameSync(temporary, path)
  } catch (cause) {
    removeQuietly(temporary)
    if (cause instanceof ModelTestError) throw cause
    throw new ModelTestError('FILE_UNWRITABLE', `the file cannot be written (${(cause as Error).message})`, {
      file: path,
      hint: 'Check that the folder may be written to and that the disk has room, or choose another folder.',
      cause,
    })
  }
}

/** What went wrong first is what counts; where the folder is missing there is nothing to remove. */
function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {}
}

/** One write call takes less than 2 GiB. */
const MAX_WRITE = 1024 * 1024 * 1024

/** The folder is there nearly always. */
function openNew(path: string): number {
  try {
    return openSync(path, 'wx')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    makeFolder(dirname(path))
    return openSync(path, 'wx')
  }
}

function writeChunks(descriptor: number, chunks: Iterable<Uint8Array>): void {
  try {
    for (const chunk of gather(chunks)) {
      for (let done = 0; done < chunk.length;) {
        done += writeSync(descriptor, chunk, done, Math.min(MAX_WRITE, chunk.length - done))
      }
    }
  } finally {
    closeSync(descriptor)
  }
}

/** Many small pieces become few writes. */
const GATHER_BYTES = 256 * 1024

function* gather(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  let [pending, size] = [[] as Uint8Array[], 0]
  for (const chunk of chunks) {
    pending.push(chunk)
    size += chunk.length
    if (size < GATHER_BYTES) continue
    yield pending.length === 1 ? chunk : Buffer.concat(pending)
    ;[pending, size] = [[], 0]
  }
  if (size > 0) yield Buffer.concat(pending)
}
