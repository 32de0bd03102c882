/**
 * What the inputs of a model mean: graph and types -> a domain for every input that has one.
 *
 * An input is followed through operators that only move or convert its values to those that ask
 * something of them (input-rules.ts); where several do, the strictest counts. Names decide only
 * what the graph leaves open. An input without a domain may hold anything its dtype can.
 *
 * Types with fixed sizes give sharper answers: see `fixInputShapes` of input-shapes.ts.
 */
import { type DType, dtypeFromOnnx } from '../tensor/dtype.ts'
import type { Dim } from '../onnx/value-type.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { foldShapes } from './fold-shapes.ts'
import type { TypeTable } from './infer-types.ts'
import { Argument, operatorOf } from './input-arguments.ts'
import { type InputDomain, isGuess, narrow, shifted } from './input-domain.ts'
import { dataLengthAmong, domainByName, type NamedDomain } from './input-names.ts'
import { demandOf } from './input-rules.ts'
import { type Use, type Uses, usesOf } from './input-uses.ts'
import type { ScopedGraph, Value } from './resolve.ts'

export type { InputDomain } from './input-domain.ts'

export function inputDomains(graph: ScopedGraph, types: TypeTable): Map<Value, InputDomain> {
  const search = new Search(graph, types)
  const domains = new Map<Value, InputDomain>()
  const dataLength = once(() => dataLengthAmong(graph.inputs, types))
  for (const value of graph.inputs) {
    const type = types.get(value)
    const dtype = type?.kind === 'tensor' ? dtypeFromOnnx(type.dataType) : undefined
    if (dtype === undefined || type?.kind !== 'tensor') continue
    const found = search.domainOf(value)
    const named = domainByName({ name: value.written, dtype, shape: type.shape, dataLength })
    const domain = named === undefined ? found : joined(found, named, type.shape)
    if (domain !== undefined && suits(domain, dtype)) domains.set(value, domain)
  }
  return domains
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}

/** A name counts where the graph is silent; masks and positions also where it only gives bounds. */
function joined(
  found: InputDomain | undefined,
  named: NamedDomain,
  shape: readonly Dim[] | undefined,
): InputDomain {
  if (found === undefined || isGuess(found)) return named.domain
  if (!named.isStrict || found.kind !== 'range' || runsOver(named.domain, found, shape)) return found
  return narrow(found, named.domain) ?? found
}

/** Whether counting would leave the rows that there are. */
function runsOver(
  domain: InputDomain,
  { low, high }: { low: number; high: number },
  shape: readonly Dim[] | undefined,
): boolean {
  if (domain.kind !== 'counting') return false
  const size = shape?.[domain.axis]
  return domain.start < low || domain.start + (typeof size === 'number' ? size : 1) > high
}

/** A number is no text. */
function suits(domain: InputDomain, dtype: DType): boolean {
  if (dtype !== 'string') return true
  return domain.kind === 'choices' && domain.values.every((value) => typeof value === 'string')
}

/** Operators that hand on the values of their first input, some of them, or in another order. */
const MOVES = new Set([
  'Cast',
  'CastLike',
  'Identity',
  'Unsqueeze',
  'Squeeze',
  'Reshape',
  'Flatten',
  'Transpose',
  'Expand',
  'Tile',
  'Slice',
  'Split',
  'Gather',
  'GatherElements',
  'GatherND',
  'DepthToSpace',
  'SpaceToDepth',
])

/** Operators whose result is positive where all that they take together is. */
const POOLS = new Set([
  'ReduceSum',
  'ReduceMean',
  'ReduceMax',
  'ReduceMin',
  'GlobalAveragePool',
  'AveragePool',
])

/** Longer chains of operators that only move values are no real models, and would exhaust the stack. */
const MAX_DEPTH = 500

/** Operators that keep the position of every element, so that listed values stay in place. */
const KEEPS_ORDER = new Set(['Cast', 'CastLike', 'Identity', 'Unsqueeze', 'Squeeze', 'Reshape', 'Flatten'])

class Search {
  readonly #uses: Uses
  readonly #types: TypeTable
  readonly #folded: ReadonlyMap<Value, Tensor>
  readonly #known = new Map<Value, InputDomain | undefined>()
  #depth = 0

  constructor(graph: ScopedGraph, types: TypeTable) {
    this.#uses = usesOf(graph)
    this.#types = types
    this.#folded = foldShapes(graph, types)
  }

  domainOf(value: Value): InputDomain | undefined {
    if (this.#known.has(value) || this.#depth > MAX_DEPTH) return this.#known.get(value)
    this.#depth++
    // Known before it is entered: unsorted files may hold cycles.
    this.#known.set(value, undefined)
    let domain: InputDomain | undefined
    for (const use of this.#uses.of(value)) domain = narrow(domain, this.#demand(use))
    for (const other of this.#uses.othersOf(value)) domain = narrow(domain, loose(this.domainOf(other)))
    this.#known.set(value, domain)
    this.#depth--
    return domain
  }

  #demand({ node, slot }: Use): InputDomain | undefined {
    const argument = new Argument(node, slot, this.#types, this.#folded)
    return demandOf(argument) ?? this.#beyond(argument)
  }

  /** What is asked of the output, where that is the value again. */
  #beyond(argument: Argument): InputDomain | undefined {
    const { node, slot } = argument
    const operator = operatorOf(node)
    if (slot === 0 && MOVES.has(operator)) return this.#moved(argument, operator)
    if (slot === 0 && POOLS.has(operator)) return positive(this.#ofOutputs(argument))
    if (operator === 'Concat') return loose(this.#ofOutputs(argument))
    if (operator === 'Where' && slot > 0) return loose(this.#ofOutputs(argument))
    return operator === 'Add' || operator === 'Sub' ? this.#shifted(argument, operator) : undefined
  }

  #moved(argument: Argument, operator: string): InputDomain | undefined {
    const domain = this.#ofOutputs(argument)
    if (!KEEPS_ORDER.has(operator)) return loose(domain)
    if (domain?.kind !== 'counting') return domain
    return countingBefore(argument, domain)
  }

  /** Ids and positions with a constant offset. */
  #shifted(argument: Argument, operator: string): InputDomain | undefined {
    const other = argument.numbers(1 - argument.slot)
    if (other?.length !== 1 || !Number.isInteger(other[0])) return undefined
    if (operator === 'Sub' && argument.slot === 1) return undefined
    return shifted(this.#ofOutputs(argument), operator === 'Add' ? other[0]! : -other[0]!)
  }

  #ofOutputs({ node }: Argument): InputDomain | undefined {
    let domain: InputDomain | undefined
    for (const output of node.outputs) {
      if (output !== undefined) domain = narrow(domain, this.domainOf(output))
    }
    return domain
  }
}

function positive(domain: InputDomain | undefined): InputDomain | undefined {
  return domain?.kind === 'range' && domain.low >= 0 ? domain : undefined
}

/** What is left of a domain for values whose place or number changes on the way. */
function loose(domain: InputDomain | undefined): InputDomain | undefined {
  if (domain === undefined || domain.kind === 'range' || domain.kind === 'choices') return domain
  if (domain.kind === 'counting') return undefined
  if (domain.values.length === 1) return domain
  const isSizes = domain.values.length > 0 && domain.values.every((value) => value >= 1)
  return isSizes ? { kind: 'constant', values: [SMALL_SIZE], because: domain.because } : undefined
}

/** For a size whose place in a list is not known. */
const SMALL_SIZE = 2

/** Counting along the last axis survives when the last axis does. */
function countingBefore(
  argument: Argument,
  domain: InputDomain & { kind: 'counting' },
): InputDomain | undefined {
  const [before, after] = [argument.shape(0), argument.outputShape()]
  if (before === undefined || after === undefined) return undefined
  const fromEnd = domain.axis - after.length
  const tail = (shape: readonly (number | undefined)[]): string => shape.slice(fromEnd).join()
  if (before.length + fromEnd < 0 || tail(before) !== tail(after)) return undefined
  return { ...domain, axis: before.length + fromEnd }
}
