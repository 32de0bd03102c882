/** What a user reads: passes, FAILs, ERRORs, known failures, missing providers, targets of his own. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { onnxFromDtype } from '../../src/tensor/dtype.ts'
import { tensor } from '../../src/tensor/tensor.ts'
import { buildModel, ints, op } from '../../testdata/onnx-builder.ts'
import { ONE_BAD_LAYER, removeProjects, runtimeProject, targetThat } from './support-runtime.ts'

afterAll(removeProjects)

/** Of `example-matmul`; on the int8 chip of `sim` all of them fail. */
const MATMUL = 'example-matmul_layer_MatMul_0-sim-int8'
const ADD = 'example-matmul_layer_Add_1-sim-int8'
const FULL = 'example-matmul_full_model-sim-int8'

/** No platform of onnxruntime-node has both. */
const FOREIGN_PROVIDER = process.platform === 'win32' ? 'coreml' : 'dml'

const ENDLESS = buildModel({
  opset: 18,
  inputs: { x: ['float32', [4]] },
  outputs: { y: ['float32', [4]] },
  initializers: { many: ints([], [1e15]), yes: tensor('bool', [], Uint8Array.of(1)) },
  nodes: [
    op('Loop', ['many', 'yes', 'x'], ['y'], {
      body: {
        graph: {
          inputs: { i: ['int64', []], go: ['bool', []], v: ['float32', [4]] },
          outputs: { still: ['bool', []], w: ['float32', [4]] },
          nodes: [op('Identity', ['go'], ['still']), op('Relu', ['v'], ['w'])],
        },
      },
    }),
  ],
})

describe.concurrent('verdicts', () => {
  test('models that match pass, and the run ends with where its time went', async () => {
    const p = runtimeProject(['example-matmul', 'conv-net'])
    const { code, stdout, stderr } = await p.run()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('Tests  13 passed (13)')
    expect(stdout).toMatch(
      /Where the time of the model tests went\n +step +total +count +average\n +reference +\d+ ms +13 +[\d.]+ ms\n +results +\d+ ms +13 /,
    )
  })

  test('a FAIL shows figures, threshold, worst elements, layer and files, and can be compared again', async () => {
    const p = runtimeProject(['example-matmul'], `{ chips: ['int8'] }`)
    const { code, stderr, tests, junit } = await p.run()
    expect(code).toBe(1)
    expect(stderr).toContain(
      `FAIL: ${MATMUL}: the outputs on sim (chip int8) differ from the reference\n` +
        'xw: mismatch of float32[4, 16]\n' +
        '  - 13 of 64 elements (20.31%) exceed fp_max_tol 0.01\n' +
        'threshold fp_max_tol 0.01 from the default\n' +
        'wrong: 13 of 64 elements (20.31%); smallest fp_max_tol that would pass: ',
    )
    expect(stderr).toMatch(/metric +value +bound\n +max abs error +[\d.]+\n/)
    expect(stderr).toMatch(
      /worst elements\n +index +expected +actual +abs +rel\n +\[\d+, \d+\] +-?[\d.]+ +-?[\d.]+/,
    )
    expect(stderr).toContain(
      'layer: MatMul "matmul" of onnx_models/example-matmul.onnx (node 0)\ninputs: x; outputs: xw\n' +
        `expected and actual: .vitest-onnx/failures/onnx_models/example-matmul.onnx/${MATMUL}/{expected,actual}.safetensors\n` +
        `compare again: npx vitest-onnx diff ${MATMUL}\n`,
    )
    expect(stderr).toContain(
      'first value that is off: "xw" of MatMul "matmul", layer example-matmul_layer_MatMul_0\n',
    )
    for (const name of [MATMUL, ADD, FULL]) expect(tests[name]?.message).toMatch(/^FAIL: example-matmul_/)
    expect(junit.match(/type="FAIL"/g)).toHaveLength(3)
    expect(p.files(`.vitest-onnx/failures/onnx_models/example-matmul.onnx/${MATMUL}`)).toEqual([
      'actual.safetensors',
      'case.json',
      'expected.safetensors',
    ])
    const diff = await p.cli('diff', MATMUL)
    expect(diff.exitCode).toBe(0)
    expect(diff.stdout).toContain('  - 13 of 64 elements (20.31%) exceed fp_max_tol 0.01\n')
    expect(diff.stdout).toMatch(/absolute errors\n +equal +\d+[\s\S]*1e-2 to 1e-1 +\d+ +#+/)
  })

  test('a model that cannot be read is one ERROR, and other models are tested', async () => {
    const p = runtimeProject(['example-matmul', ['broken', Uint8Array.of(1, 2, 3, 4)]])
    const { code, stderr, statuses, tests, junit } = await p.run()
    expect(code).toBe(1)
    expect(statuses).toEqual({
      broken_model: 'failed',
      'example-matmul_layer_MatMul_0-sim-default': 'passed',
      'example-matmul_layer_Add_1-sim-default': 'passed',
      'example-matmul_full_model-sim-default': 'passed',
    })
    expect(stderr).toMatch(/\nERROR: .*broken\.onnx, byte 0: .*\nhint: The file is cut short or damaged/)
    expect(tests['broken_model']?.message).toMatch(/^ERROR: /)
    expect(junit).toContain('type="ERROR"')
    expect(junit).not.toContain('undefined')
  })

  test('one that the reference cannot run is one ERROR too, and its layers say where', async () => {
    const bytes = buildModel({
      nodes: [op('Relu', ['x'], ['r']), op('NoSuchOp', ['r'], ['y'])],
      inputs: { x: ['float32', [4]] },
      outputs: { y: ['float32', [4]] },
    })
    const { stderr, stdout, statuses } = await runtimeProject([['odd', bytes]]).run()
    expect(Object.values(statuses)).toEqual(['skipped', 'skipped', 'failed'])
    expect(stderr).toMatch(/\nERROR: reference: onnxruntime cannot load the model: .*NoSuchOp/)
    expect(stdout).toContain('[the reference cannot run the model: see odd_full_model-sim-default]')
  })

  test('an op that a chip lacks is an ERROR of compiling, where the op is', async () => {
    const p = runtimeProject(['example-matmul'], `{ chips: ['small'] }`)
    p.write(
      'testdata/chips/small.json',
      '{ "name": "small", "storage": "float32", "unsupportedOps": ["Add"] }',
    )
    const { statuses, tests } = await p.run()
    expect(statuses).toEqual({
      'example-matmul_layer_MatMul_0-sim-small': 'passed',
      'example-matmul_layer_Add_1-sim-small': 'failed',
      'example-matmul_full_model-sim-small': 'failed',
    })
    expect(tests['example-matmul_layer_Add_1-sim-small']?.message).toMatch(/^ERROR: compiled: .*Add/)
  })

  test('-t picks tests by name', async () => {
    const p = runtimeProject(['example-matmul', 'lstm'])
    const { stdout } = await p.run(['-t', 'example-matmul'])
    expect(stdout).toMatch(/Tests {2}3 passed \| \d+ skipped/)
  })
})

describe.concurrent('thresholds', () => {
  test('a rule is quoted in the failure, and the environment goes before it', async () => {
    const p = runtimeProject(['example-matmul'], `{ chips: ['int8'] }`)
    p.write(
      'testdata/thresholds.json',
      JSON.stringify({
        rules: [
          { tolerance: 0.5 },
          { op: 'MatMul', target: 'sim', tolerance: 0.002, reason: 'eight bits are enough' },
        ],
      }),
    )
    const ruled = await p.run()
    expect(ruled.statuses).toEqual({ [MATMUL]: 'failed', [ADD]: 'passed', [FULL]: 'passed' })
    expect(ruled.stderr).toContain(
      'threshold fp_max_tol 0.002 from testdata/thresholds.json: op MatMul on sim (eight bits are enough)\n',
    )
    const loose = await p.run([], { ONNX_TEST_TOLERANCE: '1' })
    expect(loose.code).toBe(0)
    const tight = await p.run([], { ONNX_TEST_TOLERANCE: '0.00001' })
    expect(Object.values(tight.statuses)).toEqual(['failed', 'failed', 'failed'])
    expect(tight.stderr).toContain('threshold fp_max_tol 0.00001 from ONNX_TEST_TOLERANCE\n')
  })

  test('a bad value names its variable', async () => {
    const p = runtimeProject(['example-matmul'])
    const { code, stderr } = await p.run([], { ONNX_TEST_TOLERANCE: 'tight-ish' })
    expect(code).toBe(1)
    expect(stderr).toContain('ONNX_TEST_TOLERANCE: "tight-ish" is no name of a tolerance')
  })
})

describe.concurrent('known failures', () => {
  test('are skipped with their issue, tried when asked for, and kept up to date from a report', async () => {
    const p = runtimeProject(['example-matmul'], `{ chips: ['int8'] }`)
    p.write('testdata/xfails.txt', `# int8 is coarse\n${MATMUL}  owner/repo#1\n${ADD}  owner/repo#2\n`)
    const skipped = await p.run()
    expect(skipped.statuses).toEqual({ [MATMUL]: 'skipped', [ADD]: 'skipped', [FULL]: 'failed' })
    expect(skipped.stdout).toMatch(new RegExp(`↓ ${MATMUL} .*\\[xfail: owner/repo#1\\]`))

    // At this tolerance the Add passes and the MatMul does not.
    const env = { ONNX_TEST_TRY_XFAILS: '1', ONNX_TEST_TOLERANCE: '0.402' }
    const tried = await p.run([], env)
    expect(tried.statuses).toEqual({ [MATMUL]: 'skipped', [ADD]: 'passed', [FULL]: 'passed' })
    expect(tried.stdout).toContain(
      ` Known failures that pass\n  ${ADD}: unexpected pass: remove it from testdata/xfails.txt:3\n`,
    )
    expect(tried.junit).toContain('name="xpass"')
    expect(tried.code).toBe(0)

    expect((await p.cli('xfails', 'update', 'report.json')).exitCode).toBe(0)
    expect(p.read('testdata/xfails.txt')).toBe(`# int8 is coarse\n${MATMUL}  owner/repo#1\n`)

    await p.run([], { ONNX_TEST_TRY_XFAILS: '1' })
    expect((await p.cli('xfails', 'update', 'report.json')).exitCode).toBe(0)
    expect(p.read('testdata/xfails.txt')).toBe(`# int8 is coarse\n${MATMUL}  owner/repo#1\n${ADD}\n${FULL}\n`)
    expect((await p.run()).code).toBe(0)
  })

  test('an ERROR is no known failure', async () => {
    const p = runtimeProject(['example-matmul'], `{ targets: ['./mine.js'] }`)
    p.write('mine.js', targetThat(`{ throw new Error('no such device') }`))
    p.write('testdata/xfails.txt', 'example-matmul_*  owner/repo#1\n')
    const { statuses } = await p.run([], { ONNX_TEST_TRY_XFAILS: '1' })
    expect(Object.values(statuses)).toEqual(['failed', 'failed', 'failed'])
  })
})

describe.concurrent('targets', () => {
  test.for([FOREIGN_PROVIDER, 'cuda'])(
    'a provider that is not there, %s, skips its tests, or fails them when it was asked for',
    async (provider, { skip }) => {
      if (provider === 'cuda' && existsSync('/dev/nvidiactl')) skip('this machine has CUDA')
      const p = runtimeProject(['example-matmul'], `{ targets: ['cpu', '${provider}'] }`)
      const skipped = await p.run()
      expect(skipped.code).toBe(0)
      expect(skipped.statuses).toEqual({
        'example-matmul_layer_MatMul_0-cpu-default': 'passed',
        'example-matmul_layer_Add_1-cpu-default': 'passed',
        'example-matmul_full_model-cpu-default': 'passed',
        [`example-matmul_layer_MatMul_0-${provider}-default`]: 'skipped',
        [`example-matmul_layer_Add_1-${provider}-default`]: 'skipped',
        [`example-matmul_full_model-${provider}-default`]: 'skipped',
      })
      expect(skipped.stdout).toMatch(
        new RegExp(` Model tests skipped\n +3 +onnxruntime-node .*"${provider}" on this machine`),
      )
      const asked = await p.run([], { ONNX_TEST_TARGETS: provider })
      expect(Object.values(asked.statuses)).toEqual(['failed', 'failed', 'failed'])
      expect(asked.stderr).toContain(`ERROR: the target ${provider} is not available: onnxruntime-node`)
    },
  )

  test('an error in one layer fails that layer and the model, which names the layer', async () => {
    const p = runtimeProject(['attention-block', 'conv-net', 'example-matmul'], `{ targets: ['./mine.js'] }`)
    p.write('mine.js', ONE_BAD_LAYER)
    const { statuses, tests } = await p.run()
    expect(Object.keys(statuses).length).toBeGreaterThan(30)
    expect(Object.keys(statuses).filter((name) => statuses[name] !== 'passed')).toEqual([
      'attention-block_layer_Softmax_13-mine-default',
      'attention-block_full_model-mine-default',
    ])
    expect(tests['attention-block_full_model-mine-default']?.message).toContain(
      'first value that is off: "weights" of Softmax "attention", layer attention-block_layer_Softmax_13\n',
    )
  })

  test('what a target throws is an ERROR with the place in its own code', async () => {
    const p = runtimeProject(['example-matmul'], `{ targets: ['./mine.js'] }`)
    p.write('mine.js', targetThat(`{ throw new Error('no such device') }`))
    const { stderr, tests } = await p.run()
    expect(stderr).toContain('ERROR: results: Error: no such device\n ❯ Object.run mine.js:')
    expect(stderr).not.toContain('case-fixtures')
    for (const { message } of Object.values(tests)) expect(message).toMatch(/^ERROR: results: /)
  })

  test('a target that hangs is an ERROR after its time', async () => {
    const p = runtimeProject(['example-matmul'], `{ targets: ['./mine.js'], fullModel: false }`)
    p.write('mine.js', targetThat('wait(60_000)'))
    // The reference is then in the cache, so that nothing else takes time.
    await p.run([], { ONNX_TEST_TARGETS: 'cpu' })
    const { statuses, stderr } = await p.run([], { ONNX_TEST_RUN_TIMEOUT: '0.5' })
    expect(Object.values(statuses)).toEqual(['failed', 'failed'])
    expect(stderr).toContain('ERROR: results: running on mine took more than 0.5 s\nhint: Allow more with')
  })
})

describe.concurrent('onnxruntime itself', () => {
  const OTHERS = {
    'example-matmul_layer_MatMul_0-cpu-default': 'passed',
    'example-matmul_layer_Add_1-cpu-default': 'passed',
    'example-matmul_full_model-cpu-default': 'passed',
  }

  test('hangs: the ERROR of that model, and the rest runs', async () => {
    const p = runtimeProject([['endless', ENDLESS], 'example-matmul'], `{ targets: ['cpu'] }`)
    const { statuses, stderr } = await p.run([], { ONNX_TEST_RUN_TIMEOUT: '2' })
    expect(statuses).toMatchObject({ ...OTHERS, 'endless_full_model-cpu-default': 'failed' })
    expect(stderr).toContain(
      'ERROR: reference: the process that runs onnxruntime did not answer within 2 s\n',
    )
  })

  test.skipIf(process.platform !== 'linux')(
    'crashes: the ERROR of that model, and the rest runs',
    async () => {
      const p = runtimeProject([['endless', ENDLESS], 'example-matmul'], `{ targets: ['cpu'] }`)
      // In one worker, so that what comes after the crash needs a new process.
      const running = p.run(['--maxWorkers=1'])
      process.kill(await busyOnnxruntime(p.folder), 'SIGSEGV')
      const { statuses, stderr } = await running
      expect(statuses).toMatchObject({ ...OTHERS, 'endless_full_model-cpu-default': 'failed' })
      expect(stderr).toContain('ERROR: reference: the process that runs onnxruntime was ended by SIGSEGV')
    },
  )
})

/** Fetching a type that it does not know ends the process of onnxruntime-node 1.30 with SIGABRT. */
test('a type that onnxruntime-node cannot give is the ERROR of what gives it alone', async () => {
  const int4 = buildModel({
    opset: 21,
    ir: 10,
    nodes: [op('Relu', ['x'], ['r']), op('Cast', ['r'], ['y'], { to: onnxFromDtype('int4') })],
    inputs: { x: ['float32', [4]] },
    outputs: { y: ['int4', [4]] },
  })
  const { statuses, stderr } = await runtimeProject([['int4', int4]], `{ targets: ['cpu'] }`).run()
  expect(statuses).toEqual({
    'int4_layer_Relu_0-cpu-default': 'passed',
    'int4_layer_Cast_1-cpu-default': 'failed',
    'int4_full_model-cpu-default': 'failed',
  })
  expect(stderr).toMatch(
    /\nERROR: model: .*int4\.onnx: the layer gives nothing that onnxruntime-node can fetch: "y" \(int4\[4\]\)/,
  )
  expect(stderr).not.toContain('SIGABRT')
})

/** The process of onnxruntime below a project, once it has worked for a while. */
async function busyOnnxruntime(folder: string): Promise<number> {
  const deadline = Date.now() + 30_000
  while (Date.now() < deadline) {
    const found = readdirSync('/proc').find((id) => /^\d+$/.test(id) && isBusyOnnxruntime(id, folder))
    if (found !== undefined) return Number(found)
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error('onnxruntime was not started')
}

/** A second on the processor, in hundredths: more than starting takes. */
const BUSY_TICKS = 100

function isBusyOnnxruntime(id: string, folder: string): boolean {
  try {
    const isOurs =
      readFileSync(join('/proc', id, 'cmdline'), 'utf8').includes('ort-child') &&
      readlinkSync(join('/proc', id, 'cwd')).startsWith(folder)
    const [, , , , , , , , , , , user] = readFileSync(join('/proc', id, 'stat'), 'utf8')
      .split(') ')[1]!
      .split(' ')
    return isOurs && Number(user) > BUSY_TICKS
  } catch {
    return false
  }
}
