/** A rule: an argument -> the values that its operator takes there. The plain ones, and what others are made of. */
import type { DType } from '../tensor/dtype.ts'
import type { Argument } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'

export type Rule = (argument: Argument) => InputDomain | undefined

export const constant =
  (value: number, what: string): Rule =>
  ({ name }) => ({ kind: 'constant', values: [value], because: `${what} of ${name}` })

export const between =
  (low: number, high: number, what: string): Rule =>
  ({ name }) =>
    range(low, high, `${what} of ${name}`)

export const floatsBetween =
  (low: number, high: number, what: string): Rule =>
  (argument) =>
    isFloat(argument.dtype) ? between(low, high, what)(argument) : undefined

export function range(low: number, high: number, because: string): Extract<InputDomain, { kind: 'range' }> {
  return { kind: 'range', low, high, because }
}

/** Of as many rows as nobody knows, there is the first. */
export function into({ name }: Argument, size: number | undefined, what: string): InputDomain | undefined {
  if (size === 0) return undefined
  if (size === undefined) return { ...range(0, 1, `${what} of ${name} into unknown rows`), isGuess: true }
  return range(0, size, `${what} of ${name} into ${size} ${size === 1 ? 'row' : 'rows'}`)
}

export function counting(argument: Argument, rows: number | undefined): InputDomain | undefined {
  const shape = argument.shape()
  const length = shape?.at(-1)
  if (shape === undefined || length === undefined || (rows !== undefined && length > rows)) {
    return into(argument, rows, 'positions')
  }
  return { kind: 'counting', start: 0, axis: shape.length - 1, because: `positions of ${argument.name}` }
}

export function isFloat(dtype: DType | undefined): boolean {
  return dtype !== undefined && /float/.test(dtype)
}

/** Longer lists of indices are drawn, not listed. */
export const MAX_LISTED = 65_536
