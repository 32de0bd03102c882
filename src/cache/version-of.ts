/**
 * The version of an entry: a digest of everything it is made from.
 *
 * Equal contents give equal versions: the order of keys does not matter, and a property that is
 * undefined counts as missing. Different contents give different ones: -0 is not 0, 1n is not 1,
 * bytes are not a list of numbers. What has no content that could be compared (functions,
 * symbols, dates, instances of classes) is refused with its place.
 */
import { createHash } from 'node:crypto'
import { types } from 'node:util'
import { ModelTestError } from '../errors.ts'

/** sha256, in hex. */
export function versionOf(content: unknown): string {
  return createHash('sha256').update(canonical(content, [])).digest('hex')
}

interface Step {
  readonly key: string
  readonly inside: object
}

/** JSON with sorted keys, and a word of its own for every value that JSON lacks. */
function canonical(value: unknown, path: readonly Step[]): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    case 'bigint':
      return `${value}n`
    case 'boolean':
    case 'undefined':
      return String(value)
    case 'object':
      return value === null ? 'null' : canonicalObject(value, path)
    default:
      throw refusal(`a ${typeof value}`, path)
  }
}

function canonicalObject(value: object, path: readonly Step[]): string {
  if (ArrayBuffer.isView(value)) return canonicalBytes(value)
  if (path.some(({ inside }) => inside === value)) throw refusal('an object that contains itself', path)
  const inner = (key: string | number, item: unknown): string =>
    canonical(item, [...path, { key: String(key), inside: value }])

  if (Array.isArray(value)) return `[${Array.from(value, (item, at) => inner(at, item)).join()}]`
  if (types.isSet(value))
    return `Set[${Array.from(value, (item) => inner('*', item))
      .toSorted()
      .join()}]`
  if (types.isMap(value)) {
    const pairs = Array.from(value, ([key, item]) => `${inner('*', key)}:${inner('*', item)}`)
    return `Map{${pairs.toSorted().join()}}`
  }
  if (!isPlain(value)) throw refusal(`an instance of ${value.constructor?.name ?? 'a class'}`, path)
  const pairs = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${JSON.stringify(key)}:${inner(key, item)}`)
  return `{${pairs.toSorted().join()}}`
}

/** Bytes by their digest: a model's weights need not become text. A Buffer is a Uint8Array. */
function canonicalBytes(view: ArrayBufferView): string {
  const type: string = Object.prototype.toString.call(view)
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  return `${type}(${createHash('sha256').update(bytes).digest('hex')})`
}

/** Also an object of another realm, whose `Object.prototype` is not ours. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function refusal(what: string, path: readonly Step[]): ModelTestError {
  const place = path.length === 0 ? '' : ` at ${path.map(({ key }) => key).join('.')}`
  return new ModelTestError('INVALID_OPTION', `a version cannot be taken of ${what}${place}`, {
    hint: 'Use plain values: what the entry is made from, not how.',
  })
}
