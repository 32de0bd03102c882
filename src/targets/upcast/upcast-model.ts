/**
 * A model without bfloat16: ONNX bytes -> the same graph, where every bfloat16 value is float32.
 *
 * For runtimes that have no bfloat16: onnxruntime's CPU provider has no kernels for it, and
 * onnxruntime-node can neither be fed nor fetched it. Names, shapes and the order of nodes stay.
 *
 * | what | becomes |
 * | --- | --- |
 * | types of inputs, outputs and inner values, also in bodies, functions, sequences | float32 |
 * | small weights, Constant, ConstantOfShape and other tensor attributes | float32 data |
 * | weights that lie outside the message, or are to lie there | `w__bfloat16`, in place, and a Cast that gives "w" |
 * | attributes that name a dtype (`to`, `dtype`, `output_dtype`, …) | float32 |
 *
 * Results are not rounded between nodes, nor by a Cast to bfloat16: the rewritten model gives what
 * the graph means, and what a bfloat16 machine loses by rounding is its error, to be measured.
 * float16 needs nothing of this (onnxruntime casts by itself), and float8 stays: there the
 * rounding is a quantisation that the model asks for.
 *
 * Works on the wire format, field by field, so that all that is not about bfloat16 is copied.
 */
import { type ByteSource, bytesSource } from '../../bytes/byte-source.ts'
import { BYTES, VARINT, WireReader } from '../../bytes/wire-reader.ts'
import { MessageWriter, type Slice } from '../../bytes/wire-writer.ts'
import type { WeightPolicy } from '../../graph/weights.ts'
import { ATTRIBUTE, FUNCTION, GRAPH, MODEL, NODE, SPARSE, VALUE_INFO } from '../../onnx/fields.ts'
import { type GraphIndex, indexModel, type ModelIndex, type Range } from '../../onnx/model-index.ts'
import { rewriteTensor } from '../../onnx/tensor-rewrite.ts'
import { readValueInfoType } from '../../onnx/value-type.ts'
import type { DType } from '../../tensor/dtype.ts'
import {
  type ReadExternal,
  readTensorInfo,
  tensorFromProto,
  type TensorInfo,
  tensorProtoBytes,
} from '../../tensor/tensor-proto.ts'
import { castNode } from '../sim/rounding.ts'
import { NARROW, upcastTensor, WIDE } from './upcast-tensor.ts'
import { upcastType } from './upcast-type.ts'

export interface Upcast {
  readonly bytes: Uint8Array
  /** False when the model has no bfloat16; the bytes are those it came in then. */
  readonly upcast: boolean
  /** The dtypes that inputs and outputs of the model had, of those that have another now. */
  readonly changed: {
    readonly inputs: Readonly<Record<string, DType>>
    readonly outputs: Readonly<Record<string, DType>>
  }
}

/**
 * @param weights where large weights lie. For `reference`, `location` is the file that `model` is;
 *   bytes made for the occasion are in no file, and take a `minBytes` of Infinity.
 */
export function upcastModel(model: ByteSource | Uint8Array, weights: WeightPolicy): Upcast {
  const source = model instanceof Uint8Array ? bytesSource(model) : model
  const upcasting = new Upcasting(indexModel(source), weights)
  const message = upcasting.model()
  const isSame = upcasting.changes === 0
  return {
    bytes: isSame ? source.read(0, source.size) : message.toBytes(),
    upcast: !isSame,
    changed: upcasting.changed,
  }
}

/** Values inside of functions are in no table of types. */
export function functionsHaveBfloat16(index: ModelIndex): boolean {
  if (index.functions.length === 0) return false
  return new Upcasting(index, { kind: 'reference', location: '', minBytes: Infinity }).functions() > 0
}

/** Attributes that hold a TensorProto.DataType, in whatever operator. */
const DTYPE_ATTRIBUTES = 'to dtype output_dtype output_datatype stash_type softmax_precision precision'.split(
  ' ',
)

/** Fields of onnx.proto that nothing else looks at. */
const [FUNCTION_ATTRIBUTE_PROTO, FUNCTION_VALUE_INFO] = [11, 12]
const [ATTRIBUTE_TENSORS, ATTRIBUTE_TYPE, ATTRIBUTE_TYPES, ATTRIBUTE_SPARSES] = [10, 14, 15, 23]

class Upcasting {
  changes = 0
  readonly changed: { inputs: Record<string, DType>; outputs: Record<string, DType> } = {
    inputs: {},
    outputs: {},
  }
  readonly #index: ModelIndex
  readonly #source: ByteSource
  readonly #weights: WeightPolicy
  readonly #taken = new Set<string>()
  readonly #dtypeAttributes = new Set(DTYPE_ATTRIBUTES)

  constructor(index: ModelIndex, weights: WeightPolicy) {
    this.#index = index
    this.#source = index.source
    this.#weights = weights
    noteNames(index.graph, this.#taken)
    for (const { start, stop } of index.functions) this.#noteReferences({ start, stop })
  }

  model(): MessageWriter {
    const message = new MessageWriter()
    const graphs: Range[] = []
    this.#each({ start: 0, stop: this.#source.size }, (field, range, whole) => {
      if (field === MODEL.graph) graphs.push(range)
      else if (field === MODEL.functions) message.messageField(field, this.#function(range))
      else message.slice(whole)
    })
    this.#noteInterface('inputs')
    this.#noteInterface('outputs')
    return message.messageField(MODEL.graph, this.#graph(graphs, true))
  }

  /** How much changes in functions. */
  functions(): number {
    for (const { start, stop } of this.#index.functions) this.#function({ start, stop })
    return this.changes
  }

  /** Nodes run in the order they are in, so the Casts of weights come first. */
  #graph(pieces: readonly Range[], isMain: boolean): MessageWriter {
    const message = new MessageWriter()
    const casts = new Set<string>()
    this.#eachOf(pieces, (field, range) => {
      if (field !== GRAPH.initializer) return
      const info = this.#info(range)
      const stays = info.dataType === NARROW ? this.#staying(range, info, isMain) : undefined
      if (stays === undefined) return
      const name = this.#fresh(`${info.name}__bfloat16`)
      message.messageField(GRAPH.initializer, stays(name))
      message.messageField(GRAPH.node, castNode(name, info.name, 'float32'))
      casts.add(info.name)
      this.changes++
    })
    this.#eachOf(pieces, (field, range, whole) => {
      switch (field) {
        case GRAPH.node:
          message.messageField(field, this.#node(range))
          return
        case GRAPH.initializer:
          if (!casts.has(this.#info(range).name)) message.messageField(field, this.#tensor(range))
          return
        case GRAPH.sparseInitializer:
          message.messageField(field, this.#sparse(range))
          return
        case GRAPH.input:
          // An input that has a weight as its default cannot be what a Cast gives too.
          if (!casts.has(this.#nameOf(range))) message.messageField(field, this.#value(range))
          return
        case GRAPH.output:
        case GRAPH.valueInfo:
          message.messageField(field, this.#value(range))
          return
        default:
          message.slice(whole)
      }
    })
    return message
  }

  #function(range: Range): MessageWriter {
    const message = new MessageWriter()
    this.#each(range, (field, inner, whole) => {
      if (field === FUNCTION.node) message.messageField(field, this.#node(inner))
      else if (field === FUNCTION_VALUE_INFO) message.messageField(field, this.#value(inner))
      else if (field === FUNCTION_ATTRIBUTE_PROTO) message.messageField(field, this.#attribute(inner))
      else message.slice(whole)
    })
    return message
  }

  #node(range: Range): MessageWriter {
    const message = new MessageWriter()
    this.#each(range, (field, inner, whole) => {
      if (field === NODE.attribute) message.messageField(field, this.#attribute(inner))
      else message.slice(whole)
    })
    return message
  }

  #attribute(range: Range): MessageWriter {
    const message = new MessageWriter()
    const namesDtype = this.#dtypeAttributes.has(this.#nameOf(range))
    const body: Range[] = []
    this.#each(range, (field, inner, whole, reader) => {
      switch (field) {
        case ATTRIBUTE.i:
          if (namesDtype && reader.wireType === VARINT && reader.number === NARROW) {
            message.varintField(field, WIDE)
            this.changes++
          } else message.slice(whole)
          return
        case ATTRIBUTE.t:
        case ATTRIBUTE_TENSORS:
          message.messageField(field, this.#tensor(inner))
          return
        case ATTRIBUTE.sparseTensor:
        case ATTRIBUTE_SPARSES:
          message.messageField(field, this.#sparse(inner))
          return
        case ATTRIBUTE.g:
          body.push(inner)
          return
        case ATTRIBUTE.graphs:
          message.messageField(field, this.#graph([inner], false))
          return
        case ATTRIBUTE_TYPE:
        case ATTRIBUTE_TYPES:
          message.messageField(field, this.#type(inner))
          return
        default:
          message.slice(whole)
      }
    })
    if (body.length > 0) message.messageField(ATTRIBUTE.g, this.#graph(body, false))
    return message
  }

  #value(range: Range): MessageWriter {
    const message = new MessageWriter()
    this.#each(range, (field, inner, whole) => {
      if (field === VALUE_INFO.type) message.messageField(field, this.#type(inner))
      else message.slice(whole)
    })
    return message
  }

  #type(range: Range): MessageWriter {
    return upcastType(this.#source, range, () => this.changes++)
  }

  #sparse(range: Range): MessageWriter {
    const message = new MessageWriter()
    this.#each(range, (field, inner, whole) => {
      if (field === SPARSE.values) message.messageField(field, this.#tensor(inner))
      else message.slice(whole)
    })
    return message
  }

  #tensor(range: Range): MessageWriter {
    const info = this.#info(range)
    if (info.dataType !== NARROW) return new MessageWriter().slice({ source: this.#source, ...range })
    this.changes++
    const { tensor } = tensorFromProto(this.#source, range.start, range.stop, this.#readExternal(info.name))
    return new MessageWriter().raw(tensorProtoBytes(info.name, upcastTensor(tensor)))
  }

  /** How to write a weight that keeps its data, under another name; undefined when it is decoded. */
  #staying(range: Range, info: TensorInfo, isMain: boolean): ((name: string) => MessageWriter) | undefined {
    const policy = this.#weights
    if (policy.kind === 'inline') return undefined
    if (policy.kind === 'reference' && info.external !== undefined)
      return (name) => rewriteTensor(this.#source, range, { name })
    const data = this.#dataOf(info)
    // References of our own are made in the main graph only, where the runtime looks for them.
    if (!isMain || data === undefined || data.stop - data.start < policy.minBytes) return undefined
    const offset = policy.kind === 'reference' ? data.start : policy.place(data)
    const external = { location: policy.location, offset, length: data.stop - data.start }
    return (name) => rewriteTensor(this.#source, range, { name, external })
  }

  #dataOf({ name, raw, external }: TensorInfo): Slice | undefined {
    if (external === undefined || this.#weights.kind === 'reference')
      return raw === undefined ? undefined : { source: this.#source, ...raw }
    const source = this.#weights.external(external.location, name)
    const stop = external.length === undefined ? source.size : external.offset + external.length
    return { source, start: external.offset, stop }
  }

  #readExternal(name: string): ReadExternal | undefined {
    const policy = this.#weights
    if (policy.kind === 'reference') return undefined
    return (location, offset, length) => {
      const file = policy.external(location, name)
      return file.read(offset, length ?? file.size - offset)
    }
  }

  #noteInterface(role: 'inputs' | 'outputs'): void {
    const reader = new WireReader(this.#source)
    for (const { name, start, stop } of this.#index.graph[role]) {
      const type = readValueInfoType(reader, start, stop)
      if (type?.kind === 'tensor' && type.dataType === NARROW) this.changed[role][name] = 'bfloat16'
    }
  }

  /** A function may take the dtype of a node inside as an attribute under any name. */
  #noteReferences(range: Range): void {
    this.#each(range, (field, node) => {
      if (field !== FUNCTION.node) return
      this.#each(node, (inner, attribute) => {
        if (inner !== NODE.attribute || !this.#dtypeAttributes.has(this.#nameOf(attribute))) return
        this.#each(attribute, (part, _, __, reader) => {
          if (part === ATTRIBUTE.refAttrName && reader.wireType === BYTES)
            this.#dtypeAttributes.add(reader.string)
        })
      })
    })
  }

  #info({ start, stop }: Range): TensorInfo {
    return readTensorInfo(new WireReader(this.#source), start, stop)
  }

  /** The name of an attribute or a value, which have it in the same field. */
  #nameOf(range: Range): string {
    let name = ''
    this.#each(range, (field, _, __, reader) => {
      if (field === ATTRIBUTE.name && reader.wireType === BYTES) name = reader.string
    })
    return name
  }

  #fresh(wish: string): string {
    let name = wish
    for (let count = 2; this.#taken.has(name); count++) name = `${wish}_${count}`
    this.#taken.add(name)
    return name
  }

  #eachOf(pieces: readonly Range[], visit: Visit): void {
    for (const piece of pieces) this.#each(piece, visit)
  }

  #each({ start, stop }: Range, visit: Visit): void {
    const source = this.#source
    const reader = new WireReader(source).seek(start)
    while (reader.next(stop)) {
      const payload = { start: reader.start, stop: reader.stop }
      visit(reader.field, payload, { source, start: reader.fieldStart, stop: reader.stop }, reader)
    }
  }
}

/** `range`: the payload of the field. `whole`: with its tag. */
type Visit = (field: number, range: Range, whole: Slice, reader: WireReader) => void

function noteNames({ nodes, initializers, inputs, valueInfos }: GraphIndex, taken: Set<string>): void {
  for (const { name } of [...initializers, ...inputs, ...valueInfos]) taken.add(name)
  for (const { outputs, subgraphs } of nodes) {
    for (const name of outputs) taken.add(name)
    for (const { graph } of subgraphs) noteNames(graph, taken)
  }
}
