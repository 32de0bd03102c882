/**
 * Dynamic dimensions -> the sizes to test them with, one case per combination.
 *
 * A dimension goes by its symbol; one without by `<input>.<axis>`. Sizes that somebody set are part
 * of the test's name, as `@batch=4,seq=16`; the others are chosen with the inputs (graph/input-shapes.ts).
 */
import { ModelTestError } from '../errors.ts'
import type { ScopedGraph } from '../graph/resolve.ts'
import type { TypeTable } from '../graph/infer-types.ts'
import type { ShapeSettings } from './options.ts'

export interface ShapeCase {
  /** Of the symbols that somebody set. */
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
  const choices = symbols.flatMap((symbol) => choiceOf(symbol, sources))
  const count = choices.reduce((product, { sizes }) => product * sizes.length, 1)
  if (count > MAX_COMBINATIONS) throw tooMany(count, choices)
  return combinations(choices).map((sizes) => {
    const shown = choices.map(({ symbol }) => `${cleanSymbol(symbol)}=${sizes[symbol]}`)
    return { sizes, label: shown.length === 0 ? '' : `@${shown.join(',')}` }
  })
}

interface Choice {
  readonly symbol: string
  readonly sizes: readonly number[]
}

function choiceOf(symbol: string, sources: ShapeSources): Choice[] {
  const set = setSizes(symbol, sources)
  return set === undefined ? [] : [{ symbol, sizes: [...new Set(set)] }]
}

function setSizes(symbol: string, { config, sidecar }: ShapeSources): readonly number[] | undefined {
  const kind = kindOf(symbol)
  const ofKind = kind === 'batch' ? config.batch : kind === 'sequence' ? config.sequence : undefined
  return own(config.forced, symbol) ?? ofKind ?? own(sidecar, symbol) ?? own(config.general, symbol)
}

/** A symbol may be called `constructor`. */
function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined
}

type DimKind = 'batch' | 'sequence' | 'other'

/** A past is no sequence of its own: it is set by its name only. */
const KINDS: readonly (readonly [DimKind, RegExp])[] = [
  ['other', /past|cache/],
  ['sequence', /seq|token|length|(^|[_.])(len|time|t|s|l)$/],
  ['batch', /batch|^(n|b|bs|none)$|\.0$/],
]

function kindOf(symbol: string): DimKind {
  return KINDS.find(([, pattern]) => pattern.test(symbol.toLowerCase()))?.[0] ?? 'other'
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
