/**
 * A model file -> its index, in one pass over the wire format.
 *
 * Weights are stepped over, never read. A message that is split over several fields counts as one,
 * as protobuf demands.
 */
import type { ByteSource } from '../bytes/byte-source.ts'
import { BYTES, MAX_DEPTH, VARINT, WireReader } from '../bytes/wire-reader.ts'
import { ModelTestError } from '../errors.ts'
import { type TensorInfo, readTensorInfo } from '../tensor/tensor-proto.ts'
import { ATTRIBUTE, ENTRY, FUNCTION, GRAPH, MODEL, NODE, OPSET, SPARSE, VALUE_INFO } from './fields.ts'
import type {
  FieldRange,
  FunctionEntry,
  GraphIndex,
  InitializerEntry,
  ModelIndex,
  NodeEntry,
  OpsetImport,
  Range,
  SubgraphEntry,
  ValueEntry,
} from './model-index.ts'

/**
 * Names, nodes and values in one model, at most. The largest real models have some hundred
 * thousand; a file of empty fields would otherwise cost a hundred times its size in memory.
 */
const MAX_ENTRIES = 5_000_000

/** The memory of other things, in names; a file may have far more of them than any model has. */
const COST = { node: 4, initializer: 16, value: 2, rest: 2 } as const

/** Sizes of one tensor. Runtimes stop far below. */
const MAX_RANK = 1024

/** Each level of subgraph is three levels of messages: node, attribute, graph. */
const MAX_SUBGRAPH_DEPTH = Math.floor(MAX_DEPTH / 3)

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] }

export class Indexer {
  readonly #reader: WireReader
  readonly #source: ByteSource
  #entries = 0

  constructor(source: ByteSource) {
    this.#source = source
    this.#reader = new WireReader(source)
  }

  model(): ModelIndex & { graph: GraphIndex } {
    const reader = this.#reader
    let [producerName, producerVersion] = ['', '']
    const model = {
      source: this.#source,
      irVersion: 0,
      producer: '',
      opsets: [] as OpsetImport[],
      metadata: [] as [string, string][],
      graph: undefined as Mutable<GraphIndex> | undefined,
      functions: [] as FunctionEntry[],
      rest: [] as FieldRange[],
    }
    this.#each(0, this.#source.size, (field) => {
      if (field === MODEL.graph) {
        const { start, stop } = this.#message('the graph')
        model.graph ??= emptyGraph()
        this.#graph(model.graph, start, stop, 0)
        return
      }
      if (field === MODEL.functions) {
        const { start, stop } = this.#message('a function')
        model.functions.push(this.#function(start, stop))
        return
      }
      this.#count(COST.rest)
      model.rest.push({ field, start: reader.fieldStart, stop: reader.stop })
      if (field === MODEL.irVersion) model.irVersion = this.#integer('the IR version')
      else if (field === MODEL.producerName) producerName = this.#string('the producer')
      else if (field === MODEL.producerVersion) producerVersion = this.#string('the producer version')
      else if (field === MODEL.opsetImport) model.opsets.push(this.#opset())
      else if (field === MODEL.metadataProps) model.metadata.push(this.#entry())
    })
    model.producer = `${producerName} ${producerVersion}`.trim()
    return model as ModelIndex & { graph: GraphIndex }
  }

  #graph(graph: Mutable<GraphIndex>, start: number, stop: number, depth: number): void {
    const reader = this.#reader
    if (depth > MAX_SUBGRAPH_DEPTH) {
      throw reader.malformed(`subgraphs are nested more than ${MAX_SUBGRAPH_DEPTH} deep`, start)
    }
    this.#each(start, stop, (field) => {
      switch (field) {
        case GRAPH.node: {
          const range = this.#message('a node')
          graph.nodes.push(this.#node(range.start, range.stop, depth))
          return
        }
        case GRAPH.initializer: {
          const range = this.#message('an initializer')
          this.#count(COST.initializer)
          const info = readTensorInfo(reader, range.start, range.stop)
          graph.initializers.push({ ...range, name: info.name, info, sparse: false })
          return
        }
        case GRAPH.sparseInitializer: {
          const range = this.#message('a sparse initializer')
          this.#count(COST.initializer)
          graph.initializers.push(this.#sparseInitializer(range.start, range.stop))
          return
        }
        case GRAPH.input:
          graph.inputs.push(this.#value('a graph input'))
          return
        case GRAPH.output:
          graph.outputs.push(this.#value('a graph output'))
          return
        case GRAPH.valueInfo:
          graph.valueInfos.push(this.#value('a value info'))
          return
        default:
          this.#count(COST.rest)
          graph.rest.push({ field, start: reader.fieldStart, stop: reader.stop })
          if (field === GRAPH.name) graph.name = this.#string('the graph name')
      }
    })
  }

  #node(start: number, stop: number, depth: number): NodeEntry {
    this.#count(COST.node)
    const node = {
      start,
      stop,
      name: '',
      opType: '',
      domain: '',
      overload: '',
      inputs: [] as string[],
      outputs: [] as string[],
      subgraphs: NO_SUBGRAPHS as SubgraphEntry[],
    }
    this.#each(start, stop, (field) => {
      if (field === NODE.input) node.inputs.push(this.#string('an input name'))
      else if (field === NODE.output) node.outputs.push(this.#string('an output name'))
      else if (field === NODE.opType) node.opType = this.#string('an op type')
      else if (field === NODE.name) node.name = this.#string('a node name')
      else if (field === NODE.domain) node.domain = this.#string('a domain')
      else if (field === NODE.overload) node.overload = this.#string('an overload')
      else if (field === NODE.attribute) {
        const range = this.#message('an attribute')
        for (const found of this.#subgraphs(range.start, range.stop, depth)) {
          if (node.subgraphs === NO_SUBGRAPHS) node.subgraphs = []
          node.subgraphs.push(found)
        }
      }
    })
    // A list that grew from nothing has room for seventeen names; copied, for as many as it holds.
    node.inputs = node.inputs.slice()
    node.outputs = node.outputs.slice()
    return node
  }

  #subgraphs(start: number, stop: number, depth: number): SubgraphEntry[] {
    let attribute = ''
    let single: Mutable<GraphIndex> | undefined
    const graphs: Mutable<GraphIndex>[] = []
    this.#each(start, stop, (field) => {
      if (field === ATTRIBUTE.name) attribute = this.#string('an attribute name')
      else if (field === ATTRIBUTE.g) {
        const range = this.#message('a subgraph')
        single ??= emptyGraph()
        this.#graph(single, range.start, range.stop, depth + 1)
      } else if (field === ATTRIBUTE.graphs) {
        const range = this.#message('a subgraph')
        const graph = emptyGraph()
        graphs.push(graph)
        this.#graph(graph, range.start, range.stop, depth + 1)
      }
    })
    if (single === undefined && graphs.length === 0) return NO_SUBGRAPHS as SubgraphEntry[]
    return [...(single === undefined ? [] : [single]), ...graphs].map((graph) => ({ attribute, graph }))
  }

  #function(start: number, stop: number): FunctionEntry {
    const fn = {
      start,
      stop,
      domain: '',
      name: '',
      overload: '',
      inputs: [] as string[],
      outputs: [] as string[],
      nodes: [] as NodeEntry[],
    }
    this.#each(start, stop, (field) => {
      if (field === FUNCTION.name) fn.name = this.#string('a function name')
      else if (field === FUNCTION.domain) fn.domain = this.#string('a function domain')
      else if (field === FUNCTION.overload) fn.overload = this.#string('an overload')
      else if (field === FUNCTION.input) fn.inputs.push(this.#string('a function input'))
      else if (field === FUNCTION.output) fn.outputs.push(this.#string('a function output'))
      else if (field === FUNCTION.node) {
        const range = this.#message('a node')
        fn.nodes.push(this.#node(range.start, range.stop, 0))
      }
    })
    return fn
  }

  #sparseInitializer(start: number, stop: number): InitializerEntry {
    let info: TensorInfo | undefined
    const dims: number[] = []
    this.#each(start, stop, (field) => {
      if (field === SPARSE.values) {
        const range = this.#message('sparse values')
        info = readTensorInfo(this.#reader, range.start, range.stop)
      } else if (field === SPARSE.dims) {
        for (const dim of this.#reader.integers('a dimension')) dims.push(this.#dimension(dim, dims.length))
      }
    })
    if (info === undefined) throw this.#reader.malformed('a sparse initializer has no values', start)
    return { start, stop, name: info.name, info: { ...info, dims }, sparse: true }
  }

  #dimension(dim: bigint, axis: number): number {
    if (axis >= MAX_RANK) throw this.#reader.malformed(`a tensor has more than ${MAX_RANK} dimensions`)
    if (dim >= 0n && dim <= Number.MAX_SAFE_INTEGER) return Number(dim)
    throw this.#reader.malformed(`a tensor has a dimension of size ${dim}`)
  }

  #value(what: string): ValueEntry {
    const { start, stop } = this.#message(what)
    this.#count(COST.value)
    let name = ''
    this.#each(start, stop, (field) => {
      if (field === VALUE_INFO.name) name = this.#string('a value name')
    })
    return { start, stop, name }
  }

  #opset(): OpsetImport {
    const { start, stop } = this.#message('an opset import')
    let [domain, version] = ['', 0]
    this.#each(start, stop, (field) => {
      if (field === OPSET.domain) domain = this.#string('a domain')
      else if (field === OPSET.version) version = this.#integer('an opset version')
    })
    return { domain, version }
  }

  #entry(): [string, string] {
    const { start, stop } = this.#message('a metadata entry')
    let [key, value] = ['', '']
    this.#each(start, stop, (field) => {
      if (field === ENTRY.key) key = this.#string('a metadata key')
      else if (field === ENTRY.value) value = this.#string('a metadata value')
    })
    return [key, value]
  }

  /** Calls `visit` for each field of a message; what it reads inside moves nothing outside. */
  #each(start: number, stop: number, visit: (field: number) => void): void {
    const reader = this.#reader
    reader.seek(start)
    while (reader.next(stop)) {
      const resume = reader.stop
      visit(reader.field)
      reader.seek(resume)
    }
  }

  #message(what: string): Range {
    this.#reader.expect(BYTES, what)
    this.#count(1)
    return { start: this.#reader.start, stop: this.#reader.stop }
  }

  #string(what: string): string {
    this.#reader.expect(BYTES, what)
    this.#count(1)
    return this.#reader.string
  }

  #integer(what: string): number {
    this.#reader.expect(VARINT, what)
    return this.#reader.number
  }

  #count(entries: number): void {
    this.#entries += entries
    if (this.#entries <= MAX_ENTRIES) return
    throw new ModelTestError(
      'MODEL_TOO_LARGE',
      `the model has more nodes, names and values than the limit of ${MAX_ENTRIES} allows`,
      {
        file: this.#source.name,
        offset: this.#reader.fieldStart,
        hint: 'No real model is known to be this large; check where the file comes from, or split it.',
      },
    )
  }
}

const NO_SUBGRAPHS: readonly SubgraphEntry[] = Object.freeze([])

function emptyGraph(): Mutable<GraphIndex> {
  return { name: '', nodes: [], initializers: [], inputs: [], outputs: [], valueInfos: [], rest: [] }
}
