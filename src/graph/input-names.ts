/**
 * What the name of an input says about its values, where the graph says nothing stricter.
 *
 * Only names that are common across exporters, and only with the dtype that they go with.
 */
import { type DType, dtypeFromOnnx } from '../tensor/dtype.ts'
import type { Dim } from '../onnx/value-type.ts'
import type { TypeTable } from './infer-types.ts'
import type { InputDomain } from './input-domain.ts'
import type { Value } from './resolve.ts'

export interface NamedInput {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly Dim[] | undefined
  /** The length of sequences among the inputs, and of which. */
  readonly dataLength: () => DataLength | undefined
}

export interface DataLength {
  readonly input: string
  readonly size: number
}

export interface NamedDomain {
  readonly domain: InputDomain
  /** Whether it counts where the graph gives bounds that it fits. */
  readonly isStrict: boolean
}

interface Habit {
  readonly name: RegExp
  readonly isStrict?: true
  readonly suits: (input: NamedInput) => boolean
  readonly domain: (input: NamedInput) => InputDomain | undefined
}

export function domainByName(input: NamedInput): NamedDomain | undefined {
  const habit = HABITS.find(({ name, suits }) => name.test(input.name) && suits(input))
  const domain = habit?.domain(input)
  return domain === undefined ? undefined : { domain, isStrict: habit?.isStrict ?? false }
}

const isInteger = ({ dtype }: NamedInput): boolean => /^u?int(?:8|16|32|64)$/.test(dtype)
const isFloat = ({ dtype }: NamedInput): boolean => dtype.includes('float')
const isNumber = (input: NamedInput): boolean => isInteger(input) || isFloat(input) || input.dtype === 'bool'
const isSingle = ({ shape }: NamedInput): boolean => shape === undefined || shape.every((dim) => dim === 1)

const fill =
  (value: number, what: string) =>
  ({ name }: NamedInput): InputDomain => ({
    kind: 'constant',
    values: [value],
    because: `"${name}" is named like ${what}`,
  })

const between =
  (low: number, high: number, what: string) =>
  ({ name }: NamedInput): InputDomain => ({
    kind: 'range',
    low,
    high,
    because: `"${name}" is named like ${what}`,
  })

const HABITS: readonly Habit[] = [
  {
    name: /(?:^|[_./])mask$|(?:attention|input|padding|pixel|token|key)_?mask/i,
    isStrict: true,
    suits: isNumber,
    domain: fill(1, 'a mask'),
  },
  { name: /position_?ids|(?:^|[_.])cache_position/i, isStrict: true, suits: isInteger, domain: positions },
  { name: /token_type_ids|segment_ids|type_ids/i, suits: isInteger, domain: fill(0, 'kinds of tokens') },
  {
    name: /(?:^|[_.])(?:input_ids|token_ids|tokens|decoder_input_ids)$/i,
    suits: isInteger,
    domain: between(0, 40, 'token ids'),
  },
  {
    name: /^(?:sr|sample_?rate|sampling_?rate)$/i,
    suits: (input) => isSingle(input) && isNumber(input),
    domain: fill(16_000, 'a sample rate'),
  },
  { name: /(?:^|[-_.])(?:lengths?|lens?|seqlens?)$/i, suits: isInteger, domain: lengths },
  { name: /^(?:timesteps?|time_?step)$/i, suits: isNumber, domain: between(0, 1000, 'steps of a diffusion') },
  { name: /^(?:pixel_values|images?)$/i, suits: isFloat, domain: between(0, 1, 'an image') },
]

/** Along the last axis; the number of rows counts for others. */
function positions(input: NamedInput): InputDomain | undefined {
  const { shape, name } = input
  const axis = (shape?.length ?? 0) - 1
  if (axis < 0) return fill(0, 'a position')(input)
  return { kind: 'counting', start: 0, axis, because: `"${name}" is named like positions` }
}

function lengths(input: NamedInput): InputDomain | undefined {
  const data = input.dataLength()
  return data === undefined ? fill(1, 'lengths')(input) : fill(data.size, `lengths of "${data.input}"`)(input)
}

/** The longest axis of the data: the last one of the first input with several axes. */
export function dataLengthAmong(inputs: readonly Value[], types: TypeTable): DataLength | undefined {
  for (const input of inputs) {
    const type = types.get(input)
    if (type?.kind !== 'tensor' || type.shape === undefined || type.shape.length < 2) continue
    const dtype = dtypeFromOnnx(type.dataType)
    const size = type.shape.length === 3 && dtype?.includes('float') ? longest(type.shape) : type.shape.at(-1)
    if (typeof size === 'number') return { input: input.written, size }
  }
  return undefined
}

function longest(shape: readonly Dim[]): number | undefined {
  const sizes = shape.slice(1).filter((dim) => typeof dim === 'number')
  return sizes.length === 0 ? undefined : Math.max(...sizes)
}
