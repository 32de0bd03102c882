/**
 * How long the figures of a pair take, in nanoseconds per element:
 *
 *   npx tsx tests/compare/measure-error-stats.ts [elements]
 *
 * Best of ten runs per dtype, after a warm-up; data as layers have it, off by about 0.1 %.
 */
import { errorStats } from '../../src/compare/error-stats.ts'
import { DEFAULT_TOLERANCE } from '../../src/compare/tolerance.ts'
import type { FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import { fromFloat64, type Tensor } from '../../src/tensor/tensor.ts'

const DTYPES = [
  'float32',
  'float16',
  'bfloat16',
  'float64',
  'int8',
  'int32',
  'int64',
  'bool',
  'int4',
] as const
const count = Number(process.argv[2] ?? 4_000_000)
const rowLength = 1000

for (const allowedWrong of [0, 0.01]) {
  for (const dtype of DTYPES) {
    const [actual, expected] = pair(dtype)
    console.log(
      dtype.padEnd(10),
      `allowed_wrong ${allowedWrong}`,
      best(actual, expected, allowedWrong).toFixed(1),
      'ns/element',
    )
  }
}

function best(actual: Tensor, expected: Tensor, allowedWrong: number): number {
  const times = Array.from({ length: 10 }, () => {
    const start = process.hrtime.bigint()
    errorStats(actual, expected, { ...DEFAULT_TOLERANCE, allowedWrong })
    return Number(process.hrtime.bigint() - start)
  })
  return Math.min(...times) / count
}

function pair(dtype: FixedSizeDType): [Tensor, Tensor] {
  const shape = [count / rowLength, rowLength]
  const values = Float64Array.from({ length: count }, (_, i) => 40 * Math.sin(i * 1.7))
  const off = values.map((value, i) => value * (1 + 0.001 * Math.sin(i * 0.37)))
  return [fromFloat64(dtype, shape, off) as Tensor, fromFloat64(dtype, shape, values) as Tensor]
}
