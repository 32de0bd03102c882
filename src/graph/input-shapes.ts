/**
 * Shapes for the inputs of a model: every open dimension gets a size.
 *
 * The same symbol has the same size everywhere. Which size, in this order:
 * 1. the shape given for that very input;
 * 2. the size given for the symbol;
 * 3. what the graph fixes: weights of MatMul, Gemm, Conv and LSTM, targets of Reshape, partners of
 *    Concat and of arithmetic, declared shapes of inner values;
 * 4. what other symbols make of it: "past_sequence_length + 1", "total_…" as past and new, or the
 *    sum that the graph concatenates;
 * 5. the habits of input-symbols.ts by name and place: 1 for batches, 8 for sequences, 224 for
 *    pictures; enlarged to what windows need at least and to what Reshape must divide.
 */
import { ModelTestError } from '../errors.ts'
import { type Dim, type TensorType, tensorType, type ValueType } from '../onnx/value-type.ts'
import { dtypeFromOnnx } from '../tensor/dtype.ts'
import type { TypeTable } from './infer-types.ts'
import { type Demands, sizeOfAxis } from './input-axes.ts'
import { demandsOf, dimId, followedShapes } from './input-demands.ts'
import {
  type DimPlace,
  defaultSize,
  derivedSize,
  isExpression,
  isNewTokens,
  isOneMore,
  symbolsOf,
} from './input-symbols.ts'
import { operatorOf } from './input-arguments.ts'
import type { ScopedGraph, Value } from './resolve.ts'

/** Inputs whose type is no tensor, or unknown, are absent. */
export function inputShapes(
  graph: ScopedGraph,
  types: TypeTable,
  sizes: Readonly<Record<string, number>> = {},
  perInput: Readonly<Record<string, readonly number[]>> = {},
): Map<Value, number[]> {
  const choice = new SizeChoice(graph, types, sizes, perInput)
  const shapes = new Map<Value, number[]>()
  for (const value of graph.inputs) {
    const type = types.get(value)
    if (type?.kind !== 'tensor') continue
    const given = Object.hasOwn(perInput, value.written) ? perInput[value.written] : undefined
    if (given !== undefined) shapes.set(value, fitting(value, type, given))
    else
      shapes.set(
        value,
        openShape(value, type).map((dim, axis) => choice.size(value, axis, dim)),
      )
  }
  return shapes
}

/** The symbols that the inputs of a graph leave open, in order; of expressions, what they are made of. */
export function dynamicSymbols(graph: ScopedGraph, types: TypeTable): string[] {
  const symbols = new Set<string>()
  for (const dim of graph.inputs.flatMap((value) => dimsOf(types, value))) {
    if (typeof dim !== 'string') continue
    for (const name of isExpression(dim) ? symbolsOf(dim) : [dim]) symbols.add(name)
  }
  return [...symbols]
}

/**
 * The types of a graph whose inputs have these shapes: symbols become numbers wherever they stand,
 * and shapes that nobody declares follow where operators are simple.
 */
export function fixInputShapes(
  graph: ScopedGraph,
  types: TypeTable,
  shapes: ReadonlyMap<Value, readonly number[]>,
): TypeTable {
  const fixed = fixSymbols(types, shapes)
  for (const [value, shape] of followedShapes(graph, fixed)) {
    const type = fixed.get(value)
    if (type?.kind !== 'tensor' || (type.shape !== undefined && type.shape.length !== shape.length)) continue
    const dims = shape.map((size, axis) => size ?? type.shape?.[axis])
    fixed.set(value, tensorType(type.dataType, dims))
  }
  return fixed
}

function fixSymbols(types: TypeTable, shapes: ReadonlyMap<Value, readonly number[]>): Map<Value, ValueType> {
  const sizes = new Map<string, number>()
  for (const [value, shape] of shapes) {
    for (const [axis, dim] of dimsOf(types, value).entries()) {
      if (typeof dim === 'string' && shape[axis] !== undefined) sizes.set(dim, shape[axis])
    }
  }
  const fixed = new Map(types)
  const symbols = new Set(sizes.keys())
  const sizeOf = (dim: Dim): Dim =>
    typeof dim === 'string'
      ? (sizes.get(dim) ?? derivedSize(dim, symbols, (name) => sizes.get(name)) ?? dim)
      : dim
  for (const [value, type] of types) {
    if (type.kind === 'tensor' && type.shape?.some((dim) => typeof dim === 'string')) {
      fixed.set(value, tensorType(type.dataType, type.shape.map(sizeOf)))
    }
  }
  for (const [value, shape] of shapes) {
    const type = types.get(value)
    if (type?.kind === 'tensor') fixed.set(value, tensorType(type.dataType, shape))
  }
  return fixed
}

function dimsOf(types: TypeTable, value: Value): readonly Dim[] {
  const type = types.get(value)
  return type?.kind === 'tensor' ? (type.shape ?? []) : []
}

class SizeChoice {
  readonly #types: TypeTable
  readonly #symbols: ReadonlySet<string>
  readonly #graph: ScopedGraph
  #knownDemands: Demands | undefined
  /** By dimension: what was given, and what has been chosen. */
  readonly #sizes = new Map<string, number>()
  readonly #places = new Map<string, { symbol: string | undefined; place: DimPlace }>()
  readonly #open = new Set<string>()
  /** By representative of dimensions that must be equal: the size of the first that has one. */
  #sizesOfEqual: Map<string, number> | undefined
  #firstOfEqual: Map<string, { symbol: string | undefined; place: DimPlace }> | undefined
  #takesOneToken: boolean | undefined

  constructor(
    graph: ScopedGraph,
    types: TypeTable,
    sizes: Readonly<Record<string, number>>,
    perInput: Readonly<Record<string, readonly number[]>>,
  ) {
    this.#types = types
    this.#graph = graph
    this.#symbols = new Set(dynamicSymbols(graph, types))
    for (const value of graph.inputs)
      this.#note(value, Object.hasOwn(perInput, value.written) ? perInput[value.written] : undefined)
    for (const [symbol, size] of Object.entries(sizes)) {
      if (!Number.isSafeInteger(size) || size < 0) throw noSize(symbol, size)
      this.#sizes.set(dimId('', 0, symbol), size)
    }
  }

  size(value: Value, axis: number, dim: Dim): number {
    return typeof dim === 'number' ? dim : this.#choose(dimId(value.written, axis, dim))
  }

  /** Asked for only where something is open. */
  get #demands(): Demands {
    this.#knownDemands ??= demandsOf(this.#graph, this.#types)
    return this.#knownDemands
  }

  /** Where each dimension stands first, and the size that it has in a given shape. */
  #note(value: Value, given: readonly number[] | undefined): void {
    const type = this.#types.get(value)
    if (type?.kind !== 'tensor') return
    const shape = openShape(value, type)
    const isFloat = dtypeFromOnnx(type.dataType)?.includes('float') ?? false
    const channels = typeof shape[1] === 'number' ? shape[1] : undefined
    for (const [axis, dim] of shape.entries()) {
      if (typeof dim === 'number') continue
      const id = dimId(value.written, axis, dim)
      const isStacked = typeof shape[0] === 'number'
      const place = { input: value.written, rank: shape.length, axis, channels, isFloat, isStacked }
      if (!this.#places.has(id)) this.#places.set(id, { symbol: dim, place })
      if (given?.[axis] !== undefined) this.#sizes.set(id, given[axis])
    }
  }

  #choose(id: string): number {
    const known = this.#sizes.get(id)
    if (known !== undefined) return known
    // Definitions in a circle end at the habits, and so do those that go on and on.
    const isCircle = this.#open.has(id) || this.#open.size > MAX_DEPTH
    this.#open.add(id)
    const size = (isCircle ? undefined : (this.#ofEqual(id) ?? this.#demanded(id))) ?? this.#habit(id)
    this.#open.delete(id)
    if (!isCircle) this.#keep(id, size)
    return size
  }

  #keep(id: string, size: number): void {
    this.#sizes.set(id, size)
    const root = this.#demands.find(id)
    if (this.#sizesOfEqual?.has(root) === false) this.#sizesOfEqual.set(root, size)
  }

  /** A dimension that must be equal to this one, and has a size already. */
  #ofEqual(id: string): number | undefined {
    this.#sizesOfEqual ??= this.#firstByRoot(this.#sizes)
    return this.#sizesOfEqual.get(this.#demands.find(id))
  }

  #firstByRoot<T>(byId: ReadonlyMap<string, T>): Map<string, T> {
    const first = new Map<string, T>()
    for (const [id, item] of byId) {
      const root = this.#demands.find(id)
      if (!first.has(root)) first.set(root, item)
    }
    return first
  }

  #demanded(id: string): number | undefined {
    const exact = this.#demands.exactOf(id)
    if (exact !== undefined) return exact
    const symbol = this.#places.get(id)?.symbol
    const sizeOf = (name: string): number => this.#choose(dimId('', 0, name))
    const derived = symbol === undefined ? undefined : derivedSize(symbol, this.#symbols, sizeOf)
    return derived ?? sizeOfAxis(this.#demands.sumOf(id), (other) => this.#choose(other))
  }

  /** Asked once for all: whether a mask says that tokens come one at a time. */
  get #isOneByOne(): boolean {
    this.#takesOneToken ??= [...this.#places.values()].some(
      ({ symbol }) => symbol !== undefined && isOneMore(symbol),
    )
    return this.#takesOneToken
  }

  /** Of dimensions that must be equal, the first says what they are. */
  #habit(id: string): number {
    this.#firstOfEqual ??= this.#firstByRoot(this.#places)
    const first = this.#firstOfEqual.get(this.#demands.find(id))
    const symbol = id.startsWith('symbol ') ? id.slice('symbol '.length) : undefined
    if (symbol !== undefined && isNewTokens(symbol) && this.#isOneByOne) return 1
    const { place } = this.#places.get(id) ?? first ?? { place: ANYWHERE }
    return this.#demands.enlarged(id, defaultSize(symbol ?? first?.symbol, place))
  }
}

/** Of definitions by definitions; real ones are two deep. */
const MAX_DEPTH = 200

const ANYWHERE: DimPlace = {
  input: '',
  rank: 2,
  axis: 1,
  channels: undefined,
  isFloat: false,
  isStacked: false,
}

/** An input of unknown rank gets the one that its readers work on. */
function openShape(value: Value, { shape }: TensorType): readonly Dim[] {
  if (shape !== undefined) return shape
  const ranks = value.consumers.flatMap((node) => RANKS[operatorOf(node)] ?? [])
  return Array.from<undefined>({ length: ranks[0] ?? 1 })
}

const RANKS: Readonly<Record<string, number>> = {
  Conv: 4,
  ConvTranspose: 4,
  MaxPool: 4,
  AveragePool: 4,
  GlobalAveragePool: 4,
  BatchNormalization: 4,
  MatMul: 2,
  Gemm: 2,
  LSTM: 3,
  GRU: 3,
  RNN: 3,
}

function fitting(value: Value, { shape }: TensorType, given: readonly number[]): number[] {
  const isShape = given.every((size) => Number.isSafeInteger(size) && size >= 0)
  const fits =
    shape === undefined ||
    (shape.length === given.length && shape.every((dim, at) => typeof dim !== 'number' || dim === given[at]))
  if (isShape && fits) return [...given]
  const declared = shape?.map((dim) => dim ?? '?').join(', ')
  throw new ModelTestError(
    'INVALID_OPTION',
    `the shape [${given.join(', ')}] does not fit the input "${value.written}"${declared === undefined ? '' : `, which is [${declared}]`}`,
    { hint: 'Give one whole number per dimension; those that the model fixes stay as they are.' },
  )
}

function noSize(symbol: string, size: number): ModelTestError {
  return new ModelTestError('INVALID_OPTION', `the dimension "${symbol}" cannot have the size ${size}`, {
    hint: 'Sizes are whole numbers, 0 or more.',
  })
}
