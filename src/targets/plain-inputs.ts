/**
 * Plain inputs: a type -> a tensor that most models accept.
 *
 * For runs whose numbers do not matter, only that they get through: one size for all that is
 * not fixed, one number for all integers (ids, masks, lengths), a ramp for floats.
 */
import type { ValueType } from '../onnx/value-type.ts'
import { dtypeFromOnnx } from '../tensor/dtype.ts'
import { elementCount, fromFloat64, type Tensor, tensor } from '../tensor/tensor.ts'

/** Larger than any input of a model that is run for its shapes; a hostile file may ask for more. */
const MAX_ELEMENTS = 16 * 1024 * 1024

export interface PlainChoice {
  /** For every dimension that the model leaves open. */
  readonly size: number
  /** For every integer: one number, or 0, 1, 2, … */
  readonly integer: number | 'counting'
}

/** What to try, most likely first: audio models want hundreds of samples, tiny ones know only the id 0. */
export const PLAIN_CHOICES: readonly PlainChoice[] = [1, 8, 64, 256, 512].flatMap((size) =>
  ([1, 0, 'counting'] as const).map((integer) => ({ size, integer })),
)

export function plainTensor(type: ValueType | undefined, { size, integer }: PlainChoice): Tensor | undefined {
  if (type?.kind !== 'tensor' || type.shape === undefined) return undefined
  const dtype = dtypeFromOnnx(type.dataType)
  const shape = type.shape.map((dim) => (typeof dim === 'number' ? dim : size))
  const count = elementCount(shape)
  if (dtype === undefined || count > MAX_ELEMENTS) return undefined
  if (dtype === 'string')
    return tensor(
      'string',
      shape,
      Array.from({ length: count }, () => 'a'),
    )
  const isFloat = dtype.startsWith('float') || dtype.startsWith('bfloat')
  if (dtype.startsWith('complex')) return undefined
  const integerAt = (at: number): number => (integer === 'counting' ? at : integer)
  return fromFloat64(
    dtype,
    shape,
    Float64Array.from({ length: count }, (_, at) => (isFloat ? (at % 17) / 16 : integerAt(at))),
  )
}
