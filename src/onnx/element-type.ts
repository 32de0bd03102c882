/**
 * Types that hold others: sequences, optionals and maps, made from their element's type and back.
 *
 * Where the element is not known, only the kind is: the type then has no bytes.
 */
import { bytesSource } from '../bytes/byte-source.ts'
import { BYTES, WireReader } from '../bytes/wire-reader.ts'
import { MessageWriter } from '../bytes/wire-writer.ts'
import { ELEMENT, TYPE } from './fields.ts'
import { type OpaqueType, readType, typeMessage, type ValueType } from './value-type.ts'

export function sequenceOf(element: ValueType | undefined): OpaqueType {
  return holderOf('sequence', element)
}

export function optionalOf(element: ValueType | undefined): OpaqueType {
  return holderOf('optional', element)
}

export function mapOf(keyDataType: number, value: ValueType): OpaqueType {
  const map = new MessageWriter()
    .varintField(ELEMENT.mapKey, keyDataType)
    .messageField(ELEMENT.map, typeMessage(value))
  return { kind: 'map', encoded: new MessageWriter().messageField(TYPE.map, map).toBytes() }
}

function holderOf(kind: 'sequence' | 'optional', element: ValueType | undefined): OpaqueType {
  if (element === undefined || !isWhole(element)) return { kind, encoded: NO_BYTES }
  const holder = new MessageWriter().messageField(ELEMENT[kind], typeMessage(element))
  return { kind, encoded: new MessageWriter().messageField(TYPE[kind], holder).toBytes() }
}

function isWhole(type: ValueType): boolean {
  return type.kind === 'tensor' || type.encoded.length > 0
}

const NO_BYTES = new Uint8Array(0)

/** What a sequence or an optional holds, or the values of a map; undefined where that is not known. */
export function elementOf({ kind, encoded }: OpaqueType): ValueType | undefined {
  if (kind !== 'sequence' && kind !== 'optional' && kind !== 'map') return undefined
  const reader = new WireReader(bytesSource(encoded))
  const holder = lastMessage(reader, TYPE[kind], 0, encoded.length)
  const element = holder && lastMessage(reader, ELEMENT[kind], holder.start, holder.stop)
  return element && readType(reader, element.start, element.stop)
}

function lastMessage(
  reader: WireReader,
  field: number,
  start: number,
  stop: number,
): { readonly start: number; readonly stop: number } | undefined {
  let found: { start: number; stop: number } | undefined
  reader.seek(start)
  while (reader.next(stop)) {
    if (reader.field === field && reader.wireType === BYTES)
      found = { start: reader.start, stop: reader.stop }
  }
  return found
}
