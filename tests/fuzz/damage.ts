/** Damage to a file as a list of edits, so that a failure shrinks to the few that matter. */
import * as fc from 'fast-check'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { type GraphIndex, indexModel } from '../../src/onnx/model-index.ts'

export interface Edit {
  readonly kind: 'set' | 'flip' | 'insert' | 'delete' | 'truncate' | 'repeat'
  /** Which of the places of interest, and how far behind it. */
  readonly place: number
  readonly distance: number
  readonly bytes: Uint8Array
}

/** Bytes that mean something on the wire: ends of varints, huge numbers, tags of every wire type. */
const meaningful = fc.constantFrom(
  ...[
    [0],
    [1],
    [0x7f],
    [0x80],
    [0xff],
    [0x0a],
    [0x0b],
    [0x0c],
    [0x0d],
    [0x09],
    [0x08],
    [0xff, 0xff, 0xff, 0xff, 0x0f],
    [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
  ].map((bytes) => Uint8Array.from(bytes)),
)

export const edits: fc.Arbitrary<Edit[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('flip', 'flip', 'flip', 'set', 'insert', 'delete', 'truncate', 'repeat'),
    place: fc.nat(1_000_000),
    distance: fc.oneof(fc.nat(12), fc.nat(200), fc.nat(1_000_000)),
    bytes: fc.oneof(meaningful, fc.uint8Array({ minLength: 1, maxLength: 12 })),
  }),
  { minLength: 1, maxLength: 3 },
)

export function damage(file: Uint8Array, places: readonly number[], list: readonly Edit[]): Uint8Array {
  let bytes = Uint8Array.from(file)
  for (const { kind, place, distance, bytes: new_ } of list) {
    if (bytes.length === 0) return bytes
    const at = (places[place % places.length]! + distance) % bytes.length
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)]
    switch (kind) {
      case 'set':
        bytes.set(new_.subarray(0, after.length), at)
        break
      case 'flip':
        bytes[at]! ^= 1 << (new_[0]! & 7)
        break
      case 'insert':
        bytes = joined(before, new_, after)
        break
      case 'delete':
        bytes = joined(before, after.subarray(new_.length))
        break
      case 'truncate':
        bytes = joined(before)
        break
      case 'repeat':
        bytes = joined(before, after.subarray(0, new_.length * 16), after)
    }
  }
  return bytes
}

function joined(...pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.concat(pieces))
}

/** Where messages begin, subgraphs included: damage in the middle of weights changes nothing. */
export function placesOf(file: Uint8Array): number[] {
  const model = indexModel(bytesSource(file))
  const places = [0, ...model.rest.map(({ start }) => start)]
  const visit = (graph: GraphIndex): void => {
    const { nodes, initializers, inputs, outputs, valueInfos, rest } = graph
    for (const { start } of [...nodes, ...initializers, ...inputs, ...outputs, ...valueInfos, ...rest]) {
      places.push(Math.max(0, start - 3))
    }
    for (const node of nodes) for (const { graph: body } of node.subgraphs) visit(body)
  }
  visit(model.graph)
  for (const entry of model.functions) places.push(entry.start, ...entry.nodes.map(({ start }) => start))
  return places
}
