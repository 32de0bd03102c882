/**
 * A file as a byte source: opened once, read by position.
 *
 * Small files are read at once and closed; of large ones only what is asked for is read.
 * Anything that is not a plain file is refused before it can block.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { allocate, type ByteSource, bytesSource, checkRange } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'

export interface FileSource extends ByteSource {
  close(): void
}

/** Up to this size one read is cheaper than many. */
const WHOLE_FILE_BYTES = 8 * 1024 * 1024

export function openFile(path: string): FileSource {
  const file = openPlainFile(path)
  if (file.size > WHOLE_FILE_BYTES) return largeFile(path, file)
  try {
    const bytes = readAt(path, file.descriptor, 0, file.size)
    return { ...bytesSource(bytes, path), close() {} }
  } finally {
    closeSync(file.descriptor)
  }
}

interface OpenFile {
  readonly descriptor: number
  readonly size: number
}

function largeFile(path: string, { descriptor, size }: OpenFile): FileSource {
  let isOpen = true
  return {
    name: path,
    size,
    read(offset, length) {
      // The number of a closed descriptor soon belongs to another file.
      if (!isOpen) throw unreadable(path, new Error('it is closed already'))
      checkRange({ name: path, size }, offset, length)
      return readAt(path, descriptor, offset, length)
    },
    close() {
      if (isOpen) closeSync(descriptor)
      isOpen = false
    },
  }
}

function openPlainFile(path: string): OpenFile {
  let descriptor: number
  try {
    // Without O_NONBLOCK, opening a named pipe waits for a writer.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (cause) {
    throw unreadable(path, cause)
  }
  const stat = fstatSync(descriptor)
  if (stat.isFile()) return { descriptor, size: stat.size }
  closeSync(descriptor)
  throw new ModelTestError(
    'FILE_UNREADABLE',
    stat.isDirectory() ? 'this is a folder' : 'this is not a plain file',
    {
      file: path,
      offset: 0,
      hint: 'Name a file; to see which models a folder holds, list its *.onnx files.',
    },
  )
}

function readAt(path: string, descriptor: number, offset: number, length: number): Uint8Array {
  const bytes = allocate(length, path)
  let done = 0
  while (done < length) {
    const count = readSomeAt(path, descriptor, bytes, done, offset)
    if (count === 0) {
      throw new ModelTestError('FILE_UNREADABLE', 'the file became shorter while it was read', {
        file: path,
        offset: offset + done,
        hint: 'Another program is writing it; try again when that is done.',
      })
    }
    done += count
  }
  return bytes
}

/** One read call returns at most 2 GiB. */
const MAX_READ = 1024 * 1024 * 1024

function readSomeAt(
  path: string,
  descriptor: number,
  bytes: Uint8Array,
  done: number,
  offset: number,
): number {
  try {
    return readSync(descriptor, bytes, done, Math.min(MAX_READ, bytes.length - done), offset + done)
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

const REASONS: Readonly<Record<string, readonly [fact: string, hint: string]>> = {
  ENOENT: [
    'there is no such file',
    'Check the path: in a sidecar it goes from the folder of the sidecar, in a command from the current one.',
  ],
  ENOTDIR: ['there is no such file', 'Part of the path is a file, not a folder.'],
  EACCES: ['no permission to read the file', 'Change its permissions, or run as a user who may read it.'],
  EPERM: ['no permission to read the file', 'Change its permissions, or run as a user who may read it.'],
  ELOOP: ['the symbolic links lead in a circle', 'Point the link at the file itself.'],
  EMFILE: ['too many files are open', 'Raise the limit (ulimit -n), or close models after use.'],
  ENAMETOOLONG: ['the name is too long', 'Use a shorter path.'],
  ENXIO: ['this is not a plain file', 'Name a file.'],
}

function unreadable(path: string, cause: unknown): ModelTestError {
  const code = (cause as NodeJS.ErrnoException).code ?? ''
  const [fact, hint] = REASONS[code] ?? [
    `the file cannot be read (${(cause as Error).message})`,
    'Check the disk and the path.',
  ]
  return new ModelTestError('FILE_UNREADABLE', fact, { file: path, offset: 0, hint, cause })
}
