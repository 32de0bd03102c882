/** Arbitrary pairs of tensors that differ in some elements: a little, a lot, by NaN or infinity. */
import * as fc from 'fast-check'
import type { FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import { elementCount, fromFloat64, type Tensor } from '../../src/tensor/tensor.ts'

export const FLOATS = [
  'float32',
  'float64',
  'float16',
  'bfloat16',
  'float8e4m3fn',
  'float8e5m2',
  'float4e2m1',
] as const satisfies FixedSizeDType[]

export const INTEGERS = [
  'int8',
  'uint8',
  'int16',
  'uint16',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'int4',
  'uint4',
  'int2',
  'uint2',
] as const satisfies FixedSizeDType[]

export interface Pair {
  readonly actual: Tensor
  readonly expected: Tensor
}

const anyValue = fc.oneof(
  { weight: 6, arbitrary: fc.double({ min: -50, max: 50, noNaN: true }) },
  { weight: 2, arbitrary: fc.constantFrom(0, -0, 1, -1, 1e-7, 3e38, -6e4) },
  { weight: 1, arbitrary: fc.constantFrom(NaN, Infinity, -Infinity) },
)

const anyFinite = anyValue.filter((value) => Number.isFinite(value) && Math.abs(value) < 100)

const anyElements = (value: fc.Arbitrary<number>): fc.Arbitrary<readonly [number, number]> =>
  fc.oneof(
    { weight: 3, arbitrary: value.map((e) => [e, e] as const) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(value, fc.double({ min: -0.1, max: 0.1, noNaN: true }))
        .map(([e, off]) => [e, e * (1 + off)] as const),
    },
    { weight: 1, arbitrary: fc.tuple(value, value) },
  )

export function anyPair(
  dtypes: readonly FixedSizeDType[] = [...FLOATS, ...INTEGERS, 'bool'],
  values: 'all' | 'small' = 'all',
): fc.Arbitrary<Pair> {
  return fc.tuple(fc.constantFrom(...dtypes), anyPairShape).chain(([dtype, shape]) => {
    const size = elementCount(shape)
    return fc
      .array(anyElements(values === 'all' ? anyValue : anyFinite), { minLength: size, maxLength: size })
      .map((elements) => ({
        expected: fromFloat64(
          dtype,
          shape,
          Float64Array.from(elements, ([e]) => e),
        ) as Tensor,
        actual: fromFloat64(
          dtype,
          shape,
          Float64Array.from(elements, ([, a]) => a),
        ) as Tensor,
      }))
  })
}

const anyPairShape = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }),
  fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 40 })),
)
