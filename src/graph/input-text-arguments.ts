/** Texts and keys that an operator can read or look up. */
import type { Rule } from './input-rule.ts'

/** Text that reads as a number. */
export const NUMERIC_TEXT: Rule = (argument) => {
  if (argument.dtype !== 'string' || argument.int('to') === STRING_CODE) return undefined
  const values = isFloatCode(argument.int('to')) ? ['0.5', '1', '-2.25', '3e1'] : ['0', '1', '2', '30']
  return { kind: 'choices', values, because: `text that ${argument.name} reads as numbers` }
}

const STRING_CODE = 8

function isFloatCode(code: number | undefined): boolean {
  return code === 1 || code === 10 || code === 11 || code === 16
}

export const KEYS: Rule = (argument) => {
  const values =
    argument.texts('keys_strings') ?? argument.texts('cats_strings') ?? argument.texts('string_vocabulary')
  const known = values ?? argument.ints('keys_int64s') ?? argument.ints('cats_int64s')
  const isText = argument.dtype === 'string'
  if (known === undefined || known.length === 0 || isText !== (values !== undefined)) return undefined
  return { kind: 'choices', values: known.slice(0, MAX_KEYS), because: `keys of ${argument.name}` }
}

/** Some keys are as good as all of them. */
const MAX_KEYS = 64
