/**
 * Output signatures: a tensor -> a few numbers that stand for it in an expectation file.
 *
 * For outputs of rank 3 and more the signature is max - min over the last axis, else the output
 * itself; without axes of size 1 and minus its minimum. What is kept of it is one line of text:
 *
 *   float32[1, 64, 320] signature[64] mean=4.1522 rms=4.3013 max=6.9817 at=0:1.25,9:0,…
 *
 * Four verbs: capture, render, parse, match. Rendering and parsing again gives a digest that
 * matches the first, since a match is within a tolerance that is wider than the nine digits written.
 */
import { ModelTestError } from '../errors.ts'
import { type DType, DTYPES } from '../tensor/dtype.ts'
import { type Tensor, toFloat64 } from '../tensor/tensor.ts'

export interface Signature {
  readonly dtype: DType
  /** Of the output. */
  readonly shape: readonly number[]
  /** Of the signature. */
  readonly signatureShape: readonly number[]
  /** The finite ones have the minimum 0. */
  readonly values: Float64Array
}

/** What the line holds. */
export interface SignatureDigest {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly signatureShape: readonly number[]
  /** Values that are NaN or infinite; the figures leave them out. */
  readonly notFinite: number
  readonly mean: number
  readonly rms: number
  readonly max: number
  /** Some values by their place, spread evenly. */
  readonly samples: ReadonlyMap<number, number>
}

export interface SignatureTolerance {
  readonly rtol: number
  readonly atol: number
}

/** Per dtype of the output; what is not here must be equal, to the digits written. */
const TOLERANCES: Partial<Record<DType, SignatureTolerance>> = {
  float64: { rtol: 1e-7, atol: 1e-7 },
  float32: { rtol: 1.3e-6, atol: 1e-5 },
  complex128: { rtol: 1e-7, atol: 1e-7 },
  complex64: { rtol: 1.3e-6, atol: 1e-5 },
  float16: { rtol: 1e-3, atol: 1e-3 },
  bfloat16: { rtol: 1.6e-2, atol: 1e-2 },
  float8e4m3fn: { rtol: 0.125, atol: 0.125 },
  float8e4m3fnuz: { rtol: 0.125, atol: 0.125 },
  float8e5m2: { rtol: 0.25, atol: 0.25 },
  float8e5m2fnuz: { rtol: 0.25, atol: 0.25 },
}

/** As close as nine digits can tell. */
const EQUAL: SignatureTolerance = { rtol: 1e-8, atol: 1e-9 }

export function signatureTolerance(dtype: DType): SignatureTolerance {
  return TOLERANCES[dtype] ?? EQUAL
}

/** The signature of one output, or of several joined on their last axis. Strings: UNSUPPORTED_DTYPE. */
export function signatureOf(output: Tensor, ...more: readonly Tensor[]): Signature {
  const { dtype } = output
  const { shape, rows } = joined([output, ...more])
  const ranges = shape.length >= 3
  const values = ranges ? Float64Array.from(rows, range) : concatenated(rows)
  const kept = (ranges ? shape.slice(0, -1) : shape).filter((dim) => dim !== 1)
  return { dtype, shape, signatureShape: kept, values: fromZero(values) }
}

export function captureSignature(output: Tensor, ...more: readonly Tensor[]): SignatureDigest {
  const { dtype, shape, signatureShape, values } = signatureOf(output, ...more)
  const finite = values.filter((value) => Number.isFinite(value))
  const count = Math.max(finite.length, 1)
  return {
    dtype,
    shape,
    signatureShape,
    notFinite: values.length - finite.length,
    mean: finite.reduce((sum, value) => sum + value, 0) / count,
    rms: Math.sqrt(finite.reduce((sum, value) => sum + value * value, 0) / count),
    max: finite.reduce((max, value) => Math.max(max, value), 0),
    samples: samplesOf(values),
  }
}

export function renderSignature(digest: SignatureDigest): string {
  const { dtype, shape, signatureShape, notFinite, mean, rms, max, samples } = digest
  const figures = [`mean=${digits(mean)}`, `rms=${digits(rms)}`, `max=${digits(max)}`]
  const places = [...samples].map(([place, value]) => `${place}:${digits(value)}`)
  return [
    `${dtype}[${shape.join(', ')}]`,
    `signature[${signatureShape.join(', ')}]`,
    ...(notFinite === 0 ? [] : [`not-finite=${notFinite}`]),
    ...figures,
    `at=${places.join(',')}`,
  ].join(' ')
}

export function parseSignature(line: string): SignatureDigest {
  const found = LINE.exec(line.trim())?.groups
  const dtype = DTYPES.find((name) => name === found?.['dtype'])
  if (found === undefined || dtype === undefined) throw unreadable(line)
  return {
    dtype,
    shape: numbers(found['shape']!),
    signatureShape: numbers(found['signature']!),
    notFinite: Number(found['notFinite'] ?? 0),
    mean: Number(found['mean']),
    rms: Number(found['rms']),
    max: Number(found['max']),
    samples: new Map(found['at']!.split(',').filter(Boolean).map(placeAndValue)),
  }
}

const LINE =
  /^(?<dtype>\w+)\[(?<shape>[\d, ]*)\] signature\[(?<signature>[\d, ]*)\](?: not-finite=(?<notFinite>\d+))? mean=(?<mean>\S+) rms=(?<rms>\S+) max=(?<max>\S+) at=(?<at>\S*)$/

/** What differs beyond the tolerance, a sentence each; nothing if they match. */
export function signatureDifferences(
  actual: SignatureDigest,
  expected: SignatureDigest,
  tolerance: SignatureTolerance = signatureTolerance(expected.dtype),
): string[] {
  const [a, e] = [describeForm(actual), describeForm(expected)]
  if (a !== e) return [`the output is ${a}, expected is ${e}`]
  const expectedFigures = figuresOf(expected)
  return [...figuresOf(actual)]
    .filter(([name, value]) => !isClose(value, expectedFigures.get(name) ?? NaN, tolerance))
    .map(
      ([name, value]) =>
        `${name} is ${digits(value)}, expected is ${digits(expectedFigures.get(name) ?? NaN)}`,
    )
}

/** How many values are spread over the line. */
const SAMPLES = 8

function samplesOf(values: Float64Array): Map<number, number> {
  const count = Math.min(values.length, SAMPLES)
  const places = Array.from({ length: count }, (_, i) =>
    Math.floor((i * (values.length - 1)) / Math.max(count - 1, 1)),
  )
  return new Map(places.map((place) => [place, values[place]!]))
}

function figuresOf({ notFinite, mean, rms, max, samples }: SignatureDigest): Map<string, number> {
  return new Map([
    ['the number of values that are not finite', notFinite],
    ['the mean', mean],
    ['the root mean square', rms],
    ['the maximum', max],
    ...[...samples].map(([place, value]) => [`value ${place}`, value] as const),
  ])
}

function isClose(actual: number, expected: number, { rtol, atol }: SignatureTolerance): boolean {
  if (Object.is(actual, expected) || actual === expected) return true
  return Math.abs(actual - expected) <= atol + rtol * Math.abs(expected) && Number.isFinite(expected)
}

function describeForm({ dtype, shape, signatureShape }: SignatureDigest): string {
  return `${dtype}[${shape.join(', ')}] with signature[${signatureShape.join(', ')}]`
}

/** Rows of the last axis, with those of all tensors joined. */
function joined(tensors: readonly Tensor[]): { shape: readonly number[]; rows: Float64Array[] } {
  const parts = tensors.map(rowsOf)
  const [first] = parts as [Rows]
  for (const part of parts) if (part.leading.join() !== first.leading.join()) throw unjoinable(tensors)
  if (parts.length === 1) return { shape: tensors[0]!.shape, rows: first.rows }
  const rows = first.rows.map((_, row) => concatenated(parts.map((part) => part.rows[row]!)))
  const width = parts.reduce((sum, part) => sum + part.width, 0)
  return { shape: [...first.leading, width], rows }
}

interface Rows {
  readonly leading: readonly number[]
  readonly width: number
  readonly rows: Float64Array[]
}

function rowsOf(t: Tensor): Rows {
  const values = toFloat64(t)
  const leading = t.shape.slice(0, -1)
  const width = t.shape.at(-1) ?? 1
  const count = leading.reduce((product, dim) => product * dim, 1)
  const stride = values.length / Math.max(count, 1)
  const rows = Array.from({ length: count }, (_, row) => values.subarray(row * stride, (row + 1) * stride))
  return { leading, width, rows }
}

function concatenated(pieces: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/** Max - min; NaN if a value is NaN or there is none. */
function range(row: Float64Array): number {
  if (row.length === 0) return NaN
  let [low, high] = [Infinity, -Infinity]
  for (const value of row) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return high - low
}

function fromZero(values: Float64Array): Float64Array {
  const least = values.reduce((min, value) => (Number.isFinite(value) ? Math.min(min, value) : min), Infinity)
  return least === Infinity ? values : values.map((value) => value - least)
}

function placeAndValue(text: string): [number, number] {
  const [place, value] = text.split(':')
  return [Number(place), Number(value)]
}

function numbers(text: string): number[] {
  return text.split(', ').filter(Boolean).map(Number)
}

/** Nine digits tell all float32 apart. */
function digits(value: number): string {
  return String(Number(value.toPrecision(9)))
}

function unreadable(line: string): ModelTestError {
  return new ModelTestError('INVALID_OPTION', `"${line}" is no output signature`, {
    hint: 'Capture the expectation again with vitest --update.',
  })
}

function unjoinable(tensors: readonly Tensor[]): ModelTestError {
  const shapes = tensors.map(({ shape }) => `[${shape.join(', ')}]`).join(' and ')
  return new ModelTestError(
    'MALFORMED_TENSOR',
    `outputs of shapes ${shapes} cannot be joined on their last axis`,
    {
      hint: 'Capture a signature for each output.',
    },
  )
}
