/** Arguments that leave no choice: lists of numbers, with the reason in words. */
import { type Argument, isFixed } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'

export function list(argument: Argument, values: readonly number[], what: string): InputDomain {
  const shown = values.length === 1 ? values[0] : `[${values.join(', ')}]`
  return { kind: 'constant', values, because: `${what} of ${argument.name}: ${shown}` }
}

export function declaredOutput(argument: Argument): readonly number[] | undefined {
  const shape = argument.outputShape()
  return shape !== undefined && isFixed(shape) ? shape : undefined
}

export function ones(length: number): number[] {
  return Array.from({ length: Math.max(0, length) }, () => 1)
}

export function counted(length: number): number[] {
  return Array.from({ length: Math.max(0, Math.floor(length)) }, (_, at) => at)
}
