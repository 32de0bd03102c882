/**
 * The type of every value of a graph and its subgraphs.
 *
 * What a runtime reported counts first, then what the file declares, then the dtype rules
 * (which know no shapes). Values about which nothing can be said are absent from the table.
 */
import { WireReader } from '../bytes/wire-reader.ts'
import { constantContent, isConstant } from '../onnx/constant.ts'
import { elementOf, sequenceOf } from '../onnx/element-type.ts'
import type { FunctionEntry, ModelIndex, NodeEntry, ValueEntry } from '../onnx/model-index.ts'
import { type Dim, readValueInfoType, tensorType, type ValueType } from '../onnx/value-type.ts'
import { onnxFromDtype } from '../tensor/dtype.ts'
import { elementType, outputTypes, typeOfElement } from './dtype-rules.ts'
import { functionCalled } from './functions.ts'
import { topologicalOrder } from './order.ts'
import type { GraphNode, ScopedGraph, Value } from './resolve.ts'

export type TypeTable = ReadonlyMap<Value, ValueType>

/** Types by the unique names of the values of one graph, as a runtime reports them. */
export type ReportedTypes = (graph: ScopedGraph) => ReadonlyMap<string, ValueType> | undefined

export function inferTypes(main: ScopedGraph, reported: ReportedTypes = () => undefined): TypeTable {
  const inference = new Inference(main.model, reported)
  inference.graph(main, [])
  return inference.types
}

class Inference {
  readonly types = new Map<Value, ValueType>()
  readonly #model: ModelIndex
  readonly #reader: WireReader
  readonly #reported: ReportedTypes
  #visited = 0
  #depth = 0

  constructor(model: ModelIndex, reported: ReportedTypes) {
    this.#model = model
    this.#reader = new WireReader(model.source)
    this.#reported = reported
  }

  /** `formals`: what is known of the formal inputs of a body from the node that holds it. */
  graph(graph: ScopedGraph, formals: readonly (ValueType | undefined)[]): void {
    const declared = this.#declarations(graph)
    const reported = this.#reported(graph)
    const known = (value: Value): ValueType | undefined =>
      value.isOutput
        ? interfaceType(declared(value), reported?.get(value.name))
        : (reported?.get(value.name) ?? declared(value))
    for (const [slot, value] of graph.inputs.entries()) this.#set(value, declared(value) ?? formals[slot])
    for (const value of graph.values) {
      if (value.origin.kind !== 'initializer') continue
      const { info } = value.origin.entry
      this.#set(value, tensorType(info.dataType, info.dims))
    }
    for (const node of topologicalOrder(graph)) {
      const inferred = this.#node(node)
      for (const [slot, value] of node.outputs.entries()) {
        if (value !== undefined) this.#set(value, known(value) ?? inferred[slot])
      }
    }
  }

  #set(value: Value, type: ValueType | undefined): void {
    if (type !== undefined) this.types.set(value, type)
  }

  #declarations(graph: ScopedGraph): (value: Value) => ValueType | undefined {
    const entries = new Map<string, ValueEntry>()
    const { valueInfos, outputs, inputs } = graph.index
    for (const entry of [...valueInfos, ...outputs, ...inputs]) entries.set(entry.name, entry)
    return (value) => {
      // A declaration of a name that is used twice may be about the other value.
      const isOwn = value.name === value.written
      const entry =
        value.origin.kind === 'input' ? value.origin.entry : isOwn ? entries.get(value.written) : undefined
      return entry === undefined ? undefined : readValueInfoType(this.#reader, entry.start, entry.stop)
    }
  }

  #node(node: GraphNode): (ValueType | undefined)[] {
    const { entry } = node
    if (isConstant(entry)) return [this.#constant(entry)]
    if (node.subgraphs.length > 0) return this.#controlFlow(node)
    const inputs = node.inputs.map((value) => (value === undefined ? undefined : this.types.get(value)))
    return this.#operator(entry, inputs)
  }

  #operator(entry: NodeEntry, inputs: readonly (ValueType | undefined)[]): (ValueType | undefined)[] {
    const callee = functionCalled(this.#model, entry)
    if (callee !== undefined) return this.#mayVisit(callee) ? this.#enter(callee, inputs) : []
    const elements = outputTypes({ source: this.#model.source, node: entry, inputs: inputs.map(elementType) })
    return elements.map(typeOfElement)
  }

  #mayVisit({ nodes }: FunctionEntry): boolean {
    this.#visited += nodes.length + 1
    return this.#visited <= MAX_VISITED && this.#depth < MAX_CALL_DEPTH
  }

  #enter(callee: FunctionEntry, inputs: readonly (ValueType | undefined)[]): (ValueType | undefined)[] {
    this.#depth++
    try {
      return this.#call(callee, inputs)
    } finally {
      this.#depth--
    }
  }

  #call(callee: FunctionEntry, inputs: readonly (ValueType | undefined)[]): (ValueType | undefined)[] {
    const local = new Map<string, ValueType>()
    for (const [slot, name] of callee.inputs.entries()) {
      const type = inputs[slot]
      if (type !== undefined) local.set(name, type)
    }
    for (const node of callee.nodes) {
      const inner = node.inputs.map((name) => local.get(name))
      const outer = isConstant(node) ? [this.#constant(node)] : this.#operator(node, inner)
      for (const [slot, name] of node.outputs.entries()) {
        const type = outer[slot]
        if (type !== undefined) local.set(name, type)
      }
    }
    return callee.outputs.map((name) => dtypeOnly(local.get(name)))
  }

  #constant(entry: NodeEntry): ValueType | undefined {
    const content = constantContent(this.#model.source, entry)
    if (content.kind === 'tensor') return tensorType(content.info.dataType, content.info.dims)
    if (content.kind === 'sparse') return undefined
    return tensorType(onnxFromDtype(content.tensor.dtype), content.tensor.shape)
  }

  #controlFlow(node: GraphNode): (ValueType | undefined)[] {
    const outer = node.inputs.map((value) => (value === undefined ? undefined : this.types.get(value)))
    for (const body of node.subgraphs) this.graph(body, formalTypes(node, outer))
    const given: (ValueType | undefined)[] = []
    for (const { outputs } of node.subgraphs) {
      for (const [slot, value] of outputs.entries()) given[slot] ??= this.types.get(value)
    }
    const skipped = skippedOutputs(node)
    const made = node.outputs.map((_, slot) =>
      dtypeOnly(given[slot + skipped] ?? stateType(node, outer, slot)),
    )
    return node.entry.opType === 'SequenceMap' ? made.map(sequenceOf) : made
  }
}

/** The declaration of an output is a promise to the outside; a runtime that sees another rank overrules it. */
function interfaceType(
  declared: ValueType | undefined,
  reported: ValueType | undefined,
): ValueType | undefined {
  if (declared?.kind !== 'tensor' || reported?.kind !== 'tensor') return declared ?? reported
  if (declared.dataType !== reported.dataType || declared.shape === undefined) return reported
  return reported.shape === undefined || reported.shape.length === declared.shape.length ? declared : reported
}

/** Nodes of functions, over all calls: a hostile file makes them call themselves or fan out without end. */
const MAX_VISITED = 200_000
const MAX_CALL_DEPTH = 100

const SCALAR: readonly Dim[] = []
const [INT64, BOOL] = [7, 9]

/** The types of a body's formal inputs; shapes of loop state may change from turn to turn. */
function formalTypes(node: GraphNode, outer: readonly (ValueType | undefined)[]): (ValueType | undefined)[] {
  switch (node.entry.opType) {
    case 'Loop':
      return [tensorType(INT64, SCALAR), tensorType(BOOL, SCALAR), ...outer.slice(2).map(dtypeOnly)]
    case 'Scan':
      // Up to opset 8 the first input is the optional sequence lengths.
      return (node.entry.inputs[0] === '' ? outer.slice(1) : outer).map(dtypeOnly)
    case 'SequenceMap':
      return outer.map((type) => dtypeOnly(type?.kind === 'sequence' ? elementOf(type) : type))
    default:
      return []
  }
}

/** A Loop's body gives its condition first, which is no output of the node. */
function skippedOutputs(node: GraphNode): number {
  return node.entry.opType === 'Loop' ? 1 : 0
}

function stateType(
  node: GraphNode,
  outer: readonly (ValueType | undefined)[],
  slot: number,
): ValueType | undefined {
  return node.entry.opType === 'Loop' ? outer[slot + 2] : undefined
}

function dtypeOnly(type: ValueType | undefined): ValueType | undefined {
  return type?.kind === 'tensor' ? tensorType(type.dataType) : type
}
