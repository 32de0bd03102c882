/**
 * .npz files: a byte source -> named tensors, as numpy's savez and savez_compressed write them.
 *
 * Opening reads the directory at the end of the zip; an array is read when it is asked for, and
 * checked against its CRC. Stored and deflated members, with or without zip64 records.
 */
import { crc32, inflateRawSync } from 'node:zlib'
import { type ByteSource, bytesSource } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'
import { readNpy } from './npy.ts'
import type { Tensor } from './tensor.ts'

export interface NpzFile {
  readonly source: ByteSource
  /** By array name, without `.npy`, in the order of the directory. */
  readonly members: ReadonlyMap<string, NpzMember>
}

export interface NpzMember {
  readonly method: number
  readonly crc: number
  readonly packedSize: number
  readonly size: number
  /** Where its local header begins. */
  readonly start: number
}

const STORED = 0
const DEFLATED = 8
/** deflate cannot make data smaller than this many times, so a larger claim is a lie. */
const MAX_DEFLATE_RATIO = 1032
const END_BYTES = 22
const MAX_COMMENT_BYTES = 0xffff
const ENCRYPTED = 1

/** Reads the directory. */
export function openNpz(source: ByteSource): NpzFile {
  const { start, size, count } = findDirectory(source)
  const directory = read(source, start, size)
  const members = new Map<string, NpzMember>()
  let at = 0
  for (let i = 0; i < count; i++) {
    const { name, member, next } = directoryEntry(source, directory, at)
    members.set(name.replace(/\.npy$/, ''), member)
    at = next
  }
  return { source, members }
}

/** Reads one array. */
export function readNpzTensor(file: NpzFile, name: string): Tensor {
  const member = file.members.get(name)
  if (!member) {
    throw new ModelTestError('INVALID_OPTION', `there is no array "${name}"`, {
      file: file.source.name,
      hint: `It has: ${[...file.members.keys()].join(', ')}.`,
    })
  }
  return readNpy(bytesSource(memberBytes(file.source, member), `${file.source.name}/${name}.npy`))
}

function memberBytes(source: ByteSource, member: NpzMember): Uint8Array {
  const local = read(source, member.start, 30)
  if (local.readUInt32LE(0) !== 0x04034b50) throw malformed(source, 'a member has no header', member.start)
  const dataStart = member.start + 30 + local.readUInt16LE(26) + local.readUInt16LE(28)
  const bytes = unpacked(source, member, read(source, dataStart, member.packedSize))
  if (bytes.length !== member.size || crc32(bytes) !== member.crc) {
    throw malformed(source, 'a member does not match its checksum', member.start)
  }
  return bytes
}

function unpacked(source: ByteSource, member: NpzMember, packed: Buffer): Uint8Array {
  if (member.method === STORED) return packed
  if (member.method !== DEFLATED) throw malformed(source, `compression method ${member.method}`, member.start)
  if (member.size > (packed.length + 1) * MAX_DEFLATE_RATIO) {
    throw malformed(source, `${packed.length} bytes cannot unpack to ${member.size}`, member.start)
  }
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(member.size, 1) })
  } catch (cause) {
    throw malformed(source, 'a member cannot be unpacked', member.start, cause)
  }
}

interface Directory {
  readonly start: number
  readonly size: number
  readonly count: number
}

function findDirectory(source: ByteSource): Directory {
  const tailStart = Math.max(0, source.size - END_BYTES - MAX_COMMENT_BYTES)
  const tail = read(source, tailStart, source.size - tailStart)
  const end = tail.lastIndexOf(Buffer.from('PK\x05\x06'))
  if (end === -1 || end + END_BYTES > tail.length) throw malformed(source, 'the file has no zip directory')
  const directory = {
    count: tail.readUInt16LE(end + 10),
    size: tail.readUInt32LE(end + 12),
    start: tail.readUInt32LE(end + 16),
  }
  const overflown = directory.count === 0xffff || directory.start === 0xffff_ffff
  return overflown ? findLargeDirectory(source, tailStart + end) : directory
}

/** zip64: a locator before the end record points to a record with 64-bit numbers. */
function findLargeDirectory(source: ByteSource, end: number): Directory {
  const locator = read(source, end - 20, 20)
  if (locator.readUInt32LE(0) !== 0x07064b50) throw malformed(source, 'the zip64 directory is missing', end)
  const record = read(source, Number(locator.readBigUInt64LE(8)), 56)
  if (record.readUInt32LE(0) !== 0x06064b50) throw malformed(source, 'the zip64 directory is damaged', end)
  return {
    count: Number(record.readBigUInt64LE(32)),
    size: Number(record.readBigUInt64LE(40)),
    start: Number(record.readBigUInt64LE(48)),
  }
}

function directoryEntry(
  source: ByteSource,
  directory: Buffer,
  at: number,
): { name: string; member: NpzMember; next: number } {
  if (at + 46 > directory.length || directory.readUInt32LE(at) !== 0x02014b50) {
    throw malformed(source, 'the zip directory is cut short')
  }
  if (directory.readUInt16LE(at + 8) & ENCRYPTED) throw malformed(source, 'a member is encrypted')
  const extraStart = at + 46 + directory.readUInt16LE(at + 28)
  const extraStop = extraStart + directory.readUInt16LE(at + 30)
  const next = extraStop + directory.readUInt16LE(at + 32)
  if (next > directory.length) throw malformed(source, 'the zip directory is cut short')
  const [size, packedSize, start] = withLargeNumbers(
    [directory.readUInt32LE(at + 24), directory.readUInt32LE(at + 20), directory.readUInt32LE(at + 42)],
    directory.subarray(extraStart, extraStop),
  )
  const method = directory.readUInt16LE(at + 10)
  const member = { method, crc: directory.readUInt32LE(at + 16), packedSize, size, start }
  return { name: directory.toString('utf8', at + 46, extraStart), member, next }
}

type Numbers = [size: number, packedSize: number, start: number]

/** zip64: numbers that read 2^32 - 1 are in the extra field of kind 1 instead, in this order. */
function withLargeNumbers(numbers: Numbers, extra: Buffer): Numbers {
  let large = extraField(extra, 1)
  return numbers.map((value) => {
    if (value !== 0xffff_ffff || large.length < 8) return value
    const found = Number(large.readBigUInt64LE(0))
    large = large.subarray(8)
    return found
  }) as Numbers
}

function extraField(extra: Buffer, kind: number): Buffer {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) === kind) return extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2))
  }
  return Buffer.alloc(0)
}

function read(source: ByteSource, offset: number, length: number): Buffer {
  const bytes = source.read(offset, length)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

function malformed(source: ByteSource, message: string, offset = 0, cause?: unknown): ModelTestError {
  return new ModelTestError('MALFORMED_TENSOR', message, {
    file: source.name,
    offset,
    hint: 'The file is cut short or damaged, or is no .npz file; save it again.',
    cause,
  })
}
