/** Axes under windows: convolutions, pools and the pads around them. */
import { type Axes, type AxisStep, normal } from './axis-step.ts'
import { Argument } from './input-arguments.ts'
import { after } from './input-axes.ts'

export function convolution(step: AxisStep): readonly (Axes | undefined)[] | undefined {
  const { inputs, demands, node } = step
  const [data, weights] = inputs
  if (data === undefined || weights === undefined) return undefined
  const group = node.int('group') ?? 1
  const perGroup = weights[1]
  if (typeof perGroup === 'number') demands.equal(data[1], perGroup * group)
  const kernel =
    node.ints('kernel_shape') ?? weights.slice(2).map((size) => (typeof size === 'number' ? size : 1))
  const out = window(step, data, kernel)
  return [out && [out[0], weights[0], ...out.slice(2)]]
}

/** Every window must fit at least once. */
export function window(
  { demands, node }: AxisStep,
  data: Axes | undefined,
  kernel: readonly number[],
): Axes | undefined {
  if (data === undefined || data.length !== kernel.length + 2) return undefined
  const [strides, dilations, pads] = [node.ints('strides'), node.ints('dilations'), node.ints('pads')]
  const auto = node.text('auto_pad') ?? 'NOTSET'
  return data.map((size, axis) => {
    if (axis < 2) return size
    const at = axis - 2
    const stride = strides?.[at] ?? 1
    if (auto.startsWith('SAME')) return after(size, { kind: 'window', kernel: 1, stride, pads: 0 })
    const span = (kernel[at]! - 1) * (dilations?.[at] ?? 1) + 1
    const padding = auto === 'VALID' ? 0 : (pads?.[at] ?? 0) + (pads?.[at + kernel.length] ?? 0)
    demands.atLeast(size, span - padding)
    return node.int('ceil_mode') === 1
      ? undefined
      : after(size, { kind: 'window', kernel: span, stride, pads: padding })
  })
}

export function globalPool({ inputs: [data] }: AxisStep): readonly (Axes | undefined)[] {
  return [data?.map((size, axis) => (axis < 2 ? size : 1))]
}

/** Reflections are shorter than what they reflect. */
export function pad({ inputs: [data], node, demands }: AxisStep): readonly (Axes | undefined)[] | undefined {
  const pads = node.numbers(1) ?? node.ints('pads') ?? torchPads(node)
  const axes = node.numbers(3)
  if (data === undefined || pads === undefined || pads.length !== 2 * (axes?.length ?? data.length))
    return undefined
  const isReflection = node.text('mode') === 'reflect'
  return [
    data.map((size, axis) => {
      const at = axes === undefined ? axis : axes.findIndex((other) => normal(other, data.length) === axis)
      if (at === -1) return size
      const [start, end] = [pads[at]!, pads[at + pads.length / 2]!]
      if (isReflection) demands.atLeast(size, Math.max(start, end) + 1)
      return start + end === 0
        ? size
        : after(size, { kind: 'window', kernel: 1, stride: 1, pads: start + end })
    }),
  ]
}

/**
 * torch lists pads from the last axis on, start and end in turn, and its exporter turns the list
 * around in the graph: Reshape to pairs, Slice backwards, Transpose, Reshape, Cast.
 */
function torchPads(argument: Argument): readonly number[] | undefined {
  let value = argument.node.inputs[1]
  const way: string[] = []
  while (value?.origin.kind === 'node' && way.length < TORCH_WAY.length) {
    way.push(value.origin.node.entry.opType)
    value = value.origin.node.inputs[0]
  }
  const pairs = value === undefined || way.join() !== TORCH_WAY.join() ? undefined : argument.numbersOf(value)
  if (pairs === undefined) return undefined
  const starts = pairs.filter((_, at) => at % 2 === 0).toReversed()
  const ends = pairs.filter((_, at) => at % 2 === 1).toReversed()
  return [...starts, ...ends]
}

const TORCH_WAY = ['Cast', 'Reshape', 'Transpose', 'Slice', 'Reshape']
