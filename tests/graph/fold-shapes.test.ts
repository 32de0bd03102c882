import { expect, test } from 'vitest'
import fc from 'fast-check'
import { foldShapes } from '../../src/graph/fold-shapes.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { graphAsModel } from '../../src/graph/whole.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { floats, ints, type NodeSpec, op } from '../../testdata/onnx-builder.ts'
import { runBytes } from '../support/composition.ts'
import { tempModel } from '../support/temp-model.ts'

const INT64_MAX = 9_007_199_254_740_991

/** A step makes one node from the lists so far; `a` and `b` choose operands and arguments. */
const STEPS: Readonly<
  Record<string, (lists: readonly string[], a: number, b: number, out: string) => Making>
> = {
  Shape: (_, a, b, out) => ({ node: op('Shape', ['x'], [out], { start: (a % 9) - 4, end: (b % 9) - 4 }) }),
  Slice: (lists, a, b, out) => ({
    node: op('Slice', [pick(lists, a), `${out}s`, `${out}e`, `${out}a`, `${out}t`], [out]),
    weights: {
      [`${out}s`]: ints([1], [(a % 7) - 3]),
      [`${out}e`]: ints([1], [b % 5 === 0 ? INT64_MAX : (b % 9) - 4]),
      [`${out}a`]: ints([1], [0]),
      [`${out}t`]: ints([1], [[1, 2, -1, -2][(a + b) % 4]!]),
    },
  }),
  Concat: (lists, a, b, out) => ({
    node: op('Concat', [pick(lists, a), pick(lists, b)], [out], { axis: b % 2 ? 0 : -1 }),
  }),
  Gather: (lists, a, b, out) => ({
    node: op('Gather', [pick(lists, a), `${out}i`], [out], { axis: 0 }),
    weights: { [`${out}i`]: ints([2], [(b % 4) - 2, 0]) },
  }),
  ReduceProd: (lists, a, b, out) => ({
    node: op('ReduceProd', [pick(lists, a)], [out], { keepdims: 1, ...(b % 2 ? { axes: [0] } : {}) }),
  }),
  Cast: (lists, a, _, out) => ({ node: op('Cast', [pick(lists, a)], [out], { to: 7 }) }),
  Unsqueeze: (lists, a, b, out) => ({
    node: op('Unsqueeze', [pick(lists, a), `${out}u`], [`${out}m`]),
    weights: { [`${out}u`]: ints([1], [b % 2 ? 0 : -1]), [`${out}q`]: ints([1], [b % 2 ? 0 : -1]) },
    after: op('Squeeze', [`${out}m`, `${out}q`], [out]),
  }),
  Where: (lists, a, b, out) => ({
    node: op('Greater', [pick(lists, a), `${out}k`], [`${out}c`]),
    weights: { [`${out}k`]: ints([1], [2]) },
    after: op('Where', [`${out}c`, pick(lists, a), `${out}k`], [out]),
    skip: b % 3 === 0,
  }),
  ...Object.fromEntries(
    ['Add', 'Sub', 'Mul', 'Div', 'Min', 'Max'].map((type) => [
      type,
      (lists: readonly string[], a: number, b: number, out: string): Making => ({
        node: op(type, [pick(lists, a), `${out}k`], [out]),
        weights: { [`${out}k`]: ints([1], [(b % 7) - 3 || 1]) },
      }),
    ]),
  ),
}

interface Making {
  readonly node: NodeSpec
  readonly after?: NodeSpec
  readonly weights?: Record<string, Tensor>
  readonly skip?: boolean
}

test('folded shape arithmetic is what onnxruntime computes', { timeout: 60_000 }, async () => {
  const step = fc.tuple(fc.constantFrom(...Object.keys(STEPS)), fc.nat(1000), fc.nat(1000))
  let compared = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const nodes: NodeSpec[] = [op('Shape', ['x'], ['base'])]
      const initializers: Record<string, Tensor> = { seed: ints([3], [2, -5, 7]) }
      const lists = ['base', 'seed']
      for (const [at, [name, a, b]] of steps.entries()) {
        const { node, after, weights, skip } = STEPS[name]!(lists, a, b, `v${at}`)
        if (skip) continue
        nodes.push(node, ...(after === undefined ? [] : [after]))
        Object.assign(initializers, weights)
        lists.push(`v${at}`)
      }
      const file = tempModel({
        inputs: { x: ['float32', [2, 3, 4]] },
        outputs: { [lists.at(-1)!]: undefined },
        nodes,
        initializers,
      })
      const graph = resolveModel(file.model)
      const folded = foldShapes(graph, inferTypes(graph))
      const results = await runOrSkip(
        graph,
        [...folded.keys()].map(({ name }) => name),
        file,
      )
      if (results === undefined) return
      for (const [value, constant] of folded) {
        expect({ name: value.name, ...constant }).toEqual({ name: value.name, ...results.get(value.name) })
        compared++
      }
    }),
    { numRuns: 150 },
  )
  expect(compared).toBeGreaterThan(150)
})

test('an entry that is not known does not spoil the others', () => {
  const file = tempModel({
    inputs: { x: ['float32', ['batch', 3, 4]] },
    outputs: { whole: undefined, last: undefined, product: undefined },
    initializers: { from: ints([1], [1]), to: ints([1], [3]), two: ints([], [2]) },
    nodes: [
      op('Shape', ['x'], ['whole']),
      op('Gather', ['whole', 'two'], ['last'], { axis: 0 }),
      op('Slice', ['whole', 'from', 'to'], ['tail']),
      op('ReduceProd', ['tail'], ['product'], { keepdims: 0 }),
    ],
  })
  const graph = resolveModel(file.model)
  const folded = new Map(
    [...foldShapes(graph, inferTypes(graph))].map(([{ name }, { data }]) => [name, data]),
  )
  expect(folded).toEqual(
    new Map([
      ['last', BigInt64Array.of(4n)],
      ['tail', BigInt64Array.of(3n, 4n)],
      ['product', BigInt64Array.of(12n)],
    ]),
  )
})

test('data is left alone: long lists and floats are not folded', () => {
  const file = tempModel({
    inputs: { x: ['float32', [2]] },
    outputs: { y: undefined, z: undefined },
    initializers: { many: tensor('int64', [5000], new BigInt64Array(5000)), f: floats([2], [1, 2]) },
    nodes: [op('Neg', ['many'], ['y']), op('Neg', ['f'], ['z'])],
  })
  const graph = resolveModel(file.model)
  expect(foldShapes(graph, inferTypes(graph)).size).toBe(0)
})

async function runOrSkip(
  graph: ReturnType<typeof resolveModel>,
  names: readonly string[],
  file: ReturnType<typeof tempModel>,
): Promise<ReadonlyMap<string, Tensor> | undefined> {
  const values = graph.values.filter(({ name }) => names.includes(name))
  const types = inferTypes(graph)
  const typeOf = (value: (typeof values)[number]) =>
    value.origin.kind === 'input' ? types.get(value) : undefined
  const model = graphAsModel(graph, values, typeOf, { kind: 'inline', external: file.external })
  try {
    return await runBytes(
      model.toBytes(),
      new Map([
        [
          'x',
          floats(
            [2, 3, 4],
            Array.from({ length: 24 }, () => 1),
          ),
        ],
      ]),
    )
  } catch {
    // Random steps may divide by zero or index out of range, which the runtime refuses.
    return undefined
  }
}

function pick(lists: readonly string[], at: number): string {
  return lists[at % lists.length]!
}
