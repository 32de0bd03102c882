/**
 * One operator of shape arithmetic: what is known of its inputs -> what follows for its output.
 *
 * Short integer tensors, some of whose entries may be unknown.
 */
import { attributeOf, type AttributeValue } from '../onnx/attributes.ts'
import type { Range } from '../onnx/model-index.ts'
import type { ValueType } from '../onnx/value-type.ts'

export interface Ints {
  readonly dtype: 'int64' | 'int32' | 'bool'
  readonly shape: readonly number[]
  readonly items: readonly (bigint | undefined)[]
}

export interface ShapeOpContext {
  /** What is known of each input. */
  readonly inputs: readonly (Ints | undefined)[]
  /** Whether an input is there at all. */
  readonly given: readonly boolean[]
  readonly firstType: ValueType | undefined
  readonly attributes: () => ReadonlyMap<string, AttributeValue>
  readonly tensorAttribute: (range: Range) => Ints | undefined
}

export type ShapeOp = (context: ShapeOpContext) => Ints | undefined

/** No real tensor has more dimensions; broadcasting costs rank times size. */
export const MAX_RANK = 32

/** Range, Expand and ConstantOfShape make lists as long as they are told to. */
export const MAX_MADE = 1024

/** Axes are an attribute in older opsets and the second input in newer ones. */
export function axesOf({
  inputs,
  given,
  attributes,
}: ShapeOpContext): readonly number[] | undefined | 'absent' {
  const axes = given[1] ? inputs[1]?.items : (attributeOf(attributes(), 'axes', 'ints') ?? 'absent')
  if (axes === undefined || axes === 'absent') return axes
  return axes.length <= MAX_RANK && axes.every((axis) => axis !== undefined) ? axes.map(Number) : undefined
}

export function isFirstAxis(axis: bigint): boolean {
  return axis === 0n || axis === -1n
}
