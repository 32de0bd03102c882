/**
 * A seeded generator of numbers, bit for bit numpy's `default_rng(seed)`.
 *
 * A generator is a stream: each call takes the next values, so the order of calls matters and
 * nothing else does. No clock, no Math.random.
 *
 * | here | numpy |
 * | --- | --- |
 * | `rng.random(count)` | `rng.random(count)` |
 * | `rng.random32(count)` | `rng.random(count, dtype=np.float32)` |
 * | `rng.uniform(low, high, count)` | `rng.uniform(low, high, count)` |
 * | `rng.integers(dtype, low, high, count)` | `rng.integers(low, high, count, dtype=dtype)` |
 */
import { ModelTestError } from '../errors.ts'
import { type Draw, draw32, draw64, drawBit, drawSmall } from './bounded-integers.ts'
import { Pcg64 } from './pcg64.ts'
import { newData, type TensorData } from './tensor-data.ts'

export type IntegerDType =
  | 'bool'
  | 'uint8'
  | 'int8'
  | 'uint16'
  | 'int16'
  | 'uint32'
  | 'int32'
  | 'uint64'
  | 'int64'

/** numpy's default generator. */
export function defaultRng(seed: number | bigint): Random {
  return new Random(seed)
}

export class Random {
  readonly #bits: Pcg64

  constructor(seed: number | bigint) {
    this.#bits = new Pcg64(seed)
  }

  /** Doubles in [0, 1). */
  random(count: number): Float64Array {
    return this.fillUniform(new Float64Array(count), 0, 1)
  }

  /** float32 numbers in [0, 1), of 24 random bits each. */
  random32(count: number): Float32Array {
    const out = new Float32Array(count)
    for (let i = 0; i < count; i++) out[i] = this.#bits.nextFloat()
    return out
  }

  /** Doubles in [low, high). */
  uniform(low: number, high: number, count: number): Float64Array {
    return this.fillUniform(new Float64Array(count), low, high)
  }

  /** The same into an array; a Float32Array rounds them, so that `high` itself may come out. */
  fillUniform<A extends Float32Array | Float64Array>(out: A, low: number, high: number): A {
    const width = high - low
    if (!(Number.isFinite(width) && width >= 0)) throw badRange('float', low, high)
    for (let i = 0; i < out.length; i++) out[i] = low + width * this.#bits.nextDouble()
    return out
  }

  /** Integers in [low, high). */
  integers<D extends IntegerDType>(
    dtype: D,
    low: number | bigint,
    high: number | bigint,
    count: number,
  ): TensorData<D> {
    const [first, span] = checkedRange(dtype, low, high)
    const data: TensorData<IntegerDType> = newData<IntegerDType>(dtype, count)
    if (data instanceof BigInt64Array || data instanceof BigUint64Array) this.#fill64(data, first, span)
    else fill(data, Number(first), this.#draw(dtype, Number(span)))
    return data as TensorData<D>
  }

  #draw(dtype: IntegerDType, span: number): Draw {
    switch (dtype) {
      case 'bool':
        return drawBit(this.#bits, span)
      case 'uint8':
      case 'int8':
        return drawSmall(this.#bits, 8, span)
      case 'uint16':
      case 'int16':
        return drawSmall(this.#bits, 16, span)
      default:
        return draw32(this.#bits, span)
    }
  }

  #fill64(data: BigInt64Array | BigUint64Array, first: bigint, span: bigint): void {
    if (span >= 2n ** 32n) {
      const draw = draw64(this.#bits, span)
      for (let i = 0; i < data.length; i++) data[i] = first + draw()
      return
    }
    const draw = draw32(this.#bits, Number(span))
    if (isSafe(first) && isSafe(first + span)) fillHalves(data, Number(first), draw)
    else for (let i = 0; i < data.length; i++) data[i] = first + BigInt(draw())
  }
}

type SmallData = Exclude<TensorData<IntegerDType>, BigInt64Array | BigUint64Array>

function fill(data: SmallData, first: number, draw: Draw): void {
  for (let i = 0; i < data.length; i++) data[i] = first + draw()
}

/** Writes 64-bit integers as two 32-bit halves: several times faster than through BigInt. */
function fillHalves(data: BigInt64Array | BigUint64Array, first: number, draw: Draw): void {
  const halves = new Int32Array(data.buffer, data.byteOffset, data.length * 2)
  for (let i = 0; i < halves.length; i += 2) {
    const value = first + draw()
    halves[i] = value
    halves[i + 1] = Math.floor(value / 2 ** 32)
  }
}

function isSafe(value: bigint): boolean {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER
}

/** [smallest, largest] of each dtype. */
const BOUNDS: Readonly<Record<IntegerDType, readonly [bigint, bigint]>> = {
  bool: [0n, 1n],
  uint8: [0n, 0xffn],
  int8: [-0x80n, 0x7fn],
  uint16: [0n, 0xffffn],
  int16: [-0x8000n, 0x7fffn],
  uint32: [0n, 2n ** 32n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
}

/** The first value, and how far the last one is from it. */
function checkedRange(dtype: IntegerDType, low: number | bigint, high: number | bigint): [bigint, bigint] {
  const whole = [low, high].every((bound) => typeof bound === 'bigint' || Number.isInteger(bound))
  if (!whole) throw badRange(dtype, low, high)
  const [first, last] = [BigInt(low), BigInt(high) - 1n]
  const [smallest, largest] = BOUNDS[dtype]
  if (first < smallest || last > largest || last < first) throw badRange(dtype, low, high)
  return [first, last - first]
}

/** The one error for a range that a dtype cannot be drawn from. */
export function badRange(what: string, low: number | bigint, high: number | bigint): ModelTestError {
  return new ModelTestError(
    'INVALID_OPTION',
    `random ${what} values cannot be drawn from [${low}, ${high})`,
    {
      hint: 'The low end comes first, the high end is exclusive, and both must fit the dtype.',
    },
  )
}
