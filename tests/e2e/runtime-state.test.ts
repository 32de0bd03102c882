/** What runs leave behind and find again: expectations, the cache, reports of shards; and what they must not leave. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { buildModel } from '../../testdata/onnx-builder.ts'
import {
  ONE_BAD_LAYER,
  removeProjects,
  type RuntimeProject,
  runtimeProject,
  statusesOf,
  targetThat,
  testsIn,
} from './support-runtime.ts'

afterAll(removeProjects)

const SNAPSHOT = 'testdata/onnx_models/__snapshots__/example-matmul.onnx.snap'
const FULL = 'example-matmul_full_model-sim-default'
const CACHE = 'node_modules/.cache/vitest-onnx'

describe.concurrent('expectations', () => {
  test('are missing in CI, written on the first run elsewhere, and then hold in CI', async () => {
    const p = runtimeProject(['example-matmul'])
    const missing = await p.run([], { CI: 'true' })
    expect([missing.code, missing.statuses[FULL], p.has(SNAPSHOT)]).toEqual([1, 'failed', false])
    expect(missing.stderr).toContain(`FAIL: ${FULL}: there is no expectation, and none is written in CI\n`)

    const first = await p.run()
    expect(first.code).toBe(0)
    expect(first.stdout).toContain('Snapshots  1 written')
    expect(p.read(SNAPSHOT)).toMatch(
      new RegExp(
        `exports\\[\`${FULL} 1\`\\] = \`"y" float32\\[4, 16\\] signature\\[4, 16\\] mean=\\S+ rms=\\S+ max=\\S+ at=\\S+\`;`,
      ),
    )
    expect((await p.run([], { CI: 'true' })).code).toBe(0)
  })

  test('that differ fail with what is off; --update repairs them', async () => {
    const p = runtimeProject(['example-matmul'])
    await p.run()
    const right = p.read(SNAPSHOT)
    const wrong = withMean(right, (mean) => mean + 1)
    p.write(SNAPSHOT, wrong)
    const { code, stderr, tests, junit } = await p.run()
    expect([code, p.read(SNAPSHOT)]).toEqual([1, wrong])
    expect(stderr).toMatch(
      new RegExp(
        `\nFAIL: ${FULL}: the outputs match the reference, but not the expectation\n {2}- y: the mean is [\\d.]+, expected is [\\d.]+\nhint: .*--update`,
      ),
    )
    expect(tests[FULL]?.message).toMatch(/^FAIL: /)
    expect(junit).toContain('type="FAIL"')

    const updated = await p.run(['--update'])
    expect([updated.code, p.read(SNAPSHOT)]).toEqual([0, right])
    expect(updated.stdout).toContain('Snapshots  1 updated')
  })

  test('that cannot be read are an ERROR; --update repairs them too', async () => {
    const p = runtimeProject(['example-matmul'])
    await p.run()
    const right = p.read(SNAPSHOT)
    p.write(SNAPSHOT, right.replace('signature[', 'sig['))
    const { stderr } = await p.run()
    expect(stderr).toMatch(/\nERROR: .* is no output signature\nhint: Capture the expectation again/)
    const updated = await p.run(['--update'])
    expect([updated.code, p.read(SNAPSHOT)]).toEqual([0, right])
  })

  test('within tolerance are left alone by --update', async () => {
    const p = runtimeProject(['example-matmul'])
    await p.run()
    const near = withMean(p.read(SNAPSHOT), (mean) => mean * (1 + 1e-7))
    p.write(SNAPSHOT, near)
    expect((await p.run(['--update'])).code).toBe(0)
    expect(p.read(SNAPSHOT)).toBe(near)
  })

  test('of tests that fail survive an update', async () => {
    const p = runtimeProject(['example-matmul'])
    await p.run([], { ONNX_TEST_CHIPS: 'default,int8', ONNX_TEST_TOLERANCE: '1' })
    const both = p.read(SNAPSHOT)
    const { statuses } = await p.run(['--update'], { ONNX_TEST_CHIPS: 'int8' })
    expect(statuses['example-matmul_full_model-sim-int8']).toBe('failed')
    expect(p.read(SNAPSHOT)).toBe(both)
  })

  test('of other targets, chips and sizes survive an update, and CI does without them', async () => {
    const p = runtimeProject([['sized', SIZED]])
    p.write('mine.js', ONE_BAD_LAYER)
    p.write('testdata/chips/own.json', '{ "storage": "float32" }')
    const names: string[] = []
    for (const [name, env] of [
      ['sized_full_model-sim-default', {}],
      ['sized_full_model-sim-float16', { ONNX_TEST_CHIPS: 'float16' }],
      ['sized_full_model-sim-own', { ONNX_TEST_CHIPS: 'own' }],
      ['sized_full_model-cpu-default', { ONNX_TEST_TARGETS: 'cpu' }],
      ['sized_full_model-mine-default', { ONNX_TEST_TARGETS: './mine.js' }],
      ['sized_full_model@batch=4-sim-default', { ONNX_TEST_SHAPES: 'batch=4' }],
    ] as const) {
      names.push(name)
      expect((await p.run(['--update'], env)).code, name).toBe(0)
      expect(expectedIn(p.read(SIZED_SNAPSHOT)), name).toEqual(names.toSorted())
    }
    const all = p.read(SIZED_SNAPSHOT)
    await p.run(['--update'], { ONNX_TEST_FULL_MODEL: '0' })
    await p.run(['--update'])
    expect(p.read(SIZED_SNAPSHOT)).toBe(all)
    const { code, stderr } = await p.run([], { CI: '1' })
    expect([code, stderr]).toEqual([0, ''])
  })

  test('of tests that are filtered out survive an update', async () => {
    const p = runtimeProject(['example-matmul'], `{ targets: ['sim', 'cpu'] }`)
    await p.run()
    await p.run([], { ONNX_TEST_CHIPS: 'float16', ONNX_TEST_TARGETS: 'sim' })
    const before = p.read(SNAPSHOT)
    expect(expectedIn(before)).toHaveLength(3)
    for (const args of [
      ['-t', 'example-matmul_full_model-cpu'],
      ['-t', 'layer_Add'],
      ['--tags-filter=target/sim && full'],
    ]) {
      const { statuses } = await p.run(['--update', ...args])
      expect(Object.values(statuses), args.join(' ')).toContain('passed')
      expect(p.read(SNAPSHOT), args.join(' ')).toBe(before)
    }
  })

  test('that no run can come to are removed by an update', async () => {
    const p = runtimeProject([['sized', SIZED]])
    p.write('testdata/chips/old.json', '{ "storage": "float32" }')
    await p.run([], { ONNX_TEST_CHIPS: 'default,old' })
    p.remove('testdata/chips/old.json')
    p.write(
      SIZED_SNAPSHOT,
      `${p.read(SIZED_SNAPSHOT)}\nexports[\`size_full_model-sim-default 1\`] = \`\`;\n` +
        '\nexports[`sized_full_model@n=4-cpu-default 1`] = ``;\n',
    )
    const run = await p.run(['--update'])
    expect(run.code).toBe(0)
    expect(run.stdout).toMatch(/Snapshots +3 removed/)
    expect(expectedIn(p.read(SIZED_SNAPSHOT))).toEqual(['sized_full_model-sim-default'])
  })
})

const SIZED_SNAPSHOT = 'testdata/onnx_models/__snapshots__/sized.onnx.snap'
const SIZED = buildModel({
  nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }],
  inputs: { x: ['float32', ['batch', 3]] },
  outputs: { y: ['float32', ['batch', 3]] },
})

/** The tests that a file has expectations of. */
function expectedIn(snapshots: string): string[] {
  return [...snapshots.matchAll(/^exports\[`(.*) 1`\]/gm)].map(([, name]) => name!).toSorted()
}

function withMean(text: string, change: (mean: number) => number): string {
  return text.replace(/mean=(\S+)/, (_, mean: string) => `mean=${change(Number(mean)).toPrecision(9)}`)
}

describe.concurrent('the cache', () => {
  /** Counts its runs, and gives nothing that matches. */
  const COUNTING = targetThat(
    `{ (await import('node:fs')).appendFileSync('runs.txt', '.'); return new Map() }`,
  )

  test('serves the second run; ONNX_TEST_RECOMPUTE=1 makes all anew', async () => {
    const p = runtimeProject(['example-matmul'], `{ targets: ['./mine.js'], fullModel: false }`)
    p.write('mine.js', COUNTING)
    await p.run()
    expect(p.read('runs.txt')).toBe('..')
    await p.run()
    expect(p.read('runs.txt')).toBe('..')
    await p.run([], { ONNX_TEST_RECOMPUTE: '1' })
    expect(p.read('runs.txt')).toBe('....')
    p.write('mine.js', COUNTING.replace(`'1'`, `'2'`))
    await p.run()
    expect(p.read('runs.txt')).toBe('......')
  })

  test('remakes what is damaged', async () => {
    const p = runtimeProject(['example-matmul'])
    await p.run()
    const entries = cacheEntries(p)
    // The reference, and the results that differ from it.
    expect(entries.length).toBeGreaterThan(1)
    for (const entry of entries) truncateSync(join(p.folder, CACHE, entry), 20)
    const { code, stderr } = await p.run()
    expect([code, stderr]).toEqual([0, ''])
    for (const entry of entries) expect(statSync(join(p.folder, CACHE, entry)).size).toBeGreaterThan(20)
  })

  test.skipIf(process.platform === 'win32')('is good after a run was killed in the middle', async () => {
    const p = runtimeProject(['conv-net', 'example-matmul'], `{ targets: ['./mine.js'] }`)
    p.write('mine.js', slowly(ONE_BAD_LAYER))
    const killed = p.vitest(['run'])
    await until(() => results(p).length >= 2)
    process.kill(-killed.pid!, 'SIGKILL')
    expect((await killed).signal).toBe('SIGKILL')
    const kept = results(p)
    expect(kept.length).toBeLessThan(13)

    const { code, stderr, stdout } = await p.run()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('Tests  13 passed (13)')
    expect(results(p)).toEqual(expect.arrayContaining(kept))
    expect(results(p)).toHaveLength(13)
    expect((await p.cli('cache', 'verify')).exitCode).toBe(0)
  })
})

function slowly(target: string): string {
  return target.replace('async run(inputs) {', '$& await new Promise((done) => setTimeout(done, 150))\n')
}

function cacheEntries(p: RuntimeProject): string[] {
  return p.files(CACHE).filter((file) => /^(activations|results)\/..\/[0-9a-f]{64}$/.test(file))
}

function results(p: RuntimeProject): string[] {
  return cacheEntries(p).filter((file) => file.startsWith('results/'))
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('waited in vain')
    await new Promise((done) => setTimeout(done, 20))
  }
}

describe.concurrent('shards', () => {
  test('share the tests, and their blob reports join, times and failures too', async () => {
    const p = runtimeProject(['conv-net', 'example-matmul', 'lstm'], `{ chips: ['int8'], tolerance: 1 }`)
    p.write('testdata/thresholds.json', '{ "rules": [{ "op": "Gemm", "tolerance": 0.000001 }] }')
    for (const shard of [1, 2]) {
      await p.vitest(['run', `--shard=${shard}/2`, '--reporter=blob', `--outputFile=blobs/${shard}.json`])
    }
    const merged = await p.vitest([
      '--merge-reports=blobs',
      '--reporter=default',
      '--reporter=json',
      '--outputFile.json=all.json',
    ])
    const statuses = statusesOf(testsIn(p.read('all.json')))
    expect(Object.keys(statuses).filter((name) => statuses[name] !== 'passed')).toEqual([
      'conv-net_layer_Gemm_7-sim-int8',
    ])
    expect(merged.exitCode).toBe(1)
    expect(merged.stdout).toContain('Where the time of the model tests went')
    expect(merged.stdout).toContain(`${Object.keys(statuses).length - 1} passed`)
    expect(merged.stderr).toContain('threshold fp_max_tol 0.000001 from testdata/thresholds.json: op Gemm')
    expect((await p.run()).statuses).toEqual(statuses)
  })
})

const hasStrace = spawnSync('strace', ['-V']).status === 0

describe.concurrent('telemetry', () => {
  test('no file of it appears, not even of a target that loads onnxruntime itself', async () => {
    const p = runtimeProject(['example-matmul'], `{ targets: ['sim', 'cpu', './mine.js'] }`)
    p.write('mine.js', ONE_BAD_LAYER)
    expect((await p.run()).code).toBe(0)
    expect(p.files('.').filter((file) => /mat-debug/.test(file))).toEqual([])
    // Vitest 5 keeps a token of its own there.
    expect(p.files('home').filter((file) => !file.startsWith('.local/share/vitest/'))).toEqual([])
  })

  test.for([
    ['no connection is tried', '', []],
    [
      'one that is tried would be seen',
      `import net from 'node:net'; net.connect(9, '127.0.0.1').on('error', () => {});`,
      [expect.stringContaining('127.0.0.1')],
    ],
  ] as const)('%s', async ([, first, connections], { skip }) => {
    if (!hasStrace) skip('strace is not installed')
    const p = runtimeProject(['example-matmul'], `{ targets: ['sim', 'cpu', './mine.js'] }`)
    p.write('mine.js', `${first}${ONE_BAD_LAYER}`)
    const log = join(p.folder, 'connects.txt')
    const strace = ['strace', '-f', '-qq', '-s', '500', '-e', 'trace=connect,execve', '-o', log]
    const run = await p.vitestUnder(strace, ['run'])
    if (!existsSync(log)) skip(`strace cannot trace here: ${run.stderr}`)
    expect(run.exitCode).toBe(0)
    const lines = readFileSync(log, 'utf8').split('\n')
    expect(lines.some((line) => line.includes('execve') && line.includes('ort-child'))).toBe(true)
    expect(lines.filter((line) => line.includes('connect(') && !line.includes('AF_UNIX'))).toEqual(
      connections,
    )
  })
})
