/**
 * What a model is made of: an index -> numbers and lists for people and programs.
 *
 * Counts run over the main graph and all subgraphs. Nothing is decoded but the types of
 * inputs and outputs.
 */
import { WireReader } from '../bytes/wire-reader.ts'
import { byteLength, dtypeFromOnnx } from '../tensor/dtype.ts'
import { constantContent, isConstant } from './constant.ts'
import type { GraphIndex, ModelIndex, ValueEntry } from './model-index.ts'
import { qualifiedName } from './operator-name.ts'
import { type Dim, readValueInfoType, type ValueType } from './value-type.ts'
import type { TensorInfo } from '../tensor/tensor-proto.ts'

export interface ModelSummary {
  readonly irVersion: number
  readonly producer: string
  readonly graphName: string
  readonly opsets: readonly { readonly domain: string; readonly version: number }[]
  readonly inputs: readonly ValueSummary[]
  readonly outputs: readonly ValueSummary[]
  /** Symbolic dimensions of inputs, and how many have no name. */
  readonly dynamicDims: { readonly named: readonly string[]; readonly unnamed: number }
  readonly nodes: { readonly total: number; readonly topLevel: number }
  /** Operators by how often they occur, most frequent first; `domain.Op` outside the default domain. */
  readonly ops: Readonly<Record<string, number>>
  readonly subgraphs: { readonly count: number; readonly depth: number }
  readonly functions: readonly string[]
  readonly parameters: {
    readonly count: number
    readonly bytes: number
    readonly byDtype: Readonly<
      Record<string, { readonly tensors: number; readonly count: number; readonly bytes: number }>
    >
  }
  readonly externalFiles: readonly {
    readonly location: string
    readonly tensors: number
    readonly bytes: number
  }[]
  readonly metadata: Readonly<Record<string, string>>
}

export interface ValueSummary {
  readonly name: string
  /** A dtype, or the kind of value where it is no tensor. */
  readonly type: string
  /** Sizes, symbols, or null where not known; null as a whole where the rank is not known. */
  readonly shape: readonly (number | string | null)[] | null
}

export function summarizeModel(model: ModelIndex): ModelSummary {
  const { graph } = model
  const initializers = new Set(graph.initializers.map(({ name }) => name))
  const inputs = graph.inputs.filter(({ name }) => !initializers.has(name))
  const tally = new Tally(model)
  tally.graph(graph, 0)
  const types = inputs.map((entry) => declaredType(model, entry))
  return {
    irVersion: model.irVersion,
    producer: model.producer,
    graphName: graph.name,
    opsets: model.opsets.map(({ domain, version }) => ({
      domain: domain === '' ? 'ai.onnx' : domain,
      version,
    })),
    inputs: inputs.map((entry, at) => valueSummary(entry.name, types[at])),
    outputs: graph.outputs.map((entry) => valueSummary(entry.name, declaredType(model, entry))),
    dynamicDims: dynamicDims(types),
    nodes: { total: tally.nodes, topLevel: graph.nodes.length },
    ops: Object.fromEntries([...tally.ops].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))),
    subgraphs: { count: tally.subgraphs, depth: tally.depth },
    functions: model.functions.map(({ domain, name }) => (domain === '' ? name : `${domain}.${name}`)),
    parameters: tally.parameters(),
    externalFiles: [...tally.external].map(([location, { tensors, bytes }]) => ({
      location,
      tensors,
      bytes,
    })),
    metadata: Object.fromEntries(model.metadata),
  }
}

/** How a data type is called, also one that this library does not know. */
export function dataTypeName(code: number): string {
  return dtypeFromOnnx(code) ?? `dtype ${code}`
}

class Tally {
  nodes = 0
  subgraphs = 0
  depth = 0
  readonly ops = new Map<string, number>()
  readonly external = new Map<string, { tensors: number; bytes: number }>()
  readonly #dtypes = new Map<string, { tensors: number; count: number; bytes: number }>()
  readonly #model: ModelIndex

  constructor(model: ModelIndex) {
    this.#model = model
  }

  graph(graph: GraphIndex, depth: number): void {
    this.depth = Math.max(this.depth, depth)
    for (const { info } of graph.initializers) this.#parameter(info)
    for (const node of graph.nodes) {
      this.nodes++
      const op = qualifiedName(node)
      this.ops.set(op, (this.ops.get(op) ?? 0) + 1)
      if (isConstant(node)) this.#constant(node)
      for (const subgraph of node.subgraphs) {
        this.subgraphs++
        this.graph(subgraph.graph, depth + 1)
      }
    }
  }

  parameters(): ModelSummary['parameters'] {
    const entries = [...this.#dtypes.values()]
    return {
      count: entries.reduce((sum, { count }) => sum + count, 0),
      bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
      byDtype: Object.fromEntries(this.#dtypes),
    }
  }

  #constant(node: GraphIndex['nodes'][number]): void {
    const content = constantContent(this.#model.source, node)
    if (content.kind === 'tensor') this.#parameter(content.info)
  }

  #parameter({ dataType, dims, external, dataBytes }: TensorInfo): void {
    const count = dims.includes(0) ? 0 : dims.reduce((product, dim) => product * dim, 1)
    const dtype = dtypeFromOnnx(dataType)
    const bytes = dtype === undefined || dtype === 'string' ? dataBytes : byteLength(dtype, count)
    const entry = this.#dtypes.get(dataTypeName(dataType)) ?? { tensors: 0, count: 0, bytes: 0 }
    this.#dtypes.set(dataTypeName(dataType), {
      tensors: entry.tensors + 1,
      count: entry.count + count,
      bytes: entry.bytes + bytes,
    })
    if (external === undefined) return
    const file = this.external.get(external.location) ?? { tensors: 0, bytes: 0 }
    this.external.set(external.location, { tensors: file.tensors + 1, bytes: file.bytes + bytes })
  }
}

function declaredType(model: ModelIndex, entry: ValueEntry): ValueType | undefined {
  return readValueInfoType(new WireReader(model.source), entry.start, entry.stop)
}

function valueSummary(name: string, type: ValueType | undefined): ValueSummary {
  if (type === undefined) return { name, type: 'unknown', shape: null }
  if (type.kind !== 'tensor') return { name, type: type.kind, shape: null }
  const shape = type.shape?.map((dim: Dim) => dim ?? null) ?? null
  return { name, type: dataTypeName(type.dataType), shape }
}

function dynamicDims(types: readonly (ValueType | undefined)[]): ModelSummary['dynamicDims'] {
  const dims = types.flatMap((type) => (type?.kind === 'tensor' ? (type.shape ?? []) : []))
  const named = [...new Set(dims.filter((dim) => typeof dim === 'string'))]
  return { named, unnamed: dims.filter((dim) => dim === undefined).length }
}
