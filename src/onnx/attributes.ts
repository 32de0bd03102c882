/**
 * The attributes of a node, decoded on demand.
 *
 * Tensors and subgraphs stay ranges of the source, since a Constant may hold gigabytes. Lists
 * and texts are read when their value is asked for: a tree ensemble has millions of entries,
 * and most questions are about one attribute next to them.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { BYTES, FIXED32, VARINT, WireReader } from '../bytes/wire-reader.ts'
import { floatAt, readFloats, readInts, readStrings, textOf } from './attribute-lists.ts'
import { ATTRIBUTE, NODE } from './fields.ts'
import type { NodeEntry, Range } from './model-index.ts'

export type AttributeValue =
  | { readonly kind: 'int'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'ints'; readonly value: readonly bigint[] }
  | { readonly kind: 'floats'; readonly value: readonly number[] }
  | { readonly kind: 'strings'; readonly value: readonly string[] }
  | { readonly kind: 'tensor'; readonly range: Range }
  | { readonly kind: 'sparse'; readonly range: Range }
  | { readonly kind: 'graph' }
  | { readonly kind: 'type'; readonly range: Range }
  | { readonly kind: 'reference'; readonly name: string }
  | { readonly kind: 'other' }

export function readAttributes(source: ByteSource, node: Range): Map<string, AttributeValue> {
  const reader = new WireReader(source).seek(node.start)
  const attributes = new Map<string, AttributeValue>()
  while (reader.next(node.stop)) {
    if (reader.field !== NODE.attribute) continue
    reader.expect(BYTES, 'an attribute')
    const range = { start: reader.start, stop: reader.stop }
    const draft = readDraft(reader, range)
    attributes.set(draft.name, attributeValue(source, range, draft))
    reader.seek(range.stop)
  }
  return attributes
}

type Valued = Extract<AttributeValue, { readonly value: unknown }>

type Values = { readonly [V in Valued as V['kind']]: V['value'] }

/** The value of an attribute; undefined where it is absent or of another kind. */
export function attributeOf<K extends keyof Values>(
  attributes: ReadonlyMap<string, AttributeValue>,
  name: string,
  kind: K,
): Values[K] | undefined {
  const found = attributes.get(name)
  return found?.kind === kind ? (found.value as Values[K]) : undefined
}

/** The integer attribute `name` of a node; undefined when it is absent. */
export function intAttribute(source: ByteSource, node: NodeEntry, name: string): number | undefined {
  const value = attributeOf(readAttributes(source, node), name, 'int')
  return value === undefined ? undefined : Number(value)
}

/** AttributeProto.AttributeType, of the kinds that are values here. */
const [FLOAT, INT, STRING, FLOATS, INTS, STRINGS] = [1, 2, 3, 6, 7, 8]

interface Draft {
  name: string
  reference: string
  /** The declared type; 0 where there is none. */
  type: number
  i: bigint | undefined
  f: number | undefined
  s: Range | undefined
  /** Fields of lists that have entries. */
  readonly lists: Set<number>
  large: AttributeValue | undefined
}

function readDraft(reader: WireReader, { start, stop }: Range): Draft {
  const draft: Draft = {
    name: '',
    reference: '',
    type: 0,
    i: undefined,
    f: undefined,
    s: undefined,
    lists: new Set(),
    large: undefined,
  }
  reader.seek(start)
  while (reader.next(stop)) readField(reader, draft)
  return draft
}

function readField(reader: WireReader, draft: Draft): void {
  const range = { start: reader.start, stop: reader.stop }
  switch (reader.field) {
    case ATTRIBUTE.name:
      reader.expect(BYTES, 'an attribute name')
      draft.name = reader.string
      return
    case ATTRIBUTE.refAttrName:
      reader.expect(BYTES, 'the name of a referenced attribute')
      draft.reference = reader.string
      return
    case ATTRIBUTE.type:
      reader.expect(VARINT, 'the type of an attribute')
      draft.type = reader.number
      return
    case ATTRIBUTE.i:
      reader.expect(VARINT, 'an integer attribute')
      draft.i = reader.bigint
      return
    case ATTRIBUTE.f:
      reader.expect(FIXED32, 'a float attribute')
      draft.f = floatAt(reader.bytes, 0)
      return
    case ATTRIBUTE.s:
      reader.expect(BYTES, 'a string attribute')
      draft.s = range
      return
    case ATTRIBUTE.ints:
      if (reader.wireType !== BYTES) reader.expect(VARINT, 'a list of integers')
      noteList(reader, draft)
      return
    case ATTRIBUTE.floats:
      if (reader.wireType !== BYTES) reader.expect(FIXED32, 'a list of floats')
      noteList(reader, draft)
      return
    case ATTRIBUTE.strings:
      reader.expect(BYTES, 'a list of strings')
      draft.lists.add(ATTRIBUTE.strings)
      return
    case ATTRIBUTE.t:
      reader.expect(BYTES, 'a tensor attribute')
      draft.large ??= { kind: 'tensor', range }
      return
    case ATTRIBUTE.sparseTensor:
      reader.expect(BYTES, 'a sparse tensor attribute')
      draft.large ??= { kind: 'sparse', range }
      return
    case ATTRIBUTE.typeProto:
      reader.expect(BYTES, 'a type attribute')
      draft.large ??= { kind: 'type', range }
      return
    case ATTRIBUTE.g:
    case ATTRIBUTE.graphs:
      reader.expect(BYTES, 'a graph attribute')
      draft.large ??= { kind: 'graph' }
      return
    default:
  }
}

/** A packed list may be there and empty. */
function noteList(reader: WireReader, draft: Draft): void {
  if (reader.stop > reader.start) draft.lists.add(reader.field)
}

function attributeValue(source: ByteSource, range: Range, draft: Draft): AttributeValue {
  const { lists, type, i, f, s } = draft
  if (draft.large !== undefined) return draft.large
  if (draft.reference !== '') return { kind: 'reference', name: draft.reference }
  if (lists.has(ATTRIBUTE.ints) || type === INTS) return lazy('ints', () => readInts(source, range))
  if (lists.has(ATTRIBUTE.floats) || type === FLOATS) return lazy('floats', () => readFloats(source, range))
  if (lists.has(ATTRIBUTE.strings) || type === STRINGS)
    return lazy('strings', () => readStrings(source, range))
  // Writers may leave out zeros, so the declared type decides where there is one.
  const kind =
    type !== 0 ? type : i !== undefined ? INT : f !== undefined ? FLOAT : s !== undefined ? STRING : 0
  if (kind === INT) return { kind: 'int', value: i ?? 0n }
  if (kind === FLOAT) return { kind: 'float', value: f ?? 0 }
  if (kind === STRING) return lazy('string', () => (s === undefined ? '' : textOf(source, s)))
  return { kind: 'other' }
}

function lazy<K extends AttributeValue['kind'], T>(kind: K, read: () => T): { kind: K; readonly value: T } {
  let known: { readonly value: T } | undefined
  return {
    kind,
    get value() {
      known ??= { value: read() }
      return known.value
    },
  }
}
