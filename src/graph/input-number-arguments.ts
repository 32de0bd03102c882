/** Numbers that functions are defined for, and that quantised types can hold. */
import { bitsPerElement } from '../tensor/dtype.ts'
import { type Rule, between, constant, floatsBetween, isFloat, range } from './input-rule.ts'

export const NON_ZERO: Rule = ({ dtype, name }) =>
  isFloat(dtype)
    ? range(0.5, 40, `divisor of ${name}, away from 0`)
    : range(1, 40, `divisor of ${name}, not 0`)

export const POSITIVE: Rule = floatsBetween(0.01, 40, 'positive argument')

export const SCALE: Rule = floatsBetween(0.01, 1, 'positive scale')

export const VARIANCE: Rule = floatsBetween(0.1, 4, 'variance')

export const UNIT: Rule = floatsBetween(-0.99, 0.99, 'argument')

export const PROBABILITY: Rule = between(0, 1, 'probability')

/** e to the power of 40 is no float16, and of 10 is. */
export const EXPONENT: Rule = floatsBetween(-10, 10, 'exponent')

export const BASE: Rule = ({ dtype, name }) =>
  isFloat(dtype) ? range(0.5, 4, `base of ${name}`) : range(1, 4, `base of ${name}`)

export const POWER: Rule = ({ dtype, name }) =>
  isFloat(dtype) ? range(-3, 3, `power of ${name}`) : range(0, 4, `power of ${name}`)

/** All values that the dtype has. */
export const QUANTISED: Rule = ({ dtype, name }) => {
  if (dtype === undefined || !/^u?int(?:2|4|8|16)$/.test(dtype)) return undefined
  const bits = bitsPerElement(dtype)
  const low = dtype.startsWith('u') ? 0 : -(2 ** (bits - 1))
  return range(low, low + 2 ** bits, `quantised values of ${name}`)
}

export const ZERO_POINT: Rule = (argument) => {
  const { dtype, name } = argument
  if (dtype === 'int32' || /float8|float4/.test(dtype ?? '')) return constant(0, 'zero point')(argument)
  if (dtype === undefined || !/^u?int(?:2|4|8|16)$/.test(dtype)) return undefined
  const bits = bitsPerElement(dtype)
  const low = dtype.startsWith('u') ? 2 ** (bits - 2) : -(2 ** (bits - 2))
  return range(low, low + 2 ** (bits - 1), `zero point of ${name}`)
}

export const SHIFT: Rule = (argument) =>
  argument.dtype === undefined || isFloat(argument.dtype)
    ? undefined
    : between(0, bitsPerElement(argument.dtype), 'shift')(argument)
