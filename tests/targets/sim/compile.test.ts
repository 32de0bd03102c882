import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { bytesSource } from '../../../src/bytes/byte-source.ts'
import { ModelTestError } from '../../../src/errors.ts'
import { indexModel } from '../../../src/onnx/model-index.ts'
import { compileForSim, type SimRanges } from '../../../src/targets/sim/compile.ts'
import { DEFAULT_CHIPS, type SimChip } from '../../../src/targets/sim/chip.ts'
import { bytesOfTensor, fromFloat64, type Tensor, toFloat64 } from '../../../src/tensor/tensor.ts'
import {
  buildModel,
  floats,
  type GraphSpec,
  ints,
  type ModelSpec,
  op,
} from '../../../testdata/onnx-builder.ts'
import { differences, type Tensors } from '../../support/composition.ts'
import { randomGraph } from '../../support/random-graph.ts'
import { tempFolder } from '../../support/temp-model.ts'
import { roundedNames, run, runAll } from './simulate.ts'

const FLOAT16: SimChip = { name: 'half', storage: 'float16' }
const INT8: SimChip = { name: 'byte', storage: 'int8' }

/** Not a number of float16: it becomes 0.0999755859375 there. */
const TENTH = Math.fround(0.1)
const HALF_TENTH = 0.0999755859375
const X = floats([2], [TENTH, 1])

async function firstOf(
  spec: ModelSpec,
  chip: SimChip = FLOAT16,
  ranges: SimRanges = {},
  feeds?: Tensors,
): Promise<number[]> {
  const { bytes } = compileForSim(buildModel(spec), chip, ranges)
  const [result] = (await run(bytes, feeds ?? new Map([['x', X]]))).values()
  return [...toFloat64(result!)]
}

const pair = ['float32', [2]] as const
const inputs = { x: pair }
const outputs = { y: pair }

const half = (value: number): number => toFloat64(fromFloat64('float16', [1], Float64Array.of(value)))[0]!

describe('what is stored is rounded', () => {
  const weight = floats([2], [TENTH, TENTH])

  test.each<[string, Partial<ModelSpec>]>([
    ['a weight', { initializers: { w: weight }, nodes: [op('Max', ['w', 'w'], ['y'])] }],
    ['a weight that the model gives', { initializers: { y: weight }, nodes: [] }],
    [
      'a Constant node behind its reader',
      {
        nodes: [op('Max', ['w', 'w'], ['y']), op('Constant', [], ['w'], { value: { tensor: weight } })],
      },
    ],
    [
      'a list of a Constant node',
      { nodes: [op('Constant', [], ['y'], { value_floats: { floats: [TENTH, TENTH] } })] },
    ],
    [
      'an input',
      {
        nodes: [op('Identity', ['x'], ['t']), op('Expand', ['t', 's'], ['y'])],
        initializers: { s: ints([1], [2]) },
      },
    ],
    [
      'a result',
      {
        initializers: { e: floats([], [TENTH]) },
        nodes: [op('Sub', ['x', 'x'], ['t']), op('Add', ['t', 'e'], ['y'])],
      },
    ],
    [
      'a spread constant',
      {
        initializers: { e: floats([], [TENTH]), s: ints([1], [2]) },
        nodes: [op('Expand', ['e', 's'], ['y'])],
      },
    ],
  ])('%s', async (_, spec) => {
    const [first] = await firstOf({ inputs, outputs, nodes: [], ...spec })
    expect(first).toBe(HALF_TENTH)
  })

  test('a call of a local function, not what is inside it', async () => {
    const call: ModelSpec = {
      opsets: { local: 1 },
      functions: [
        {
          domain: 'local',
          name: 'Twice',
          inputs: ['a'],
          outputs: ['c'],
          nodes: [op('Exp', ['a'], ['b']), op('Log', ['b'], ['d']), op('Add', ['d', 'd'], ['c'])],
        },
      ],
      inputs,
      outputs,
      nodes: [op('Twice', ['x'], ['y'], {}, { domain: 'local' })],
    }
    expect(roundedNames(buildModel(call), 'float16')).toEqual(new Set(['y']))
    expect((await firstOf(call))[0]).toBe(2 * HALF_TENTH)
  })

  test('values in the bodies of control flow, and what those capture', async () => {
    const branch = (type: string): GraphSpec => ({
      initializers: { [`${type}_w`]: floats([2], [TENTH, TENTH]) },
      nodes: [op(type, ['x', `${type}_w`], [`${type}_t`]), op('Mul', [`${type}_t`, 'x'], [`${type}_y`])],
      outputs: { [`${type}_y`]: pair },
    })
    const spec: ModelSpec = {
      inputs: { x: pair, c: ['bool', []] },
      outputs,
      nodes: [
        op('If', ['c'], ['y'], {
          then_branch: { graph: branch('Add') },
          else_branch: { graph: branch('Sub') },
        }),
      ],
    }
    const feeds = new Map<string, Tensor>([
      ['x', X],
      ['c', fromFloat64('bool', [], Float64Array.of(1))],
    ])
    const [first] = await firstOf(spec, FLOAT16, {}, feeds)
    expect(first).toBe(half(Math.fround(half(HALF_TENTH + HALF_TENTH) * HALF_TENTH)))
  })

  test('the state of a Loop, turn by turn', async () => {
    const body: GraphSpec = {
      inputs: { i: ['int64', []], go: ['bool', []], s: pair },
      initializers: { one: floats([2], [1, 1]) },
      nodes: [op('Identity', ['go'], ['on']), op('Add', ['s', 'one'], ['t'])],
      outputs: { on: ['bool', []], t: pair },
    }
    const spec: ModelSpec = {
      inputs,
      outputs,
      initializers: { n: ints([], [4]) },
      nodes: [op('Loop', ['n', '', 'x'], ['y'], { body: { graph: body } })],
    }
    // 2048 + 1 is 2048 in float16, however often.
    expect(await firstOf(spec, FLOAT16, {}, new Map([['x', floats([2], [2048, 2])]]))).toEqual([2048, 6])
  })
})

describe('what is not stored is not rounded', () => {
  test('constants of one element', async () => {
    const spec: ModelSpec = {
      inputs,
      outputs,
      initializers: { epsilon: floats([1], [1e-12]) },
      nodes: [op('Div', ['x', 'epsilon'], ['y'])],
    }
    // The epsilon is 0 in float16, and 0 / 0 no number.
    expect(await firstOf(spec, FLOAT16, {}, new Map([['x', floats([2], [0, 0])]]))).toEqual([0, 0])
  })

  test('scales of Resize', async () => {
    const spec: ModelSpec = {
      inputs: { x: ['float32', [1, 1, 1, 3000]] },
      outputs: { y: undefined },
      initializers: { scales: floats([4], [1, 1, 1, 1.0004]) },
      nodes: [op('Resize', ['x', '', 'scales'], ['y'])],
    }
    const x = floats(
      [1, 1, 1, 3000],
      Array.from({ length: 3000 }, () => 1),
    )
    expect(await firstOf(spec, FLOAT16, {}, new Map([['x', x]]))).toHaveLength(3001)
  })

  test('arithmetic on shapes', async () => {
    const spec: ModelSpec = {
      inputs: { x: ['float32', ['n']] },
      outputs: { y: undefined },
      initializers: { half: floats([1], [0.5]) },
      nodes: [
        op('Shape', ['x'], ['s']),
        op('Cast', ['s'], ['f'], { to: 1 }),
        op('Mul', ['f', 'half'], ['h']),
        op('Cast', ['h'], ['i'], { to: 7 }),
        op('ConstantOfShape', ['i'], ['y']),
      ],
    }
    // 4098 / 2 = 2049 is no float16.
    const x = floats(
      [4098],
      Array.from({ length: 4098 }, () => 1),
    )
    expect(await firstOf(spec, FLOAT16, {}, new Map([['x', x]]))).toHaveLength(2049)
  })

  test('what the model quantises itself, on an int8 chip', async () => {
    const spec: ModelSpec = {
      inputs,
      outputs,
      initializers: {
        s: floats([], [0.5]),
        z: fromFloat64('int8', [], Float64Array.of(0)),
        w: floats([2], [1, 1]),
      },
      nodes: [
        op('Mul', ['x', 'w'], ['t']),
        op('QuantizeLinear', ['t', 's', 'z'], ['q']),
        op('DequantizeLinear', ['q', 's', 'z'], ['y']),
      ],
    }
    expect(roundedNames(buildModel(spec), 'int8')).toEqual(new Set())
    expect(roundedNames(buildModel(spec), 'float16')).toEqual(new Set(['t', 'y']))
    expect(await firstOf(spec, INT8, {}, new Map([['x', floats([2], [1.4, -3])]]))).toEqual([1.5, -3])
  })
})

describe('the compiled model', () => {
  const spec: ModelSpec = {
    inputs: { x: pair, w: pair },
    outputs: { y: pair, x: pair },
    initializers: { w: floats([2], [1, 2]) },
    nodes: [op('Add', ['x', 'w'], ['y'], {}, { name: 'sum' })],
    valueInfos: { y__raw: ['float32', [2]] },
  }

  test('keeps its inputs, outputs and overridable weights', async () => {
    const { bytes } = compileForSim(buildModel(spec), FLOAT16)
    const before = indexModel(bytesSource(buildModel(spec)))
    const after = indexModel(bytesSource(bytes))
    const names = ({ graph }: typeof after): string[][] =>
      [graph.inputs, graph.outputs, graph.initializers].map((list) => list.map(({ name }) => name))
    expect(names(after)).toEqual(names(before))
    const results = await run(bytes, new Map([['x', X]]), { fetches: ['y'] })
    expect(toFloat64(results.get('y')!)[0]).toBe(1.099609375)
  })

  test('leaves external data where it is', async () => {
    const folder = tempFolder()
    writeFileSync(join(folder, 'w.bin'), bytesOfTensor(floats([2], [TENTH, 1])))
    const plain = buildModel({
      inputs,
      outputs,
      initializers: { w: floats([2], [3, 4]) },
      nodes: [op('Mul', ['x', 'w'], ['y'])],
    })
    const bytes = Buffer.from(plain)
    const at = bytes.indexOf(Buffer.from(bytesOfTensor(floats([2], [3, 4]))))
    writeFileSync(join(folder, 'model.onnx'), bytes)
    const policy = { kind: 'reference', location: 'model.onnx', minBytes: 1 } as const
    const referring = compileForSim(bytes, FLOAT16, {}, policy).bytes
    const [info] = indexModel(bytesSource(referring)).graph.initializers
    expect(info!.info.external).toEqual({ location: 'model.onnx', offset: at, length: 8 })
    const again = compileForSim(referring, FLOAT16).bytes
    expect(indexModel(bytesSource(again)).graph.initializers[0]!.info.external?.location).toBe('model.onnx')
    const results = await run(again, new Map([['x', floats([2], [1, 2])]]), { folder })
    expect([...toFloat64(results.get('y')!)]).toEqual([3, 8])
  })
})

const failure = (spec: ModelSpec, chip: SimChip): ModelTestError => {
  try {
    compileForSim(buildModel(spec), chip)
  } catch (error) {
    return error as ModelTestError
  }
  throw new Error('nothing was thrown')
}

describe('what a chip cannot do', () => {
  const conv: ModelSpec = {
    inputs: { x: ['float32', [1, 4, 8, 8]] },
    outputs: { y: ['float32', [1, 16, 6, 6]] },
    initializers: {
      w: floats(
        [16, 4, 3, 3],
        Array.from({ length: 576 }, () => 1),
      ),
    },
    nodes: [op('Conv', ['x', 'w'], ['y'], {}, { name: 'conv1' })],
  }
  test('an op it lacks, by name and node', () => {
    const error = failure(conv, { ...FLOAT16, unsupportedOps: ['Gemm', 'Conv'] })
    expect(error).toMatchObject({ code: 'COMPILE_FAILED', hint: expect.stringContaining('unsupportedOps') })
    expect(error.message).toContain('chip "half" has no Conv, which node "conv1" needs')
  })

  test('an op it lacks, in a body and in a function', () => {
    const body: GraphSpec = { nodes: [op('Tanh', ['x'], ['b'])], outputs: { b: pair } }
    const nodes = [op('If', ['c'], ['y'], { then_branch: { graph: body }, else_branch: { graph: body } })]
    const branching = { inputs: { ...inputs, c: ['bool', []] as const }, outputs, nodes }
    expect(failure(branching, { ...FLOAT16, unsupportedOps: ['Tanh'] }).message).toContain('gives "b"')
    const calling: ModelSpec = {
      opsets: { local: 1 },
      functions: [
        { domain: 'local', name: 'F', inputs: ['a'], outputs: ['b'], nodes: [op('Erf', ['a'], ['b'])] },
      ],
      inputs,
      outputs,
      nodes: [op('F', ['x'], ['y'], {}, { domain: 'local' })],
    }
    expect(failure(calling, { ...FLOAT16, unsupportedOps: ['Erf'] }).code).toBe('COMPILE_FAILED')
    expect(failure(calling, { ...FLOAT16, unsupportedOps: ['local.F'] }).message).toContain('local.F')
  })

  test('more memory than it has, with both numbers', () => {
    const needed = 2 * (576 + 256 + 576)
    const { report } = compileForSim(buildModel(conv), { ...FLOAT16, memoryBytes: needed })
    expect(report).toMatchObject({ peakBytes: needed, weightBytes: 1152, unknownShapes: 0 })
    const error = failure(conv, { ...FLOAT16, memoryBytes: needed - 1 })
    expect(error.code).toBe('COMPILE_FAILED')
    expect(error.message).toContain(`${needed} bytes`)
    expect(error.message).toContain(`has ${needed - 1}`)
  })

  test('an opset without the Cast it takes', () => {
    expect(failure({ ...conv, opset: 5, ir: 3 }, FLOAT16).message).toContain('opset 5')
  })
})

describe('the estimate', () => {
  test('of memory counts what is alive at once', () => {
    const wide = ['float32', [1000]] as const
    const chain = buildModel({
      inputs: { x: wide },
      outputs: { y: wide },
      nodes: [op('Relu', ['x'], ['a']), op('Tanh', ['a'], ['b']), op('Exp', ['b'], ['y'])],
      valueInfos: { a: wide, b: wide },
    })
    expect(compileForSim(chain, INT8).report.peakBytes).toBe(2000)
  })

  test('of time is that of operations or of bytes, whichever is longer', () => {
    const bytes = buildModel({
      inputs: { x: ['float32', [10, 20]] },
      outputs: { y: ['float32', [10, 30]] },
      initializers: {
        w: floats(
          [20, 30],
          Array.from({ length: 600 }, () => 1),
        ),
      },
      nodes: [op('MatMul', ['x', 'w'], ['y'])],
    })
    const { report } = compileForSim(bytes, { ...INT8, opsPerSecond: 1000, bytesPerSecond: 1e9 })
    expect(report).toMatchObject({ operations: 12_000, movedBytes: 1100, estimatedSeconds: 12 })
    expect(compileForSim(bytes, { ...INT8, bytesPerSecond: 100 }).report.estimatedSeconds).toBe(11)
    expect(compileForSim(bytes, INT8).report.estimatedSeconds).toBeUndefined()
  })

  test('takes shapes from the reference run where the model has none', () => {
    const bytes = buildModel({
      inputs: { x: ['float32', ['n']] },
      outputs: { y: undefined },
      nodes: [op('Relu', ['x'], ['y'])],
    })
    expect(compileForSim(bytes, FLOAT16).report).toMatchObject({ peakBytes: 0, unknownShapes: 2 })
    const seen = { min: 0, max: 1, shape: [100] }
    expect(compileForSim(bytes, FLOAT16, { x: seen, y: seen }).report.peakBytes).toBe(400)
  })
})

describe('a random graph', () => {
  test(
    'compiles to the same bytes each time, runs, and on float32 gives the same bits',
    { timeout: 60_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(randomGraph, fc.constantFrom(...DEFAULT_CHIPS), async ({ spec, feeds }, chip) => {
          const bytes = buildModel(spec)
          const compiled = compileForSim(bytes, chip).bytes
          expect(compileForSim(bytes, chip).bytes).toEqual(compiled)
          const results = await run(compiled, feeds)
          if (chip.name === 'float32') expect(differences(await run(bytes, feeds), results)).toEqual([])
        }),
        { numRuns: 120 },
      )
    },
  )

  test('holds numbers of the storage wherever it stores', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        randomGraph,
        fc.constantFrom('float16', 'bfloat16'),
        async ({ spec, feeds }, storage) => {
          const bytes = buildModel(spec)
          const compiled = compileForSim(bytes, { name: 'chip', storage }).bytes
          const values = await runAll(compiled, feeds)
          for (const name of roundedNames(bytes, storage)) {
            const value = values.get(name)
            if (value === undefined || value.dtype === 'string') continue
            const numbers = toFloat64(value)
            expect([name, ...numbers]).toEqual([
              name,
              ...toFloat64(fromFloat64(storage, value.shape, numbers)),
            ])
          }
        },
      ),
      { numRuns: 80 },
    )
  })

  test('of damaged bytes is compiled or refused', () => {
    fc.assert(
      fc.property(
        randomGraph,
        fc.constantFrom(...DEFAULT_CHIPS),
        fc.nat(),
        fc.nat(255),
        ({ spec }, chip, at, byte) => {
          const bytes = Uint8Array.from(buildModel(spec))
          bytes[at % bytes.length] = byte
          try {
            compileForSim(bytes, chip)
          } catch (error) {
            if (!(error instanceof ModelTestError)) throw error
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})
