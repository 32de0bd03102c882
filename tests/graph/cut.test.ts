import { describe, expect, test } from 'vitest'
import { composeModel } from '../../src/graph/compose.ts'
import { type Cut, cutPrefix, cutRange, findValue } from '../../src/graph/cut.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { resolveModel, type ScopedGraph } from '../../src/graph/resolve.ts'
import { computedValues, graphAsModel } from '../../src/graph/whole.ts'
import { floats, op } from '../../testdata/onnx-builder.ts'
import { runBytes } from '../support/composition.ts'
import { tempModel } from '../support/temp-model.ts'

const FLOAT = ['float32', [2]] as const
const X = floats([2], [1, -2])

/** x -> a -> b -> d, and x -> c -> d; w is a weight of c. */
const file = tempModel({
  inputs: { x: FLOAT, other: FLOAT },
  outputs: { d: FLOAT, o: FLOAT },
  initializers: { w: floats([2], [10, 20]) },
  nodes: [
    op('Relu', ['x'], ['a']),
    op('Neg', ['a'], ['b']),
    op('Add', ['x', 'w'], ['c']),
    op('Mul', ['b', 'c'], ['d']),
    op('Abs', ['other'], ['o']),
  ],
})
const graph = resolveModel(file.model)
const types = inferTypes(graph)
const values = (...names: string[]) => names.map((name) => findValue(graph, name))

describe('a cut', () => {
  test('holds what lies between, with its weights', async () => {
    const cut = cutRange(graph, values('x', 'b'), values('d'))
    expect(ops(cut)).toEqual(['Add', 'Mul'])
    const results = await run(graph, cut, { x: X, b: floats([2], [3, 4]) })
    expect(results.get('d')).toEqual(floats([2], [33, 72]))
  })

  test('without a beginning goes back to the inputs', () => {
    const cut = cutPrefix(graph, values('c'))
    expect([ops(cut), cut.inputs.map(({ name }) => name)]).toEqual([['Add'], ['x']])
  })

  test('that needs more than it is given says what', () => {
    expect(() => cutRange(graph, values('b'), values('d'))).toThrow(
      expect.objectContaining({ code: 'INCOMPLETE_CUT', hint: 'Cut there as well: --from b,x' }),
    )
  })

  test('that is given too much says what', () => {
    expect(() => cutRange(graph, values('x', 'other'), values('c'))).toThrow(/"other" does not lead to "c"/)
  })

  test('of a weight holds the weight', async () => {
    const cut = cutPrefix(graph, values('w'))
    expect((await run(graph, cut, {})).get('w')).toEqual(floats([2], [10, 20]))
  })

  test('names the closest value for one that is not there', () => {
    expect(() => findValue(graph, 'D')).toThrow(expect.objectContaining({ hint: 'Did you mean "d"?' }))
    expect(() => findValue(graph, 'zebra')).toThrow(expect.objectContaining({ code: 'UNKNOWN_VALUE' }))
  })
})

test('a graph with all its values marked gives them all', async () => {
  const all = computedValues(graph)
  const model = graphAsModel(graph, all, (value) => types.get(value), {
    kind: 'inline',
    external: file.external,
  })
  const results = await runBytes(
    model.toBytes(),
    new Map([
      ['x', X],
      ['other', X],
    ]),
  )
  expect([...results.keys()]).toEqual(['a', 'b', 'c', 'd', 'o'])
  expect(results.get('b')).toEqual(floats([2], [-1, -0]))
})

const ops = ({ nodes }: Cut): string[] => nodes.map(({ entry }) => entry.opType)

function run(owner: ScopedGraph, cut: Cut, feeds: Record<string, typeof X>): ReturnType<typeof runBytes> {
  const composition = { ...cut, model: owner.model, name: 'cut' }
  const model = composeModel(composition, (value) => types.get(value), {
    kind: 'inline',
    external: file.external,
  })
  return runBytes(model.toBytes(), new Map(Object.entries(feeds)))
}
