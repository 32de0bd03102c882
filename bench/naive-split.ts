/**
 * What a straightforward implementation does, to compare with: decode all, encode each part.
 *
 * One part per node, with onnx-proto. It knows no scopes, groups, functions or folded shapes,
 * and types only where the file declares them, so it does less than what it is compared with.
 */
import onnxProto, { type onnx } from 'onnx-proto'

const { GraphProto, ModelProto } = onnxProto.onnx

export function decodeWhole(bytes: Uint8Array): onnx.IModelProto {
  return ModelProto.decode(bytes)
}

export function encodeParts(model: onnx.IModelProto): Uint8Array[] {
  const graph = model.graph!
  const nodes = graph.node ?? []
  const constants = new Map(nodes.filter(isConstant).flatMap((node) => namesOf(node, node.output)))
  const weights = new Map((graph.initializer ?? []).map((tensor) => [tensor.name, tensor]))
  const values = [...(graph.valueInfo ?? []), ...(graph.output ?? []), ...(graph.input ?? [])]
  const types = new Map(values.map((value) => [value.name, value]))
  const declared = (name: string): onnx.IValueInfoProto => types.get(name) ?? { name }
  return nodes
    .filter((node) => !isConstant(node))
    .map((node) => {
      const read = [...new Set(node.input)].filter((name) => name !== '')
      const inputs = read.filter((name) => !weights.has(name) && !constants.has(name))
      const part = GraphProto.create({
        name: node.name ?? '',
        node: [...present(read, constants), node],
        initializer: present(read, weights),
        input: inputs.map(declared),
        output: (node.output ?? []).filter((name) => name !== '').map(declared),
      })
      return ModelProto.encode({ ...model, graph: part }).finish()
    })
}

function isConstant({ opType }: onnx.INodeProto): boolean {
  return opType === 'Constant'
}

function namesOf<T>(item: T, names: readonly string[] | null | undefined): [string, T][] {
  return (names ?? []).map((name) => [name, item])
}

function present<T>(names: readonly string[], table: ReadonlyMap<string | null | undefined, T>): T[] {
  return names.map((name) => table.get(name)).filter((item) => item !== undefined)
}
