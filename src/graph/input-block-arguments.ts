/** The arguments of Col2Im: the picture, and blocks that cut it into as many as there are columns. */
import { type Argument, type Sizes, isFixed } from './input-arguments.ts'
import type { InputDomain } from './input-domain.ts'
import { counted, list, ones } from './input-list.ts'

/** Blocks of one entry, in a picture that has as many of them as there are columns. */
export function imageShape(argument: Argument): InputDomain | undefined {
  const [out, count, columns] = [argument.outputShape(), argument.length, argument.size(0, 2)]
  const spatial = out?.slice(2)
  if (spatial !== undefined && isFixed(spatial) && spatial.length === count) {
    return list(argument, spatial, 'shape of the picture')
  }
  return count === undefined || columns === undefined
    ? undefined
    : list(argument, [...ones(count - 1), columns], 'shape of the picture')
}

export function blockShape(argument: Argument): InputDomain | undefined {
  const [out, count] = [argument.outputShape(), argument.length]
  const [rows, channels] = [argument.size(0, 1), out?.[1]]
  if (count === undefined) return undefined
  const image = argument.outputShape()?.slice(2)
  const blocks = channels === undefined || rows === undefined ? undefined : rows / channels
  const isSmall = blocks !== undefined && blocks > 0 && blocks <= MAX_BLOCK && count <= MAX_BLOCK_AXES
  const chosen = image && isSmall ? blockOf(argument, blocks, image, count) : undefined
  return list(argument, chosen ?? ones(count), 'shape of a block')
}

/** Factors of `blocks` that cut the picture into as many blocks as there are columns. */
function blockOf(
  argument: Argument,
  blocks: number,
  image: Sizes,
  count: number,
): readonly number[] | undefined {
  const columns = argument.size(0, 2)
  const [strides, dilations, pad] = [
    argument.ints('strides'),
    argument.ints('dilations'),
    argument.ints('pads'),
  ]
  const places = (block: readonly number[]): number =>
    block.reduce((all, size, at) => {
      const span = (dilations?.[at] ?? 1) * (size - 1) + 1
      const room = (image[at] ?? 1) + (pad?.[at] ?? 0) + (pad?.[at + count] ?? 0)
      return all * (Math.floor((room - span) / (strides?.[at] ?? 1)) + 1)
    }, 1)
  return factorings(blocks, count).find((block) => places(block) === columns)
}

/** Entries of a block, in as many axes as pictures have; every way to write one as a product is tried. */
const MAX_BLOCK = 65_536

const MAX_BLOCK_AXES = 4

function factorings(whole: number, count: number): number[][] {
  if (count === 1) return [[whole]]
  return counted(whole)
    .map((at) => at + 1)
    .filter((factor) => whole % factor === 0)
    .flatMap((factor) => factorings(whole / factor, count - 1).map((rest) => [factor].concat(rest)))
}
