/** Arbitrary tensors of every dtype, for the round trips of the codecs. */
import * as fc from 'fast-check'
import { byteLength, DTYPES, type DType } from '../../src/tensor/dtype.ts'
import type { FixedSizeDType } from '../../src/tensor/tensor-data.ts'
import { elementCount, type Tensor, tensor, tensorFromBytes } from '../../src/tensor/tensor.ts'

export const anyShape: fc.Arbitrary<number[]> = fc.array(fc.nat(4), { maxLength: 4 })

export function anyTensor(dtypes: readonly DType[] = DTYPES): fc.Arbitrary<Tensor> {
  return fc.tuple(fc.constantFrom(...dtypes), anyShape).chain(([dtype, shape]) => anyTensorOf(dtype, shape))
}

function anyTensorOf(dtype: DType, shape: number[]): fc.Arbitrary<Tensor> {
  const count = elementCount(shape)
  if (dtype === 'string') {
    const texts = fc.array(anyText, { minLength: count, maxLength: count })
    return texts.map((data) => tensor('string', shape, data))
  }
  const length = byteLength(dtype, count)
  const bytes = fc.uint8Array({ minLength: length, maxLength: length })
  return bytes.map((data) => tensorFromBytes(dtype as FixedSizeDType, shape, data) as Tensor)
}

/** No zeros at the end, which .npy cannot tell from padding, and no halves of characters. */
const anyText = fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => text.replaceAll('\0', ''))
