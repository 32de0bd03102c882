/**
 * Floats that JavaScript has no array for: numbers <-> bit patterns, exactly.
 *
 * Decoding is exact: every pattern of every format is a float32. Encoding rounds the number once,
 * to nearest, ties to the even pattern; there is no detour over float32 on which a second rounding
 * could hide. Subnormals and signed zeros are kept, except where the format has no -0 (`fnuz`).
 *
 * Beyond the largest finite value, as ONNX's reference implementation of Cast has it:
 * | format | saturating (default) | not saturating |
 * | --- | --- | --- |
 * | float16, bfloat16 | ±Infinity: Cast's `saturate` is for float8 only | ±Infinity |
 * | float8e5m2 | ±57344, infinities too | ±Infinity |
 * | float8e4m3fn | ±448, infinities too | NaN, the sign kept |
 * | float8e4m3fnuz, float8e5m2fnuz | ±240 or ±57344, infinities too | NaN |
 * | float8e8m0 | 2^127, but infinities become NaN | NaN |
 * | float4e2m1 | ±6, infinities too | ±6: it has nothing else |
 *
 * (ONNX's text has Infinity -> NaN for saturating fnuz casts; its own test data has the maximum.)
 *
 * NaN: encoding gives one positive quiet NaN a format (`nan` below) whatever the payload and sign,
 * since JavaScript does not promise to keep those; decoding any NaN pattern gives NaN. float4e2m1
 * has no NaN and encodes it as 6.
 *
 * float8e8m0 is a power of two with neither sign nor zero. The sign of a number is dropped, zero
 * becomes 2^-127, and rounding is that of Cast's `round_mode`, by default up to the next power.
 */

export interface EncodeOptions {
  /** Whether finite numbers too large for the format become its largest. @default true */
  readonly saturate?: boolean
  /** float8e8m0 only: which neighbouring power of two to take; `nearest` takes ties up. @default 'up' */
  readonly powerRounding?: 'up' | 'down' | 'nearest'
}

type SignedFormat =
  | 'float16'
  | 'bfloat16'
  | 'float8e4m3fn'
  | 'float8e4m3fnuz'
  | 'float8e5m2'
  | 'float8e5m2fnuz'
  | 'float4e2m1'

export type FloatFormat = SignedFormat | 'float8e8m0'

/** A binary format with sign, exponent and mantissa fields, from the top bit down. */
interface Layout {
  readonly bits: number
  readonly mantissaBits: number
  readonly bias: number
  /** The pattern of the largest finite number. */
  readonly max: number
  /** The pattern that NaN is written as. */
  readonly nan: number
  /** What positive overflow becomes when saturating, and when not. */
  readonly overflow: readonly [saturating: number, plain: number]
  /** `fnuz` formats: the pattern of -0 is their only NaN. */
  readonly unsignedZero?: boolean
}

const LAYOUTS: Readonly<Record<SignedFormat, Layout>> = {
  float16: { bits: 16, mantissaBits: 10, bias: 15, max: 0x7bff, nan: 0x7e00, overflow: [0x7c00, 0x7c00] },
  bfloat16: { bits: 16, mantissaBits: 7, bias: 127, max: 0x7f7f, nan: 0x7fc0, overflow: [0x7f80, 0x7f80] },
  float8e4m3fn: { bits: 8, mantissaBits: 3, bias: 7, max: 0x7e, nan: 0x7f, overflow: [0x7e, 0x7f] },
  float8e4m3fnuz: {
    bits: 8,
    mantissaBits: 3,
    bias: 8,
    max: 0x7f,
    nan: 0x80,
    overflow: [0x7f, 0x80],
    unsignedZero: true,
  },
  float8e5m2: { bits: 8, mantissaBits: 2, bias: 15, max: 0x7b, nan: 0x7e, overflow: [0x7b, 0x7c] },
  float8e5m2fnuz: {
    bits: 8,
    mantissaBits: 2,
    bias: 16,
    max: 0x7f,
    nan: 0x80,
    overflow: [0x7f, 0x80],
    unsignedZero: true,
  },
  float4e2m1: { bits: 4, mantissaBits: 1, bias: 1, max: 0x7, nan: 0x7, overflow: [0x7, 0x7] },
}

/** The bit pattern of a number. */
export function encodeFloat(format: FloatFormat, value: number, options: EncodeOptions = {}): number {
  if (format === 'float8e8m0') return encodePowerOfTwo(value, options)
  return encodeSigned(LAYOUTS[format], value, options.saturate === false ? 1 : 0)
}

/** The number of a bit pattern. */
export function decodeFloat(format: FloatFormat, pattern: number): number {
  return tableOf(format)[pattern]!
}

/** The bit patterns of many numbers, one a byte or a 16-bit word: 4-bit patterns are not packed. */
export function encodeFloats(
  format: FloatFormat,
  values: Float32Array | Float64Array,
  options: EncodeOptions = {},
): Uint8Array | Uint16Array {
  const patterns = patternBits(format) === 16 ? new Uint16Array(values.length) : new Uint8Array(values.length)
  if (format === 'float8e8m0') {
    for (let i = 0; i < values.length; i++) patterns[i] = encodePowerOfTwo(values[i]!, options)
    return patterns
  }
  const layout = LAYOUTS[format]
  const mode = options.saturate === false ? 1 : 0
  for (let i = 0; i < values.length; i++) patterns[i] = encodeSigned(layout, values[i]!, mode)
  return patterns
}

/** The numbers of many bit patterns, into `out`. */
export function decodeFloats<Out extends Float32Array | Float64Array>(
  format: FloatFormat,
  patterns: Uint8Array | Uint16Array | Int8Array,
  out: Out,
): Out {
  const table = tableOf(format)
  for (let i = 0; i < patterns.length; i++) out[i] = table[patterns[i]!]!
  return out
}

function patternBits(format: FloatFormat): number {
  return format === 'float8e8m0' ? 8 : LAYOUTS[format].bits
}

const float64 = new Float64Array(1)
const words = new Uint32Array(float64.buffer)

/** Adding and subtracting this rounds a number below 2^51 to an integer, ties to even. */
const ROUNDER = 2 ** 52

function encodeSigned(layout: Layout, value: number, mode: 0 | 1): number {
  if (value !== value) return layout.nan
  float64[0] = value
  const high = words[1]!
  const magnitude = encodeMagnitude(layout, Math.abs(value), ((high >>> 20) & 0x7ff) - 1023, mode)
  // -0 of a fnuz format would be its NaN.
  if (layout.unsignedZero && magnitude === 0) return 0
  return magnitude | ((high >>> 31) << (layout.bits - 1))
}

/**
 * Counts in units of the format's spacing around the number: the count is the mantissa with its
 * leading one, so adding the exponent's steps gives the pattern, and a carry moves up by itself.
 */
function encodeMagnitude(layout: Layout, magnitude: number, exponent: number, mode: 0 | 1): number {
  const smallest = 1 - layout.bias
  const steps = exponent > smallest ? exponent - smallest : 0
  const units = magnitude * powerOfTwo(layout.mantissaBits - smallest - steps)
  const pattern = steps * powerOfTwo(layout.mantissaBits) + (units + ROUNDER - ROUNDER)
  return pattern > layout.max ? layout.overflow[mode] : pattern
}

const POWERS = Float64Array.from({ length: 2300 }, (_, i) => 2 ** (i - 1150))

function powerOfTwo(exponent: number): number {
  return POWERS[exponent + 1150]!
}

const POWER_BIAS = 127
const POWER_NAN = 0xff
const POWER_MAX = 0xfe

function encodePowerOfTwo(value: number, { saturate = true, powerRounding = 'up' }: EncodeOptions): number {
  if (!Number.isFinite(value)) return POWER_NAN
  const magnitude = Math.abs(value)
  float64[0] = magnitude
  const below = ((words[1]! >>> 20) & 0x7ff) - 1023
  if (below < -POWER_BIAS) return 0
  const fraction = magnitude / powerOfTwo(below) - 1
  const threshold = { up: Number.MIN_VALUE, nearest: 0.5, down: 1 }[powerRounding]
  const pattern = below + POWER_BIAS + (fraction >= threshold ? 1 : 0)
  if (pattern <= POWER_MAX) return pattern
  return saturate ? POWER_MAX : POWER_NAN
}

const tables = new Map<FloatFormat, Float32Array>()

/** The numbers of all patterns of a format; made on first use. */
function tableOf(format: FloatFormat): Float32Array {
  const known = tables.get(format)
  if (known) return known
  const table = new Float32Array(2 ** patternBits(format))
  for (let pattern = 0; pattern < table.length; pattern++) table[pattern] = decodePattern(format, pattern)
  tables.set(format, table)
  return table
}

function decodePattern(format: FloatFormat, pattern: number): number {
  if (format === 'float8e8m0') return pattern === POWER_NAN ? NaN : 2 ** (pattern - POWER_BIAS)
  const layout = LAYOUTS[format]
  const signBit = 2 ** (layout.bits - 1)
  if (layout.unsignedZero && pattern === signBit) return NaN
  return pattern < signBit ? decodeMagnitude(layout, pattern) : -decodeMagnitude(layout, pattern - signBit)
}

function decodeMagnitude(layout: Layout, pattern: number): number {
  if (pattern > layout.max) return pattern === layout.overflow[1] && pattern !== layout.nan ? Infinity : NaN
  const scale = 2 ** layout.mantissaBits
  const exponent = Math.floor(pattern / scale)
  const mantissa = pattern % scale
  const smallest = 1 - layout.bias
  return exponent === 0
    ? (mantissa / scale) * 2 ** smallest
    : (1 + mantissa / scale) * 2 ** (exponent - layout.bias)
}
