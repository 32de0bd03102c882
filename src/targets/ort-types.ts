/**
 * The types of inner values, as onnxruntime sees them: a model file -> reported types per graph.
 *
 * Loading a graph with all its values as outputs makes onnxruntime infer their types. Where
 * even it does not know the rank, one run on plain inputs shows it; the same run gives the
 * values that the bodies of If, Loop and Scan start from, which are asked about likewise.
 */
import { basename, dirname, resolve } from 'node:path'
import type { MessageWriter } from '../bytes/wire-writer.ts'
import { ModelTestError } from '../errors.ts'
import type { ModelFile } from '../files/model-file.ts'
import { composeModel } from '../graph/compose.ts'
import { cutPrefix } from '../graph/cut.ts'
import { inferTypes, type TypeTable } from '../graph/infer-types.ts'
import { topologicalOrder } from '../graph/order.ts'
import { boundaryOf } from '../graph/part.ts'
import { type GraphNode, readsOf, type ScopedGraph, type Value } from '../graph/resolve.ts'
import type { WeightPolicy } from '../graph/weights.ts'
import { computedValues, graphAsModel, inputsOfGraph } from '../graph/whole.ts'
import { isConstant } from '../onnx/constant.ts'
import { type Dim, type TensorType, tensorType, type ValueType } from '../onnx/value-type.ts'
import { dtypeFromOnnx, type DType, onnxFromDtype } from '../tensor/dtype.ts'
import type { Tensor } from '../tensor/tensor.ts'
import { firstTurn } from './body-inputs.ts'
import type { OrtAnswer, OrtModel, OrtValueInfo } from './ort-jobs.ts'
import type { OrtPool } from './ort-pool.ts'
import { isCarriedByOrt } from './ort-tensor.ts'
import { PLAIN_CHOICES, plainTensor } from './plain-inputs.ts'

export interface ReportedModel {
  readonly types: TypeTable
  /** Why onnxruntime could not load the model as it is; undefined when it can. */
  readonly failure: ModelTestError | undefined
}

export async function reportTypes(
  file: ModelFile,
  graph: ScopedGraph,
  process: OrtPool,
): Promise<ReportedModel> {
  const reporter = new Reporter(file, process, inferTypes(graph))
  const failure = await reporter.graph(
    graph,
    plainFeeds(graph.inputs, (value) => reporter.declared.get(value)),
  )
  return { types: inferTypes(graph, (inner) => reporter.reported.get(inner)), failure }
}

type Feeds = ReadonlyMap<Value, Tensor>

/** Inputs made when they are tried: the later candidates are large, and seldom needed. */
type Candidate = () => Feeds | undefined

/** A model, what it is fed, and the values whose rank is in question. */
interface Asked {
  readonly model: OrtModel
  readonly inputs: readonly Value[]
  readonly values: readonly Value[]
}

class Reporter {
  readonly reported = new Map<ScopedGraph, Map<string, ValueType>>()
  readonly declared: TypeTable
  readonly #file: ModelFile
  readonly #process: OrtPool

  constructor(file: ModelFile, process: OrtPool, declared: TypeTable) {
    this.#file = file
    this.#process = process
    this.declared = declared
  }

  /** `feeds`: sets of inputs to try until one runs. */
  async graph(graph: ScopedGraph, feeds: readonly Candidate[]): Promise<ModelTestError | undefined> {
    const types = new Map<string, ValueType>()
    this.reported.set(graph, types)
    const outputs = [...new Set([...graph.outputs, ...computedValues(graph)])].filter((value) =>
      this.#canLeave(value),
    )
    if (outputs.length === 0) return undefined
    const model = this.#encode(
      graphAsModel(graph, outputs, this.#inputTypes(inputsOfGraph(graph), feeds[0]?.()), this.#policy),
    )
    const failure = await this.#describe(model, types)
    if (failure !== undefined) await this.#nodeByNode(graph, types)
    const asked = { model, inputs: inputsOfGraph(graph), values: computedValues(graph) }
    if (failure === undefined) await this.#rank(asked, feeds, types)
    for (const node of graph.nodes) {
      if (node.subgraphs.length === 0) continue
      const around = await this.#valuesAround(graph, node, feeds)
      for (const body of node.subgraphs) {
        const turns = around.map(
          (values): Candidate =>
            () =>
              firstTurn(node, body, values()),
        )
        await this.graph(body, turns)
      }
    }
    return failure
  }

  async #describe(model: OrtModel, types: Map<string, ValueType>): Promise<ModelTestError | undefined> {
    try {
      const answer = await this.#process.ask({ kind: 'describe', model })
      if (answer.kind === 'described') for (const info of answer.description.outputs) setReported(types, info)
      return undefined
    } catch (error) {
      return runtimeFailure(error)
    }
  }

  /** A graph that cannot be loaded as a whole may hold nodes that can. */
  async #nodeByNode(graph: ScopedGraph, types: Map<string, ValueType>): Promise<void> {
    for (const node of topologicalOrder(graph)) {
      const outputs = node.outputs
        .filter((value) => value !== undefined)
        .filter((value) => this.#canLeave(value))
      if (isConstant(node.entry) || outputs.length === 0) continue
      const { inputs, weights, folded } = boundaryOf([node], new Map())
      const composition = {
        model: graph.model,
        name: 'node',
        nodes: [node],
        inputs,
        outputs,
        weights,
        folded,
      }
      const typeOf = this.#inputTypes(inputs)
      const model = this.#encode(composeModel(composition, typeOf, this.#policy))
      if ((await this.#describe(model, types)) !== undefined) continue
      await this.#rank({ model, inputs, values: outputs }, plainFeeds(inputs, typeOf), types)
    }
  }

  /** One run for the ranks that are missing. */
  async #rank(asked: Asked, feeds: readonly Candidate[], types: Map<string, ValueType>): Promise<void> {
    const unranked = asked.values.filter((value) => isUnranked(types.get(value.name)))
    if (unranked.length === 0) return
    for (const candidate of feeds) {
      const answer = await this.#run(asked.model, asked.inputs, candidate(), [], unranked)
      if (answer === undefined || unranked.some((value) => this.#contradicts(value, answer.shapes))) continue
      for (const value of unranked) {
        const { dataType } = types.get(value.name) as TensorType
        types.set(value.name, rankOnly(dataType, answer.shapes[value.name]!))
      }
      return
    }
  }

  /** Ranks may depend on what integers say, for example axes; a declared output shows a bad guess. */
  #contradicts(value: Value, shapes: Readonly<Record<string, readonly number[]>>): boolean {
    const declared = this.declared.get(value)
    if (!value.isOutput || declared?.kind !== 'tensor' || declared.shape === undefined) return false
    return declared.shape.length !== shapes[value.name]?.length
  }

  /** For each set of inputs, what the bodies of a node can read, as far as it can be computed. */
  async #valuesAround(
    graph: ScopedGraph,
    node: GraphNode,
    feeds: readonly Candidate[],
  ): Promise<Candidate[]> {
    const reads = [...new Set(readsOf(node))].filter(
      (value) => value.graph === graph && this.#canLeave(value),
    )
    const computed = reads.filter((value) => value.origin.kind !== 'input')
    if (computed.length === 0) return [...feeds]
    const cut = cutPrefix(graph, computed)
    const composition = { ...cut, model: graph.model, name: 'prefix' }
    const around: Candidate[] = []
    for (const make of feeds) {
      const candidate = make()
      if (candidate === undefined) continue
      const model = this.#encode(
        composeModel(composition, this.#inputTypes(cut.inputs, candidate), this.#policy),
      )
      const answer = await this.#run(model, cut.inputs, candidate, computed, [])
      if (answer === undefined) continue
      const values = new Map([
        ...candidate,
        ...computed.map((value) => [value, answer.outputs[value.name]!] as const),
      ])
      around.push(() => values)
    }
    return around
  }

  async #run(
    model: OrtModel,
    inputs: readonly Value[],
    feeds: Feeds | undefined,
    fetched: readonly Value[],
    measured: readonly Value[],
  ): Promise<Extract<OrtAnswer, { kind: 'ran' }> | undefined> {
    if (feeds === undefined || inputs.some((value) => !feeds.has(value))) return undefined
    const named = Object.fromEntries(inputs.map((value) => [value.name, feeds.get(value)!]))
    const [fetches, measures] = [fetched, measured].map((values) => values.map(({ name }) => name)) as [
      string[],
      string[],
    ]
    try {
      const answer = await this.#process.ask({ kind: 'run', model, feeds: named, fetches, measures })
      return answer.kind === 'ran' ? answer : undefined
    } catch (error) {
      runtimeFailure(error)
      return undefined
    }
  }

  /** Only inputs are declared: what onnxruntime says of the rest is the question. */
  #inputTypes(inputs: readonly Value[], feeds?: Feeds): (value: Value) => ValueType | undefined {
    const declared = new Set(inputs)
    return (value) => {
      if (!declared.has(value)) return undefined
      const type = this.reported.get(value.graph)?.get(value.name) ?? this.declared.get(value)
      const fed = feeds?.get(value)
      const isBare = type === undefined || isUnranked(type)
      return isBare && fed !== undefined ? rankOnly(onnxFromDtype(fed.dtype), fed.shape) : type
    }
  }

  get #policy(): WeightPolicy {
    return { kind: 'reference', location: basename(this.#file.path), minBytes: REFERENCE_BYTES }
  }

  #encode(message: MessageWriter): OrtModel {
    return { bytes: message.toBytes(), folder: resolve(dirname(this.#file.path)) }
  }

  /** What onnxruntime-node cannot carry would make the whole model fail to load. */
  #canLeave(value: Value): boolean {
    const type = this.declared.get(value)
    if (type === undefined) return true
    return type.kind === 'tensor' && isCarriedByOrt(dtypeFromOnnx(type.dataType))
  }
}

/** Weights from here on stay in the file; sending them to another process costs more than a read. */
const REFERENCE_BYTES = 1024

function setReported(types: Map<string, ValueType>, { name, isTensor, type, shape }: OrtValueInfo): void {
  if (!isTensor || type === undefined) return
  const dims = shape?.map((dim): Dim => (dim === '' || dim === -1 ? undefined : dim))
  types.set(name, tensorType(onnxFromDtype(type as DType), dims?.length === 0 ? undefined : dims))
}

function isUnranked(type: ValueType | undefined): boolean {
  return type?.kind === 'tensor' && type.shape === undefined
}

function rankOnly(dataType: number, shape: readonly number[]): ValueType {
  return tensorType(dataType, Array.from<undefined>({ length: shape.length }))
}

function plainFeeds(inputs: readonly Value[], typeOf: (value: Value) => ValueType | undefined): Candidate[] {
  return PLAIN_CHOICES.map((choice) => () => {
    const feeds = new Map<Value, Tensor>()
    for (const value of inputs) {
      const fed = plainTensor(typeOf(value), choice)
      if (fed === undefined) return undefined
      feeds.set(value, fed)
    }
    return feeds
  })
}

/** Anything but the runtime's own failure is a bug or a broken file, and goes on. */
function runtimeFailure(error: unknown): ModelTestError {
  if (error instanceof ModelTestError && error.code === 'RUNTIME_FAILED') return error
  throw error
}
