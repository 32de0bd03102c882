/**
 * Random graphs that onnxruntime can run: chains and webs of operators, control flow,
 * sequences, optionals, types that cannot leave a model, shape arithmetic, unsorted files.
 *
 * All floats are [2, 3], so that any value fits any operator. `fc` gives a list of steps;
 * each step picks its operands from what is there by number.
 */
import fc from 'fast-check'
import {
  type GraphSpec,
  floats,
  ints,
  type ModelSpec,
  type NodeSpec,
  op,
} from '../../testdata/onnx-builder.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'

type Kind = 'float' | 'int' | 'bool' | 'sequence' | 'optional' | 'bfloat16' | 'half'

export interface RandomGraph {
  readonly spec: ModelSpec
  readonly feeds: ReadonlyMap<string, Tensor>
}

const SHAPE = [2, 3]

interface Step {
  readonly kind: number
  readonly picks: readonly [number, number, number]
  readonly seed: number
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.nat(1_000_000),
  picks: fc.tuple(fc.nat(1_000), fc.nat(1_000), fc.nat(1_000)),
  seed: fc.integer({ min: -8, max: 8 }),
})

export const randomGraph: fc.Arbitrary<RandomGraph> = fc
  .record({
    steps: fc.array(step, { minLength: 1, maxLength: 14 }),
    order: fc.infiniteStream(fc.nat(1_000_000)),
    isShuffled: fc.boolean(),
    outputs: fc.array(fc.nat(1_000), { minLength: 1, maxLength: 4 }),
    condition: fc.boolean(),
  })
  .map(({ steps, order, isShuffled, outputs, condition }) => {
    const builder = new Builder()
    for (const one of steps) builder.add(one)
    const shuffled = isShuffled
      ? builder.nodes
          .map((node) => ({ node, key: order.next().value as number }))
          .toSorted((a, b) => a.key - b.key)
          .map(({ node }) => node)
      : builder.nodes
    const given = [...new Set(outputs.map((at) => builder.pick(['float', 'int', 'bool'], at)))]
    return {
      spec: {
        nodes: shuffled,
        inputs: { x: ['float32', SHAPE], y: ['float32', SHAPE], c: ['bool', []] },
        outputs: Object.fromEntries(given.map((name) => [name, undefined])),
        initializers: builder.initializers,
      } satisfies ModelSpec,
      feeds: new Map<string, Tensor>([
        ['x', floats(SHAPE, [1.5, -2.25, 3, -0.5, 0.125, 7])],
        ['y', floats(SHAPE, [-1, 0.75, 2.5, 4, -3.5, 0.1])],
        ['c', tensor('bool', [], Uint8Array.of(condition ? 1 : 0))],
      ]),
    }
  })

class Builder {
  readonly nodes: NodeSpec[] = []
  readonly initializers: Record<string, Tensor> = {}
  readonly #values: { name: string; kind: Kind }[] = [
    { name: 'x', kind: 'float' },
    { name: 'y', kind: 'float' },
  ]
  #count = 0

  pick(kinds: readonly Kind[], at: number): string {
    const fitting = this.#values.filter(({ kind }) => kinds.includes(kind))
    return fitting[at % fitting.length]!.name
  }

  add({ kind, picks, seed }: Step): void {
    const makers = MAKERS.filter(({ needs }) =>
      needs.every((need) => this.#values.some((value) => value.kind === need)),
    )
    const maker = makers[kind % makers.length]!
    const operands = maker.needs.map((need, at) => this.pick([need], picks[at % 3]!))
    maker.make({
      operands,
      seed,
      fresh: () => `v${this.#count++}`,
      node: (spec) => this.nodes.push(spec),
      weight: (value) => this.#weight(value, seed),
      give: (name, given) => this.#values.push({ name, kind: given }),
    })
  }

  /** Weights as initializers and as Constant nodes in turn. */
  #weight(value: Tensor, seed: number): string {
    const name = `w${this.#count++}`
    if (seed % 2 === 0) this.initializers[name] = value
    else this.nodes.push(op('Constant', [], [name], { value: { tensor: value } }))
    return name
  }
}

interface Making {
  readonly operands: readonly string[]
  readonly seed: number
  readonly fresh: () => string
  readonly node: (spec: NodeSpec) => void
  readonly weight: (value: Tensor) => string
  readonly give: (name: string, kind: Kind) => void
}

interface Maker {
  readonly needs: readonly Kind[]
  readonly make: (making: Making) => void
}

const simple = (
  type: string,
  needs: readonly Kind[],
  gives: Kind,
  attributes: NodeSpec['attributes'] = {},
): Maker => ({
  needs,
  make: ({ operands, fresh, node, give, seed }) => {
    const name = fresh()
    node(op(type, operands, [name], attributes, seed > 0 ? { name: `${type}_${name}` } : {}))
    give(name, gives)
  },
})

const [FLOAT, FLOAT16, BFLOAT16, INT64] = [1, 10, 16, 7]

const MAKERS: readonly Maker[] = [
  ...['Relu', 'Neg', 'Abs', 'Sigmoid', 'Tanh', 'Identity'].map((type) => simple(type, ['float'], 'float')),
  ...['Add', 'Sub', 'Mul', 'Max'].map((type) => simple(type, ['float', 'float'], 'float')),
  simple('Greater', ['float', 'float'], 'bool'),
  simple('Not', ['bool'], 'bool'),
  simple('Where', ['bool', 'float', 'float'], 'float'),
  simple('Cast', ['float'], 'int', { to: INT64 }),
  simple('Cast', ['int'], 'float', { to: FLOAT }),
  simple('Cast', ['float'], 'half', { to: FLOAT16 }),
  simple('Cast', ['half'], 'float', { to: FLOAT }),
  simple('Cast', ['float'], 'bfloat16', { to: BFLOAT16 }),
  simple('Cast', ['bfloat16'], 'float', { to: FLOAT }),
  simple('SequenceConstruct', ['float', 'float'], 'sequence'),
  simple('SequenceInsert', ['sequence', 'float'], 'sequence'),
  simple('Optional', ['float'], 'optional'),
  simple('OptionalGetElement', ['optional'], 'float'),
  {
    needs: ['sequence'],
    make: ({ operands, fresh, node, weight, give }) => {
      const name = fresh()
      node(op('SequenceAt', [operands[0]!, weight(ints([], [0]))], [name]))
      give(name, 'float')
    },
  },
  {
    needs: ['float'],
    make: ({ operands, fresh, node, weight, give, seed }) => {
      const name = fresh()
      node(op('MatMul', [operands[0]!, weight(floats([3, 3], [1, seed, 0, 0.5, 1, 0, 0, 0, 1]))], [name]))
      give(name, 'float')
    },
  },
  {
    // Clip with its lower bound left out.
    needs: ['float'],
    make: ({ operands, fresh, node, weight, give, seed }) => {
      const name = fresh()
      node(op('Clip', [operands[0]!, '', weight(floats([], [seed]))], [name]))
      give(name, 'float')
    },
  },
  {
    needs: ['float'],
    make: ({ operands, fresh, node, give }) => {
      const [left, right, name] = [fresh(), fresh(), fresh()]
      node(op('Split', [operands[0]!], [left, right], { axis: 0 }))
      node(op('Concat', [right, left], [name], { axis: 0 }))
      give(name, 'float')
    },
  },
  {
    // Shape arithmetic: flatten and back.
    needs: ['float', 'float'],
    make: ({ operands, fresh, node, weight, give }) => {
      const [shape, flat, name] = [fresh(), fresh(), fresh()]
      node(op('Shape', [operands[0]!], [shape]))
      node(op('Reshape', [operands[1]!, weight(ints([1], [-1]))], [flat]))
      node(op('Reshape', [flat, shape], [name]))
      give(name, 'float')
    },
  },
  {
    needs: ['float', 'float'],
    make: ({ operands, fresh, node, give }) => {
      const name = fresh()
      const branch = (type: string): GraphSpec => ({
        nodes: [op(type, [operands[0]!, operands[1]!], [`${name}_${type}`])],
        outputs: { [`${name}_${type}`]: ['float32', SHAPE] },
      })
      node(
        op('If', ['c'], [name], {
          then_branch: { graph: branch('Add') },
          else_branch: { graph: branch('Sub') },
        }),
      )
      give(name, 'float')
    },
  },
  {
    needs: ['float', 'float'],
    make: ({ operands, fresh, node, weight, give, seed }) => {
      const name = fresh()
      const trips = weight(ints([], [Math.abs(seed) % 3]))
      const body: GraphSpec = {
        inputs: {
          [`${name}_i`]: ['int64', []],
          [`${name}_go`]: ['bool', []],
          [`${name}_s`]: ['float32', SHAPE],
        },
        nodes: [
          op('Identity', [`${name}_go`], [`${name}_on`]),
          op('Add', [`${name}_s`, operands[1]!], [`${name}_t`]),
          op('Tanh', [`${name}_t`], [`${name}_u`]),
        ],
        outputs: { [`${name}_on`]: ['bool', []], [`${name}_u`]: ['float32', SHAPE] },
      }
      node(op('Loop', [trips, '', operands[0]!], [name], { body: { graph: body } }))
      give(name, 'float')
    },
  },
]
