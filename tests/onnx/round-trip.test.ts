import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { extractPart } from '../../src/graph/part.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { splitGraph } from '../../src/graph/split.ts'
import { graphAsModel } from '../../src/graph/whole.ts'
import { indexModel } from '../../src/onnx/model-index.ts'
import { BYTES, bytesField, FIXED32, FIXED64, fieldOfType, GROUP, VARINT, varintField } from './wire.ts'

/** Numbers that no message of onnx.proto uses. */
const UNKNOWN = 777

const WIRE_TYPES = { varint: VARINT, fixed64: FIXED64, bytes: BYTES, group: GROUP, fixed32: FIXED32 }

/** A field that onnx.proto does not know, recognisable by its number. */
const strange = (level: number, wireType: number): Buffer =>
  Buffer.from(fieldOfType(UNKNOWN + level, wireType))

const LEVELS = [
  'model',
  'node',
  'attribute',
  'attribute tensor',
  'subgraph',
  'subgraph node',
  'initializer',
] as const

/** A model with a strange field at every level, a node that is renamed, and one that is not. */
function strangeModel(wireType: number): Uint8Array {
  const at = (level: (typeof LEVELS)[number]): Uint8Array => strange(LEVELS.indexOf(level), wireType)
  const tensor = [varintField(1, 1), varintField(2, 7), varintField(7, 5)]
  const innerNode = bytesField(
    1,
    bytesField(1, 'x'),
    bytesField(2, 'z'),
    bytesField(4, 'Relu'),
    at('subgraph node'),
  )
  const branch = bytesField(6, innerNode, bytesField(12, bytesField(1, 'z')), at('subgraph'))
  const node = (output: string): Uint8Array =>
    bytesField(
      1,
      bytesField(1, 'w'),
      bytesField(2, output),
      bytesField(4, 'If'),
      bytesField(5, bytesField(1, 'then_branch'), branch, at('attribute')),
      bytesField(5, bytesField(1, 'value'), bytesField(5, ...tensor, at('attribute tensor'))),
      at('node'),
    )
  return Buffer.concat([
    varintField(1, 8),
    bytesField(8, varintField(2, 17)),
    at('model'),
    bytesField(
      7,
      node('y'),
      bytesField(5, ...tensor, bytesField(8, 'w'), at('initializer')),
      bytesField(11, bytesField(1, 'x')),
      bytesField(12, bytesField(1, 'y')),
      // The second node of the same name gets another one, so that it is written anew.
      node('y'),
    ),
  ])
}

describe.each(Object.entries(WIRE_TYPES))('unknown fields of wire type %s', (_, wireType) => {
  const graph = resolveModel(indexModel(bytesSource(strangeModel(wireType))))
  const policy = { kind: 'inline', external: () => bytesSource(new Uint8Array(0)) } as const
  const parts = splitGraph(graph, { stem: 'm', typeOf: () => undefined }).filter(({ scope }) => scope === '')

  test('the first node keeps its name and the second does not', () => {
    expect(parts.map(({ outputs }) => outputs[0]!.name)).toEqual(['y', 'y__2'])
  })

  test.each(LEVELS.map((level, at) => [level, at] as const))(
    'of the %s survive in every part',
    (_level, at) => {
      for (const part of parts) {
        const bytes = extractPart(part, () => undefined, policy).toBytes()
        expect(Buffer.from(bytes).includes(strange(at, wireType)), part.name).toBe(true)
      }
    },
  )

  test.each(LEVELS.map((level, at) => [level, at] as const))(
    'of the %s survive in the whole',
    (_level, at) => {
      const bytes = graphAsModel(graph, graph.outputs, () => undefined, policy).toBytes()
      expect(Buffer.from(bytes).includes(strange(at, wireType))).toBe(true)
    },
  )
})

test.each(Object.entries(WIRE_TYPES))(
  'an initializer that gets another name keeps its unknown fields of wire type %s',
  (_, wireType) => {
    const initializer = (level: number): Uint8Array =>
      bytesField(
        5,
        varintField(1, 1),
        varintField(2, 7),
        varintField(7, 5),
        bytesField(8, 'w'),
        strange(level, wireType),
      )
    const sparse = bytesField(
      15,
      bytesField(1, varintField(1, 1), varintField(2, 7), bytesField(8, 'w'), strange(2, wireType)),
      strange(3, wireType),
    )
    const graphFields = [initializer(0), initializer(1), sparse]
    const bytes = Buffer.concat([
      varintField(1, 8),
      bytesField(8, varintField(2, 17)),
      bytesField(7, ...graphFields, ...['w', 'w', 'w'].map((name) => bytesField(12, bytesField(1, name)))),
    ])
    const graph = resolveModel(indexModel(bytesSource(bytes)))
    expect(graph.values.map(({ name }) => name)).toEqual(['w', 'w__2', 'w__3'])
    const policy = { kind: 'inline', external: () => bytesSource(new Uint8Array(0)) } as const
    const whole = Buffer.from(graphAsModel(graph, graph.values, () => undefined, policy).toBytes())
    for (const level of [0, 1, 2, 3])
      expect(whole.includes(strange(level, wireType)), `level ${level}`).toBe(true)
  },
)

test('every byte of a node that keeps its names is copied as it is', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 30, max: 4000 }), fc.constantFrom(...Object.values(WIRE_TYPES)))),
      (fields) => {
        const content = Buffer.concat([
          bytesField(1, 'x'),
          ...fields.map(([number, wireType]) => fieldOfType(number, wireType)),
          bytesField(4, 'Relu'),
          bytesField(2, 'y'),
        ])
        const graphFields = [
          bytesField(1, content),
          bytesField(11, bytesField(1, 'x')),
          bytesField(12, bytesField(1, 'y')),
        ]
        const bytes = Buffer.concat([
          varintField(1, 8),
          bytesField(8, varintField(2, 17)),
          bytesField(7, ...graphFields),
        ])
        const [part] = splitGraph(resolveModel(indexModel(bytesSource(bytes))), {
          stem: 'm',
          typeOf: () => undefined,
        })
        const policy = { kind: 'inline', external: () => bytesSource(new Uint8Array(0)) } as const
        const extracted = extractPart(part!, () => undefined, policy).toBytes()
        expect(Buffer.from(extracted).includes(content)).toBe(true)
      },
    ),
    { numRuns: 50 },
  )
})
