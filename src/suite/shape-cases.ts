/**
 * Dynamic dimensions -> the sizes to test them with, one case per combination.
 *
 * A dimension goes by its symbol; one without by `<input>.<axis>`. A symbol that is a sum of others,
 * as exporters write `past_sequence_length + 1`, follows from them. Sizes that somebody set are part
 * of the test's name, as `@batch=4,seq=16`; sizes that nobody set are not.
 */
import { ModelTestError } from '../errors.ts'
import type { ScopedGraph } from '../graph/resolve.ts'
import type { TypeTable } from '../graph/infer-types.ts'
import type { ShapeSettings } from './options.ts'

export interface ShapeCase {
  /** Of every symbol of the model's inputs. */
  readonly sizes: Readonly<Record<string, number>>
  /** For the name: '' or `@batch=4,seq=16`. */
  readonly label: string
}

export interface ShapeSources {
  readonly config: ShapeSettings
  readonly sidecar?: Readonly<Record<string, readonly number[]>> | undefined
  /** For messages. */
  readonly sidecarFile?: string | undefined
}

/** More combinations than this are a mistake, not a wish. */
const MAX_COMBINATIONS = 1000

/** The symbol of a dimension: its own, or that of its place. */
export function symbolOf(dim: string | undefined, input: string, axis: number): string {
  return dim ?? `${input}.${axis}`
}

/** The symbols of the inputs, in order, each once. */
export function dynamicDims(graph: ScopedGraph, types: TypeTable): string[] {
  const symbols = graph.inputs.flatMap((value) => {
    const type = types.get(value)
    if (type?.kind !== 'tensor') return []
    const dims = type.shape ?? []
    return dims.flatMap((dim, axis) => (typeof dim === 'number' ? [] : [symbolOf(dim, value.name, axis)]))
  })
  return [...new Set(symbols)]
}

export function shapeCases(symbols: readonly string[], sources: ShapeSources): ShapeCase[] {
  checkSidecar(symbols, sources)
  const sums = new Map(symbols.flatMap((symbol) => sumOf(symbol, symbols, sources)))
  const free = symbols.filter((symbol) => !sums.has(symbol))
  const choices = free.map((symbol) => choiceOf(symbol, sources))
  const count = choices.reduce((product, { sizes }) => product * sizes.length, 1)
  if (count > MAX_COMBINATIONS) throw tooMany(count, choices)
  return combinations(choices).map((sizes) => {
    const shown = choices
      .filter(({ isSet }) => isSet)
      .map(({ symbol }) => `${cleanSymbol(symbol)}=${sizes[symbol]}`)
    const all = symbols.map((symbol) => [symbol, sizes[symbol] ?? sums.get(symbol)!(sizes)] as const)
    return { sizes: Object.fromEntries(all), label: shown.length === 0 ? '' : `@${shown.join(',')}` }
  })
}

interface Choice {
  readonly symbol: string
  readonly sizes: readonly number[]
  readonly isSet: boolean
}

function choiceOf(symbol: string, sources: ShapeSources): Choice {
  const set = setSizes(symbol, sources)
  if (set !== undefined) return { symbol, sizes: [...new Set(set)], isSet: true }
  return { symbol, sizes: [DEFAULT_SIZES[kindOf(symbol)]], isSet: false }
}

function setSizes(symbol: string, { config, sidecar }: ShapeSources): readonly number[] | undefined {
  const kind = kindOf(symbol)
  const ofKind = kind === 'batch' ? config.batch : kind === 'sequence' ? config.sequence : undefined
  return config.forced[symbol] ?? ofKind ?? sidecar?.[symbol] ?? config.general[symbol]
}

type DimKind = 'batch' | 'sequence' | 'past' | 'image' | 'other'

/** Images are halved several times on their way; a past is shorter than what follows, to tell them apart. */
const DEFAULT_SIZES: Readonly<Record<DimKind, number>> = {
  batch: 1,
  sequence: 8,
  past: 4,
  image: 64,
  other: 8,
}

const KINDS: readonly (readonly [DimKind, RegExp])[] = [
  ['past', /past|cache/],
  ['sequence', /seq|token|length|(^|[_.])(len|time|t|s|l)$/],
  ['batch', /batch|^(n|b|bs|none)$|\.0$/],
  ['image', /height|width|^(h|w)$|image/],
]

function kindOf(symbol: string): DimKind {
  return KINDS.find(([, pattern]) => pattern.test(symbol.toLowerCase()))?.[0] ?? 'other'
}

/** `a + b + 1` of known symbols, unless a size is set for the whole of it. */
function sumOf(
  symbol: string,
  symbols: readonly string[],
  sources: ShapeSources,
): [string, (sizes: Readonly<Record<string, number>>) => number][] {
  const terms = termsOf(symbol)
  const isSum = terms.length > 1 && terms.every((term) => /^\d+$/.test(term) || symbols.includes(term))
  if (!isSum || setSizes(symbol, sources) !== undefined) return []
  return [[symbol, (sizes) => terms.reduce((sum, term) => sum + (sizes[term] ?? Number(term)), 0)]]
}

/** `total_seq_len` is what exporters call `past_seq_len + seq_len`. */
function termsOf(symbol: string): string[] {
  if (symbol.startsWith('total_')) return [symbol.replace('total_', 'past_'), symbol.replace('total_', '')]
  return symbol.split('+').map((term) => term.trim())
}

function combinations(choices: readonly Choice[]): Record<string, number>[] {
  return choices.reduce<Record<string, number>[]>(
    (all, { symbol, sizes }) => all.flatMap((one) => sizes.map((size) => ({ ...one, [symbol]: size }))),
    [{}],
  )
}

function checkSidecar(symbols: readonly string[], { sidecar, sidecarFile }: ShapeSources): void {
  const unknown = Object.keys(sidecar ?? {}).find((symbol) => !symbols.includes(symbol))
  if (unknown === undefined) return
  throw new ModelTestError('INVALID_OPTION', `shapes.${unknown}: the model has no dimension of that name`, {
    hint:
      symbols.length === 0
        ? 'All its dimensions are fixed.'
        : `Its dynamic dimensions are ${symbols.join(', ')}.`,
    ...(sidecarFile === undefined ? {} : { file: sidecarFile }),
  })
}

function tooMany(count: number, choices: readonly Choice[]): ModelTestError {
  const sizes = choices.map(({ symbol, sizes: { length } }) => `${symbol}: ${length}`).join(', ')
  return new ModelTestError('INVALID_OPTION', `the shapes give ${count} combinations (${sizes})`, {
    hint: `Up to ${MAX_COMBINATIONS} are tested: set fewer sizes.`,
  })
}

/** Names of tests hold no blanks, and none of the characters that patterns of names give a meaning. */
function cleanSymbol(symbol: string): string {
  return symbol.replaceAll(/[^\w.]/g, '_')
}
