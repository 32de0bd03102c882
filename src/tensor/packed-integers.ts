/**
 * Elements smaller than a byte: 4 or 2 bits each, the first in the low bits, as ONNX packs them.
 *
 * Packing keeps the low bits of each value; unpacking gives them back unsigned or, for signed
 * types, with the sign spread. Unused bits of the last byte are written as zero and ignored.
 */

export type SubByteBits = 2 | 4

export function packBits(values: ArrayLike<number>, bits: SubByteBits): Uint8Array {
  const perByte = 8 / bits
  const mask = (1 << bits) - 1
  const packed = new Uint8Array(Math.ceil(values.length / perByte))
  for (let i = 0; i < values.length; i++) {
    packed[(i / perByte) | 0]! |= (values[i]! & mask) << ((i % perByte) * bits)
  }
  return packed
}

export function unpackBits(packed: Uint8Array, bits: SubByteBits, signed: boolean, count: number): Int8Array {
  const perByte = 8 / bits
  const values = new Int8Array(count)
  const unused = 32 - bits
  for (let i = 0; i < count; i++) {
    const raised = (packed[(i / perByte) | 0]! >> ((i % perByte) * bits)) << unused
    values[i] = signed ? raised >> unused : raised >>> unused
  }
  return values
}
