/** Lists of sizes as values: what shape arithmetic makes of the axes of others. */
import type { Axes } from './axis-step.ts'
import { Argument } from './input-arguments.ts'
import { productAxis, sumAxis } from './input-axes.ts'
import type { Value } from './resolve.ts'

/** The list of sizes that a node of shape arithmetic gives. */
export function listMade(
  node: Argument,
  listOf: (slot: number) => Axes | undefined,
  axesOf: (value: Value) => Axes | undefined,
): Axes | undefined {
  const data = node.node.inputs[0]
  switch (node.operator) {
    case 'Shape': {
      const axes = data && axesOf(data)
      return axes?.slice(node.int('start') ?? 0, node.int('end') ?? axes.length)
    }
    case 'Cast':
    case 'Identity':
    case 'Unsqueeze':
    case 'Squeeze':
      return listOf(0)
    case 'Gather': {
      const list = listOf(0)
      return list && node.numbers(1)?.map((at) => list.at(at))
    }
    case 'Slice': {
      const [start, end, step] = [1, 2, 4].map((slot) => node.numbers(slot)?.[0])
      if (start === undefined || end === undefined || (step ?? 1) !== 1) return undefined
      return listOf(0)?.slice(start, end)
    }
    case 'Concat': {
      const lists = node.node.inputs.map((_, slot) => listOf(slot))
      if (!lists.every((list) => list !== undefined)) return undefined
      return lists.reduce((sum, { length }) => sum + length, 0) > MAX_LIST ? undefined : lists.flat()
    }
    case 'Mul':
    case 'Add': {
      const [a, b] = [listOf(0), listOf(1)]
      if (a?.length !== 1 || b?.length !== 1) return undefined
      return [node.operator === 'Mul' ? productAxis([a[0], b[0]]) : sumAxis([a[0], b[0]])]
    }
    default:
      return undefined
  }
}

/** Longer lists are data, not sizes. */
const MAX_LIST = 1024
