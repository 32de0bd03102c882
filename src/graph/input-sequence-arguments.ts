/** Arguments about sequences of tokens or steps: lengths, masks, positions, what is kept of the past. */
import type { Argument } from './input-arguments.ts'
import { type Rule, constant, counting, into, range } from './input-rule.ts'

/** Every sequence as long as the time axis. */
export const lengths =
  (data: number, axis: (argument: Argument) => number): Rule =>
  (argument) => {
    const size = argument.size(data, axis(argument))
    return size === undefined
      ? undefined
      : { kind: 'constant', values: [size], because: `sequences of ${argument.name} have ${size} steps` }
  }

export const recurrent: readonly (Rule | undefined)[] = Array.from({ length: 5 }, (_, slot) =>
  slot === 4 ? lengths(0, (argument) => (argument.int('layout') === 1 ? 1 : 0)) : undefined,
)

export const MASK: Rule = constant(1, 'mask')

/** Of an operand that a formula turns into a mask: `1 - mask`. */
export const MASK_COMPLEMENT: Rule = (argument) => {
  const ones = argument.numbers(0)
  return ones?.length === 1 && ones[0] === 1 && argument.slot === 1
    ? { kind: 'constant', values: [1], because: `mask that ${argument.name} inverts` }
    : undefined
}

/** One length per row, or a mask per token. */
export const MASK_INDEX: Rule = (argument) => {
  const [shape, batch, length] = [argument.shape(), argument.size(0, 0), argument.size(0, 1)]
  if (shape?.length !== 1 || length === undefined || shape[0] !== batch) return MASK(argument)
  return { kind: 'constant', values: [length], because: `sequences of ${argument.name} have ${length} steps` }
}

/** Token ids, then kinds of tokens; the tables are the third, fourth and fifth input. */
export const EMBED: readonly (Rule | undefined)[] = [
  (argument) => into(argument, argument.size(2, 0), 'token ids'),
  (argument) => into(argument, argument.size(4, 0), 'token types'),
  undefined,
  undefined,
  undefined,
  undefined,
  undefined,
  MASK,
  (argument) => counting(argument, argument.size(3, 0)),
]

export const ROTARY_POSITIONS =
  (positions: number, table: number): Rule =>
  (argument) => {
    const rows = argument.size(table, 0)
    return argument.shape(positions)?.length === 1
      ? { kind: 'constant', values: [0], because: `first position of ${argument.name}` }
      : counting(argument, rows)
  }

export const KEY_LENGTHS: Rule = (argument) => {
  const keys = keyCount(argument)
  return keys === undefined
    ? undefined
    : { kind: 'constant', values: [keys - 1], because: `last key of ${argument.name}` }
}

export const TOTAL_LENGTH: Rule = (argument) => {
  const keys = keyCount(argument)
  return keys === undefined
    ? undefined
    : { kind: 'constant', values: [keys], because: `keys of ${argument.name}` }
}

/** What is new, and what is kept of the past. */
function keyCount(argument: Argument): number | undefined {
  const [fresh, past] = [argument.size(0, 1), argument.has(3) ? argument.size(3, 2) : 0]
  return fresh === undefined || past === undefined ? undefined : fresh + past
}

export const PAST_LENGTH_LIMIT: Rule = (argument) => {
  const [room, fresh] = [argument.size(0, -2), argument.size(1, -2)]
  if (room === undefined || fresh === undefined || fresh > room) return undefined
  return range(0, room - fresh + 1, `where ${argument.name} writes ${fresh} of ${room} rows`)
}

export const NO_PADDING: Rule = (argument) => {
  const keys = argument.size(1, -2)
  return keys === undefined
    ? undefined
    : { kind: 'constant', values: [keys], because: `all ${keys} keys of ${argument.name}` }
}
