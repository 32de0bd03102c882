/** Messages by hand, for what no encoder would write. Independent of the project's own writer. */
import protobuf from 'protobufjs/minimal.js'

export const [VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32] = [0, 1, 2, 3, 4, 5] as const

export function bytesField(number: number, ...payload: (Uint8Array | string)[]): Uint8Array {
  const bytes = Buffer.concat(payload.map((piece) => Buffer.from(piece)))
  return protobuf.Writer.create().uint32(tag(number, BYTES)).bytes(bytes).finish()
}

/** `innermost` in field after field, outwards by the list of numbers, that list so many times over. */
export function nested(innermost: Uint8Array, numbers: readonly number[], times: number): Uint8Array {
  const heads: Uint8Array[] = []
  let size = innermost.length
  for (let at = 0; at < numbers.length * times; at++) {
    const head = protobuf.Writer.create()
      .uint32(tag(numbers[at % numbers.length]!, BYTES))
      .uint32(size)
      .finish()
    heads.push(head)
    size += head.length
  }
  return Buffer.concat([...heads.toReversed(), innermost])
}

export function varintField(number: number, value: number): Uint8Array {
  return protobuf.Writer.create().uint32(tag(number, VARINT)).int64(value).finish()
}

/** A field of the given wire type with some payload. */
export function fieldOfType(number: number, wireType: number): Uint8Array {
  const writer = protobuf.Writer.create().uint32(tag(number, wireType))
  switch (wireType) {
    case VARINT:
      return writer.uint32(3).finish()
    case FIXED64:
      return writer.fixed64(3).finish()
    case FIXED32:
      return writer.fixed32(3).finish()
    case GROUP:
      return writer.uint32(tag(1, VARINT)).uint32(3).uint32(tag(number, END_GROUP)).finish()
    default:
      // As a message, one number that no message here looks at; as a text, two letters.
      return writer.bytes(Uint8Array.of(0x70, 3)).finish()
  }
}

function tag(number: number, wireType: number): number {
  return ((number << 3) | wireType) >>> 0
}
