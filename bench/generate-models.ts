/**
 * Models made to measure: graphs of any number of nodes, and files of any size.
 *
 * Everything is valid ONNX that a runtime would load. Weights are zeros; on disk they are
 * holes, so that a model of many gigabytes takes some kilobytes and no time to write.
 */
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ByteSource } from '../src/bytes/byte-source.ts'
import { MessageWriter } from '../src/bytes/wire-writer.ts'
import { ATTRIBUTE, ENTRY, GRAPH, MODEL, NODE, OPSET, TENSOR } from '../src/onnx/fields.ts'
import { tensorType, valueInfo } from '../src/onnx/value-type.ts'

/** A graph with the given number of nodes, as bytes. */
export type GraphMaker = (nodes: number) => Uint8Array

/** Each node reads the one before, and a weight of its own. */
export const chain: GraphMaker = (count) => {
  const graph = new GraphBuilder(SHAPE)
  for (let n = 0; n < count; n++) graph.weight(`w${n}`, SHAPE).node('Add', [`x${n}`, `w${n}`], `x${n + 1}`)
  return graph.bytes('x0', [`x${count}`])
}

/** The same, with the last node first in the file. */
export const reversedChain: GraphMaker = (count) => {
  const graph = new GraphBuilder(SHAPE)
  for (let n = count - 1; n >= 0; n--)
    graph.weight(`w${n}`, SHAPE).node('Add', [`x${n}`, `w${n}`], `x${n + 1}`)
  return graph.bytes('x0', [`x${count}`])
}

/** Pairs that stay together in one part. */
export const groupedChain: GraphMaker = (count) => {
  const graph = new GraphBuilder(IMAGE)
  for (let n = 0; n < count; n += 2) {
    graph.weight(`w${n}`, IMAGE)
    graph.node('Conv', [`x${n}`, `w${n}`], `x${n + 1}`).node('Clip', [`x${n + 1}`], `x${n + 2}`)
  }
  return graph.bytes('x0', [`x${count + (count % 2)}`])
}

/** All nodes read one value, and give one output each. */
export const fanOut: GraphMaker = (count) => {
  const graph = new GraphBuilder(SHAPE)
  const outputs = Array.from({ length: count }, (_, n) => `y${n}`)
  for (const output of outputs) graph.node('Relu', ['x'], output)
  return graph.bytes('x', outputs)
}

/** All nodes but the last read one value, and the last reads them all. */
export const fanIn: GraphMaker = (count) => {
  const graph = new GraphBuilder(SHAPE)
  const inner = Array.from({ length: count - 1 }, (_, n) => `y${n}`)
  for (const output of inner) graph.node('Relu', ['x'], output)
  return graph.node('Sum', inner, 'sum').bytes('x', ['sum'])
}

const SHAPE: readonly number[] = [1, 4]
const IMAGE: readonly number[] = [1, 1, 1, 1]

/**
 * A stack of layers, as a file of the given size: MatMul, Add, Relu per block, then one MatMul
 * with a weight as large as many of the others.
 */
export interface LargeModel {
  readonly blocks: number
  /** Weights of blocks have width x width elements. */
  readonly width: number
  /** The last weight has width x headWidth elements. */
  readonly headWidth: number
}

/** 1.9 GB: just below the 2 GiB that protobuf allows. */
export const SINGLE_FILE: LargeModel = { blocks: 389, width: 1024, headWidth: 65_536 }
/** 8.0 GB in as many layers. */
export const WITH_EXTERNAL_DATA: LargeModel = { blocks: 389, width: 2232, headWidth: 30_000 }

/** What the layers of a large model give: for finding them again. */
export const LARGE_LAYERS = { small: 'added1', medium: 'product1', large: 'logits' } as const

export function writeSingleFile(path: string, model: LargeModel): void {
  writeSparse(path, stack(model, (graph, name, dims) => graph.weight(name, dims)).message('x0', ['logits']))
}

/** Writes the model, and its weights to a file beside it. */
export function writeWithExternalData(path: string, location: string, model: LargeModel): void {
  let size = 0
  const graph = stack(model, (builder, name, dims) => {
    builder.externalWeight(name, dims, { location, offset: size })
    size += floatBytes(dims)
  })
  writeSparse(path, graph.message('x0', ['logits']))
  writeSparse(join(path, '..', location), new MessageWriter().slice(zeros(size)))
}

/** Calls `use` with a folder that is gone afterwards, also when the process is interrupted. */
export async function withTempFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'vitest-onnx-bench-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.on('exit', remove)
  for (const signal of INTERRUPTS) process.on(signal, interrupt)
  try {
    return await use(folder)
  } finally {
    for (const signal of INTERRUPTS) process.off(signal, interrupt)
    process.off('exit', remove)
    remove()
  }
}

function interrupt(_: NodeJS.Signals, code: number): void {
  process.exit(128 + code)
}

const INTERRUPTS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

type AddWeight = (graph: GraphBuilder, name: string, dims: readonly number[]) => void

/** Every second bias is a Constant node, as some exporters write them. */
function stack({ blocks, width, headWidth }: LargeModel, addWeight: AddWeight): GraphBuilder {
  const graph = new GraphBuilder([1, width])
  for (let n = 0; n < blocks; n++) {
    addWeight(graph, `weight${n}`, [width, width])
    if (n % 2 === 0) graph.weight(`bias${n}`, [width])
    else graph.constant(`bias${n}`, [width])
    graph.node('MatMul', [`x${n}`, `weight${n}`], `product${n}`)
    graph.node('Add', [`product${n}`, `bias${n}`], `added${n}`)
    graph.node('Relu', [`added${n}`], `x${n + 1}`)
  }
  addWeight(graph, 'head', [width, headWidth])
  return graph.node('MatMul', [`x${blocks}`, 'head'], 'logits', [1, headWidth])
}

const FLOAT = 1
const TENSOR_ATTRIBUTE = 4
const EXTERNAL = 1
const [IR_VERSION, OPSET_VERSION] = [8, 17]

/** A graph of float tensors, node by node. Every value has the same shape unless told. */
class GraphBuilder {
  readonly #graph = new MessageWriter()
  readonly #shape: readonly number[]
  readonly #types = new Map<string, readonly number[]>()

  constructor(shape: readonly number[]) {
    this.#shape = shape
  }

  node(opType: string, inputs: readonly string[], output: string, shape = this.#shape): this {
    const node = new MessageWriter()
    for (const name of inputs) node.stringField(NODE.input, name)
    node.stringField(NODE.output, output).stringField(NODE.name, `node_${output}`)
    node.stringField(NODE.opType, opType)
    return this.#add(node, output, shape)
  }

  constant(name: string, dims: readonly number[]): this {
    const value = new MessageWriter().stringField(ATTRIBUTE.name, 'value')
    value.messageField(
      ATTRIBUTE.t,
      tensorMessage('', dims).sliceField(TENSOR.rawData, zeros(floatBytes(dims))),
    )
    value.varintField(ATTRIBUTE_TYPE, TENSOR_ATTRIBUTE)
    const node = new MessageWriter().stringField(NODE.output, name).stringField(NODE.opType, 'Constant')
    this.#graph.messageField(GRAPH.node, node.messageField(NODE.attribute, value))
    return this
  }

  weight(name: string, dims: readonly number[]): this {
    const tensor = tensorMessage(name, dims).sliceField(TENSOR.rawData, zeros(floatBytes(dims)))
    this.#graph.messageField(GRAPH.initializer, tensor)
    return this
  }

  externalWeight(
    name: string,
    dims: readonly number[],
    place: { readonly location: string; readonly offset: number },
  ): this {
    const tensor = tensorMessage(name, dims)
    for (const [key, value] of Object.entries({ ...place, length: floatBytes(dims) })) {
      const entry = new MessageWriter().stringField(ENTRY.key, key).stringField(ENTRY.value, String(value))
      tensor.messageField(TENSOR.externalData, entry)
    }
    this.#graph.messageField(GRAPH.initializer, tensor.varintField(TENSOR.dataLocation, EXTERNAL))
    return this
  }

  bytes(input: string, outputs: readonly string[]): Uint8Array {
    return this.message(input, outputs).toBytes()
  }

  message(input: string, outputs: readonly string[]): MessageWriter {
    const graph = this.#graph.stringField(GRAPH.name, 'generated')
    graph.messageField(GRAPH.input, valueInfo(input, tensorType(FLOAT, this.#shape)))
    for (const name of outputs) {
      graph.messageField(GRAPH.output, valueInfo(name, tensorType(FLOAT, this.#types.get(name))))
      this.#types.delete(name)
    }
    for (const [name, shape] of this.#types)
      graph.messageField(GRAPH.valueInfo, valueInfo(name, tensorType(FLOAT, shape)))
    const opset = new MessageWriter().stringField(OPSET.domain, '').varintField(OPSET.version, OPSET_VERSION)
    return new MessageWriter()
      .varintField(MODEL.irVersion, IR_VERSION)
      .messageField(MODEL.opsetImport, opset)
      .messageField(MODEL.graph, graph)
  }

  #add(node: MessageWriter, output: string, shape: readonly number[]): this {
    this.#graph.messageField(GRAPH.node, node)
    this.#types.set(output, shape)
    return this
  }
}

/** AttributeProto.type: the index does without, so it is not among the fields it knows. */
const ATTRIBUTE_TYPE = 20

function tensorMessage(name: string, dims: readonly number[]): MessageWriter {
  const tensor = new MessageWriter()
  for (const dim of dims) tensor.varintField(TENSOR.dims, dim)
  return tensor.varintField(TENSOR.dataType, FLOAT).stringField(TENSOR.name, name)
}

function floatBytes(dims: readonly number[]): number {
  return dims.reduce((count, dim) => count * dim, 4)
}

const ZEROS = new Uint8Array(4 * 1024 * 1024)

function zeros(length: number): { source: ByteSource; start: number; stop: number } {
  return { source: ZERO_SOURCE, start: 0, stop: length }
}

const ZERO_SOURCE: ByteSource = {
  name: '<zeros>',
  size: Number.MAX_SAFE_INTEGER,
  read: (_, length) => (length <= ZEROS.length ? ZEROS.subarray(0, length) : new Uint8Array(length)),
}

/** Leaves holes where there are zeros. */
function writeSparse(path: string, message: MessageWriter): void {
  const descriptor = openSync(path, 'w')
  try {
    let at = 0
    for (const chunk of message.chunks()) {
      if (chunk.buffer !== ZEROS.buffer) writeSync(descriptor, chunk, 0, chunk.length, at)
      at += chunk.length
    }
    ftruncateSync(descriptor, message.size)
  } finally {
    closeSync(descriptor)
  }
}
