/**
 * "Tweaked random" tensors: (generator, dtype, shape, range) -> the generator's next values.
 *
 * Without a range: floats in [-40, 40); signed integers too, unsigned ones in [0, 80), since numpy
 * refuses a negative bound for them; bool in {0, 1}; types too small for that take what they have.
 *
 * Which numpy call this is, so that values can be checked against it:
 * - floats: `rng.uniform(low, high, shape).astype(dtype)`: drawn in double precision and rounded
 *   once. It is not the float32 stream of `rng.random(dtype=np.float32)`.
 * - integers and bool: `rng.integers(low, high, shape, dtype=dtype)`.
 * - integers below a byte: drawn as int8, then packed.
 * - complex: real and imaginary parts in turn, each as a float.
 */
import { ModelTestError } from '../errors.ts'
import { badRange, type IntegerDType, type Random } from './default-rng.ts'
import type { DType } from './dtype.ts'
import { packBits, type SubByteBits } from './packed-integers.ts'
import type { FixedSizeDType } from './tensor-data.ts'
import { elementCount, fromFloat64, type Tensor, tensor } from './tensor.ts'

export { defaultRng, type IntegerDType, Random } from './default-rng.ts'

/** Values from `low` up to but not including `high`. */
export interface Range {
  readonly low: number
  readonly high: number
}

/** The next values of the generator as a tensor. Strings: UNSUPPORTED_DTYPE. */
export function tweakedRandom<D extends DType>(
  rng: Random,
  dtype: D,
  shape: readonly number[],
  range: Range = DEFAULT_RANGES[dtype] ?? { low: -40, high: 40 },
): Tensor<D> {
  return drawTensor({ rng, shape, range, count: elementCount(shape) }, dtype) as Tensor<D>
}

const DEFAULT_RANGES: { readonly [D in DType]?: Range } = {
  bool: { low: 0, high: 2 },
  uint8: { low: 0, high: 80 },
  uint16: { low: 0, high: 80 },
  uint32: { low: 0, high: 80 },
  uint64: { low: 0, high: 80 },
  uint4: { low: 0, high: 16 },
  int4: { low: -8, high: 8 },
  uint2: { low: 0, high: 4 },
  int2: { low: -2, high: 2 },
  float4e2m1: { low: -6, high: 6 },
}

interface Wish {
  readonly rng: Random
  readonly shape: readonly number[]
  readonly range: Range
  readonly count: number
}

function drawTensor(wish: Wish, dtype: DType): Tensor {
  switch (dtype) {
    case 'string':
      throw new ModelTestError('UNSUPPORTED_DTYPE', 'a string tensor cannot be drawn at random', {
        hint: 'Record the strings as a data set of the model.',
      })
    case 'bool':
    case 'uint8':
    case 'int8':
    case 'uint16':
    case 'int16':
    case 'uint32':
    case 'int32':
    case 'uint64':
    case 'int64':
      return drawIntegers(wish, dtype)
    case 'uint4':
    case 'int4':
      return tensor(dtype, wish.shape, drawPacked(wish, dtype, 4))
    case 'uint2':
    case 'int2':
      return tensor(dtype, wish.shape, drawPacked(wish, dtype, 2))
    default:
      return drawFloats(wish, dtype)
  }
}

function drawIntegers({ rng, shape, range, count }: Wish, dtype: IntegerDType): Tensor {
  return tensor(dtype, shape, rng.integers(dtype, range.low, range.high, count))
}

function drawPacked({ rng, range, count }: Wish, dtype: DType, bits: SubByteBits): Uint8Array {
  const { low, high } = range
  const bounds = DEFAULT_RANGES[dtype]!
  if (low < bounds.low || high > bounds.high) throw badRange(dtype, low, high)
  return packBits(rng.integers('int8', low, high, count), bits)
}

function drawFloats({ rng, shape, range, count }: Wish, dtype: FixedSizeDType): Tensor {
  const { low, high } = range
  if (dtype === 'float32') return tensor(dtype, shape, rng.fillUniform(new Float32Array(count), low, high))
  const parts = dtype.startsWith('complex') ? 2 : 1
  return fromFloat64(dtype, shape, rng.uniform(low, high, count * parts))
}
