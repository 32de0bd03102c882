/**
 * The operators of shape arithmetic over short integer tensors, some of whose entries may be unknown.
 *
 * Pure, and exact where they answer: integer overflow wraps and division truncates as the
 * runtime's do. Whatever is not certain is undefined.
 */
import { binary, castOp, expandOp, reduce, truth, unary, variadic, whereOp } from './shape-arithmetic.ts'
import {
  concatOp,
  constantOfShapeOp,
  gatherOp,
  rangeOp,
  reshapeOp,
  shapeOp,
  sizeOp,
  sliceOp,
  squeezeOp,
  unsqueezeOp,
} from './shape-lists.ts'
import type { ShapeOp } from './shape-op.ts'

export const SHAPE_OPS: ReadonlyMap<string, ShapeOp> = new Map<string, ShapeOp>([
  ['Shape', shapeOp],
  ['Size', sizeOp],
  ['Identity', ({ inputs }) => inputs[0]],
  ['Cast', castOp],
  ['Gather', gatherOp],
  ['Slice', sliceOp],
  ['Concat', concatOp],
  ['Unsqueeze', unsqueezeOp],
  ['Squeeze', squeezeOp],
  ['Reshape', reshapeOp],
  ['Expand', expandOp],
  ['Range', rangeOp],
  ['ConstantOfShape', constantOfShapeOp],
  ['Where', whereOp],
  ['Neg', unary((a) => -a)],
  ['Abs', unary((a) => (a < 0n ? -a : a))],
  ['Not', unary((a) => (a === 0n ? 1n : 0n))],
  ['Add', binary((a, b) => a + b)],
  ['Sub', binary((a, b) => a - b)],
  ['Mul', binary((a, b) => a * b)],
  ['Div', binary((a, b) => (b === 0n ? undefined : a / b))],
  ['Min', variadic((a, b) => (a < b ? a : b))],
  ['Max', variadic((a, b) => (a > b ? a : b))],
  ['Equal', binary((a, b) => truth(a === b), 'bool')],
  ['Less', binary((a, b) => truth(a < b), 'bool')],
  ['Greater', binary((a, b) => truth(a > b), 'bool')],
  ['LessOrEqual', binary((a, b) => truth(a <= b), 'bool')],
  ['GreaterOrEqual', binary((a, b) => truth(a >= b), 'bool')],
  ['And', binary((a, b) => a & b, 'bool')],
  ['Or', binary((a, b) => a | b, 'bool')],
  ['ReduceProd', reduce((a, b) => a * b, 1n)],
  ['ReduceSum', reduce((a, b) => a + b, 0n)],
])
