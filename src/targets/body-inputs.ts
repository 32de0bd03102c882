/**
 * What the body of a control-flow node sees in its first turn: values around it -> its inputs.
 *
 * Captured values as they are; for a Loop the counter 0, a true condition and the initial
 * state; for a Scan the initial state and the first slice of what is scanned.
 */
import { inputsOfGraph } from '../graph/whole.ts'
import type { GraphNode, ScopedGraph, Value } from '../graph/resolve.ts'
import { readAttributes } from '../onnx/attributes.ts'
import { bytesOfTensor, type Tensor, tensor, tensorFromBytes } from '../tensor/tensor.ts'

export function firstTurn(
  node: GraphNode,
  body: ScopedGraph,
  values: ReadonlyMap<Value, Tensor> | undefined,
): ReadonlyMap<Value, Tensor> | undefined {
  if (values === undefined) return undefined
  const feeds = new Map<Value, Tensor>()
  const formals = formalInputs(node, values)
  for (const [slot, value] of body.inputs.entries()) {
    const fed = formals[slot]
    if (fed === undefined) return undefined
    feeds.set(value, fed)
  }
  for (const value of inputsOfGraph(body).slice(body.inputs.length)) {
    const fed = values.get(value)
    if (fed === undefined) return undefined
    feeds.set(value, fed)
  }
  // Bodies further in may capture what this one does not read itself.
  for (const [value, fed] of values) if (!feeds.has(value)) feeds.set(value, fed)
  return feeds
}

function formalInputs(node: GraphNode, values: ReadonlyMap<Value, Tensor>): readonly (Tensor | undefined)[] {
  const given = node.inputs.map((value) => (value === undefined ? undefined : values.get(value)))
  switch (node.entry.opType) {
    case 'Loop':
      return [
        tensor('int64', [], BigInt64Array.of(0n)),
        tensor('bool', [], Uint8Array.of(1)),
        ...given.slice(2),
      ]
    case 'Scan':
      return scanInputs(node, given)
    default:
      return given
  }
}

function scanInputs(node: GraphNode, given: readonly (Tensor | undefined)[]): (Tensor | undefined)[] {
  const attributes = readAttributes(node.graph.model.source, node.entry)
  const count = attributes.get('num_scan_inputs')
  const axes = attributes.get('scan_input_axes')
  if (count?.kind !== 'int') return []
  const states = given.length - Number(count.value)
  return given.map((value, slot) => {
    if (slot < states || value === undefined) return value
    const axis = axes?.kind === 'ints' ? Number(axes.value[slot - states] ?? 0n) : 0
    return firstSlice(value, axis < 0 ? axis + value.shape.length : axis)
  })
}

/** The first entry along an axis, without that axis. */
function firstSlice(value: Tensor, axis: number): Tensor | undefined {
  if (value.dtype === 'string' || !(value.shape[axis]! > 0)) return undefined
  const outer = value.shape.slice(0, axis).reduce((product, dim) => product * dim, 1)
  const bytes = bytesOfTensor(value)
  const stride = bytes.length / outer
  const wanted = stride / value.shape[axis]!
  if (!Number.isInteger(wanted)) return undefined
  const slice = new Uint8Array(outer * wanted)
  for (let at = 0; at < outer; at++) slice.set(bytes.subarray(at * stride, at * stride + wanted), at * wanted)
  return tensorFromBytes(value.dtype, value.shape.toSpliced(axis, 1), slice)
}
