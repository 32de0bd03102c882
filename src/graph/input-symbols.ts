/**
 * Symbolic dimensions: a name such as "batch_size" or "past_sequence_length + 1" -> a size.
 *
 * Names are free text, so this is a table of habits: what exporters call things, and which sizes
 * are small, run everywhere and fit what models were trained on. An expression over other symbols
 * is worth what they are worth.
 */

/** Where a dimension stands, for names that say too little. */
export interface DimPlace {
  readonly input: string
  readonly rank: number
  readonly axis: number
  /** The fixed size of axis 1, which for images is the number of channels. */
  readonly channels: number | undefined
  readonly isFloat: boolean
  /** Axis 0 is fixed, so that it is no batch. */
  readonly isStacked: boolean
}

/** Long enough that positions differ, short enough for tables of positions in tiny models. */
const SEQUENCE = 8
/** What a decoder remembers; with a sequence it stays below small tables too. */
const PAST = 4
/** What vision models are trained on; those with learned positions run with nothing else. */
const IMAGE = 224
/** Latent images of diffusion models. */
const LATENT = 64
/** One second of speech. */
const SAMPLES = 16_000
/** Frames of a spectrogram. */
const FRAMES = 100

const BATCH =
  /^(?:n|b|bs|nb|none|dynamic|\?)$|batch|^num_(?:images|beams|sentences|sequences)$|(?:^|_)bsz?(?:$|_)/i
/** "max_seq_len_in_batch" is a length. */
const SEQUENTIAL = /seq|len/i
const UNNAMED =
  /^(?:unk__\d+|dim_?\d*|d\d+|s\d+|axis_?\d*|dynamic_axes_\d+|symbol_?\d*|.*_(?:dim|dynamic_axes)_\d+)$/i
const PIXELS =
  /^(?:h|w|height|width|rows|cols|in_?height|in_?width|image_?(?:size|height|width))$|height|width/i
const WAVE = /sample|audio|waveform|wave|pcm/i
const FRAME = /frame|^time|_time|mel/i
const WAVE_INPUTS = /^(?:input_values|audio|waveform|wav|pcm|speech|signal|audio_signal|x_audio)$/i
const PAST_NAME = /^past|cache|[_.]past/i
/** One length per row of a batch. */
const LENGTHS = /(?:^|[-_.])(?:lengths?|lens?)$/i
const CHANNEL = /channel/i

/** A size for a symbol that nothing else says anything about. */
export function defaultSize(symbol: string | undefined, place: DimPlace): number {
  const name = symbol !== undefined && !UNNAMED.test(symbol) ? symbol : undefined
  if (name === undefined) return sizeByPlace(place)
  if (BATCH.test(name) && !SEQUENTIAL.test(name)) return 1
  if (PAST_NAME.test(name) || PAST_NAME.test(place.input)) return PAST
  if (PIXELS.test(name)) return place.channels === 4 ? LATENT : IMAGE
  if (CHANNEL.test(name)) return 3
  if (WAVE.test(name)) return SAMPLES
  if (isWave(place)) return SAMPLES
  return FRAME.test(name) ? FRAMES : SEQUENCE
}

/** Signals have one or two channels; with more it is a spectrogram. */
function isWave({ input, rank, axis, channels, isFloat }: DimPlace): boolean {
  return WAVE_INPUTS.test(input) && isFloat && axis === rank - 1 && (rank < 3 || (channels ?? 1) <= 2)
}

function sizeByPlace(place: DimPlace): number {
  const { input, rank, axis, channels, isFloat, isStacked } = place
  if (axis === 0) return rank === 1 && !LENGTHS.test(input) ? SEQUENCE : 1
  // The states of recurrent layers: layers, batch, width.
  if (rank === 3 && axis === 1 && isStacked) return 1
  if (isWave(place)) return SAMPLES
  if (rank !== 4 || !isFloat) return SEQUENCE
  if (axis === 1) return 3
  return channels === undefined || channels === 1 || channels === 3 ? IMAGE : LATENT
}

/**
 * What a symbol is worth in terms of others: an expression, or "total" as "past" and what is new.
 * Undefined when it stands for itself, or when a part is not known.
 */
export function derivedSize(
  symbol: string,
  symbols: ReadonlySet<string>,
  sizeOf: (other: string) => number | undefined,
): number | undefined {
  const total = /^(?:total|kv|full)_(.+)$|^(.+)_total$/i.exec(symbol)
  const rest = total?.[1] ?? total?.[2]
  if (rest !== undefined) return sumOf(pastAndNew(rest, symbols), sizeOf)
  return isExpression(symbol) ? evaluate(symbol, sizeOf) : undefined
}

/** "past + 1": a mask of so many entries goes with one new token at a time. */
export function isOneMore(symbol: string): boolean {
  return /^past\w*\s*\+\s*1$/i.test(symbol)
}

/** The number of tokens that are not of the past. */
export function isNewTokens(symbol: string): boolean {
  return SEQUENTIAL.test(symbol) && !/past|total|encoder_s/i.test(symbol)
}

/** Characters; exporters write a few names, and brackets nest. */
const MAX_EXPRESSION = 512

/** Whether a symbol is made of others. */
export function isExpression(symbol: string): boolean {
  return symbol.length <= MAX_EXPRESSION && /[+*/()-]/.test(symbol) && parse(symbol) !== undefined
}

/** The symbols that an expression is made of; none if it is no expression. */
export function symbolsOf(symbol: string): string[] {
  const names: string[] = []
  if (isExpression(symbol)) evaluate(symbol, (name) => names.push(name))
  return names
}

function pastAndNew(rest: string, symbols: ReadonlySet<string>): readonly string[] {
  const { past, fresh } = lengthsAmong(symbols)
  const added = symbols.has(rest) ? rest : fresh
  return past === undefined || added === undefined ? [] : [past, added]
}

interface Lengths {
  readonly past: string | undefined
  readonly fresh: string | undefined
}

const lengths = new WeakMap<ReadonlySet<string>, Lengths>()

function lengthsAmong(symbols: ReadonlySet<string>): Lengths {
  const known = lengths.get(symbols)
  if (known !== undefined) return known
  const all = [...symbols]
  const found = {
    past: all.find((name) => /^past/i.test(name)),
    fresh: all.find((name) => /seq|len/i.test(name) && !/past|total|encoder/i.test(name)),
  }
  lengths.set(symbols, found)
  return found
}

function sumOf(names: readonly string[], sizeOf: (name: string) => number | undefined): number | undefined {
  if (names.length === 0) return undefined
  const sizes = names.map(sizeOf)
  return sizes.every((size) => size !== undefined) ? sizes.reduce((sum, size) => sum + size!, 0) : undefined
}

function evaluate(text: string, sizeOf: (name: string) => number | undefined): number | undefined {
  const value = parse(text)?.(sizeOf)
  return value === undefined || !Number.isFinite(value) ? undefined : Math.max(0, Math.floor(value))
}

type Term = (sizeOf: (name: string) => number | undefined) => number

/** Sums, products and quotients over names and numbers; undefined for anything else. */
function parse(text: string): Term | undefined {
  const tokens = text.match(/[A-Za-z_][\w.]*|\d+|\/\/|[-+*/()]|\S/g) ?? []
  let at = 0
  const sum = (): Term | undefined => chain(product, ['+', '-'])
  const product = (): Term | undefined => chain(atom, ['*', '/', '//'])
  function chain(next: () => Term | undefined, operators: readonly string[]): Term | undefined {
    let left = next()
    while (left !== undefined && operators.includes(tokens[at] ?? '')) {
      const [operator, a, b] = [tokens[at++]!, left, next()]
      left = b === undefined ? undefined : (sizeOf) => apply(operator, a(sizeOf), b(sizeOf))
    }
    return left
  }
  function atom(): Term | undefined {
    const token = tokens[at++]
    if (token === undefined) return undefined
    if (/^\d+$/.test(token)) return () => Number(token)
    if (/^[A-Za-z_]/.test(token)) return (sizeOf) => sizeOf(token) ?? Number.NaN
    if (token !== '(') return undefined
    const inner = sum()
    return tokens[at++] === ')' ? inner : undefined
  }
  const result = sum()
  return at === tokens.length ? result : undefined
}

function apply(operator: string, a: number, b: number): number {
  if (operator === '+') return a + b
  if (operator === '-') return a - b
  return operator === '*' ? a * b : Math.floor(a / b)
}
