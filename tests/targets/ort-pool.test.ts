import { afterAll, describe, expect, test } from 'vitest'
import type { OrtJob, OrtRuntime } from '../../src/targets/ort-jobs.ts'
import { openOrtPool, type OrtPool } from '../../src/targets/ort-pool.ts'
import { onnxFromDtype } from '../../src/tensor/dtype.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { buildModel, floats, op } from '../../testdata/onnx-builder.ts'

const PLUS_ONE = buildModel({
  nodes: [op('Add', ['x', 'one'], ['y'])],
  inputs: { x: ['float32', [1]] },
  outputs: { y: ['float32', [1]] },
  initializers: { one: floats([1], [1]) },
})

/** Fetching a type that it does not know ends the process of onnxruntime-node 1.30. */
const CRASHING = buildModel({
  opset: 21,
  ir: 10,
  nodes: [op('Cast', ['x'], ['y'], { to: onnxFromDtype('int4') })],
  inputs: { x: ['float32', [1]] },
  outputs: { y: ['int4', [1]] },
})

/** Loop as often as x says: for ever, as far as tests go. */
const LOOPING = buildModel({
  nodes: [
    op('Cast', ['x'], ['n'], { to: onnxFromDtype('int64') }),
    op('Loop', ['n', '', 'x'], ['y'], {
      body: {
        graph: {
          nodes: [op('Identity', ['go'], ['goes']), op('Add', ['v', 'v'], ['w'])],
          inputs: { i: ['int64', []], go: ['bool', []], v: ['float32', [1]] },
          outputs: { goes: ['bool', []], w: ['float32', [1]] },
        },
      },
    }),
  ],
  inputs: { x: ['float32', [1]] },
  outputs: { y: ['float32', [1]] },
})

function job(bytes: Uint8Array, x: number, runtime: OrtRuntime = 'node'): OrtJob {
  return {
    kind: 'run',
    model: { bytes },
    settings: { providers: [runtime === 'web' ? 'wasm' : 'cpu'], optimisation: 'disabled' },
    feeds: { x: tensor('float32', [1], Float32Array.of(x)) as Tensor },
    fetches: ['y'],
  }
}

const pools: OrtPool[] = []
afterAll(() => {
  for (const pool of pools) pool.close()
})

function poolOf(size: number, runtime: OrtRuntime = 'node'): OrtPool {
  const pool = openOrtPool({ runtime, size: () => size })
  pools.push(pool)
  return pool
}

/** The outcome of each job, in order: the number it gave, or the first line of its error. */
async function outcomes(answers: readonly ReturnType<OrtPool['ask']>[]): Promise<(number | string)[]> {
  return (await Promise.allSettled(answers)).map((one) => {
    if (one.status === 'rejected') return (one.reason as Error).message.split('\n')[0]!
    return one.value.kind === 'ran' ? Number(one.value.outputs['y']!.data[0]) : one.value.kind
  })
}

const COUNT = 40

describe.each([1, 3])('with %i processes', (size) => {
  test('every job gets its own answer', async () => {
    const pool = poolOf(size)
    const answers = Array.from({ length: COUNT }, (_, x) => pool.ask(job(PLUS_ONE, x)))
    expect(await outcomes(answers)).toEqual(Array.from({ length: COUNT }, (_, x) => x + 1))
  })

  test('a crash is the error of the job that crashed, and the others are run all the same', async () => {
    const pool = poolOf(size)
    const crashing = new Set([0, 7, 8, COUNT - 1])
    const answers = Array.from({ length: COUNT }, (_, x) =>
      pool.ask(job(crashing.has(x) ? CRASHING : PLUS_ONE, x)),
    )
    expect(await outcomes(answers)).toEqual(
      Array.from({ length: COUNT }, (_, x) =>
        crashing.has(x)
          ? expect.stringMatching(/^the process that runs onnxruntime was ended by SIG/)
          : x + 1,
      ),
    )
  })
})

describe.each(['node', 'web'] as const)('a job of onnxruntime for %s that never ends', (runtime) => {
  test('is an error after its time, and those behind it do not lose theirs', async () => {
    const pool = poolOf(1, runtime)
    const answers = [
      pool.ask(job(PLUS_ONE, 1, runtime)),
      pool.ask(job(LOOPING, 2 ** 40, runtime), 1500),
      // Shorter than the time it waits.
      pool.ask(job(PLUS_ONE, 2, runtime), 1000),
      pool.ask(job(LOOPING, 3, runtime)),
    ]
    expect(await outcomes(answers)).toEqual([
      2,
      'the process that runs onnxruntime did not answer within 1.5 s',
      3,
      24,
    ])
  })
})

test('what waits when a pool is closed is told so, and the pool can be used again', async () => {
  const pool = poolOf(1)
  const answers = Array.from({ length: COUNT }, () => pool.ask(job(LOOPING, 2 ** 40)))
  pool.close()
  const told = await outcomes(answers)
  expect(told[0]).toMatch(/was ended by SIGKILL/)
  expect(new Set(told.slice(1))).toEqual(
    new Set(['the processes that run onnxruntime were closed before the model ran']),
  )
  expect(await outcomes([pool.ask(job(PLUS_ONE, 1))])).toEqual([2])
})
