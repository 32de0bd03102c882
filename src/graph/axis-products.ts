/** Axes that meet those of weights: matrix products and recurrent layers. */
import { type Axes, type AxisStep, broadcast } from './axis-step.ts'

export function matMul({ inputs: [a, b], demands }: AxisStep): readonly (Axes | undefined)[] | undefined {
  if (a === undefined || b === undefined || a.length === 0 || b.length === 0) return undefined
  demands.equal(a.at(-1), b.length === 1 ? b[0] : b.at(-2))
  if (a.length === 1 || b.length === 1) return undefined
  return [[...broadcast([a.slice(0, -2), b.slice(0, -2)], demands), a.at(-2), b.at(-1)]]
}

export function gemm({ inputs: [a, b], demands, node }: AxisStep): readonly (Axes | undefined)[] | undefined {
  if (a?.length !== 2 || b?.length !== 2) return undefined
  const [rows, inner] = node.int('transA') === 1 ? [a[1], a[0]] : [a[0], a[1]]
  const [partner, columns] = node.int('transB') === 1 ? [b[1], b[0]] : [b[0], b[1]]
  demands.equal(inner, partner)
  return [[rows, columns]]
}

/** X, W, R, B, sequence_lens, initial_h, initial_c. */
export function recurrent({ inputs, node, demands }: AxisStep): readonly (Axes | undefined)[] | undefined {
  const [data, weights, again] = inputs
  const isBatchFirst = node.int('layout') === 1
  demands.equal(data?.[2], weights?.[2])
  const [time, batch] = isBatchFirst ? [data?.[1], data?.[0]] : [data?.[0], data?.[1]]
  for (const state of [inputs[5], inputs[6]]) {
    if (state?.length !== 3) continue
    demands.equal(isBatchFirst ? state[0] : state[1], batch)
    demands.equal(isBatchFirst ? state[1] : state[0], weights?.[0])
    demands.equal(state[2], again?.[2])
  }
  demands.equal(inputs[4]?.[0], batch)
  return isBatchFirst ? undefined : [data && [time, weights?.[0], batch, again?.[2]]]
}
