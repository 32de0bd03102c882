import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyProject, packInto } from '../support/packed.ts'

const MODELS = resolve(import.meta.dirname, '../../testdata/onnx_models')
const project = emptyProject()
const work = join(project.folder, 'work')

beforeAll(() => {
  const tarball = packInto(project.folder)
  execFileSync('npm', ['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund', tarball], {
    cwd: work,
  })
}, 300_000)
afterAll(() => project.remove())

function run(...args: string[]): { code: number | null; out: string; err: string } {
  const bin = join(work, 'node_modules/.bin/vitest-onnx')
  const { status, stdout, stderr } = spawnSync(bin, args, {
    cwd: work,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  })
  return { code: status, out: stdout, err: stderr }
}

test('the package holds what it should and nothing else', () => {
  const folder = join(work, 'node_modules/vitest-onnx')
  expect(readdirSync(folder).toSorted()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist',
    'docs',
    'package.json',
  ])
})

test('npx runs the command', () => {
  const { stdout, status } = spawnSync('npx', ['vitest-onnx', '--version'], { cwd: work, encoding: 'utf8' })
  expect([status, stdout.trim()]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+$/)])
})

describe('inspect', () => {
  test('shows a table', () => {
    const { code, out, err } = run('inspect', join(MODELS, 'dynamic-shapes.onnx'))
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/dynamic dims {2}batch, seq/)
    expect(out).toMatch(/ids {2}int64 {2}\[batch, seq\]/)
    expect(out).not.toContain('\u001b[')
  })

  test('prints JSON', () => {
    const { out } = run('inspect', join(MODELS, 'if-loop.onnx'), '--json')
    expect(JSON.parse(out)).toMatchObject({
      opsets: [{ domain: 'ai.onnx', version: 17 }],
      nodes: { total: 9, topLevel: 3 },
      subgraphs: { count: 3, depth: 1 },
      inputs: [
        { name: 'x', type: 'float32', shape: [4] },
        { name: 'flag', type: 'bool', shape: [] },
      ],
    })
  })
})

describe('split', () => {
  test('writes the layers and a manifest, and tidies up after an earlier split', () => {
    const folder = join(work, 'layers')
    expect(run('split', join(MODELS, 'conv-net.onnx'), '-o', folder, '--group', 'none').code).toBe(0)
    expect(readdirSync(folder)).toContain('conv-net_layer_Clip_1.onnx')
    writeFileSync(join(folder, 'mine.txt'), 'stays')

    const { code, out } = run('split', join(MODELS, 'conv-net.onnx'), '-o', folder, '--json')
    const manifest = JSON.parse(out)
    expect(code).toBe(0)
    expect(JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))).toEqual(manifest)
    expect(readdirSync(folder).toSorted()).toEqual(
      ['manifest.json', 'mine.txt', ...manifest.parts.map(({ file }: { file: string }) => file)].toSorted(),
    )
    expect(manifest.parts[0]).toMatchObject({
      name: 'conv-net_layer_Conv_0',
      scope: '',
      nodeIndex: 0,
      opTypes: ['Conv', 'Clip'],
      sourceNodes: ['stem', 'stem_relu6'],
      inputs: ['image'],
      outputs: ['r1'],
    })
  })

  test('leaves a manifest.json alone that is not its own', () => {
    const folder = join(work, 'other')
    mkdirSync(folder)
    writeFileSync(join(folder, 'manifest.json'), '{"name":"a web app"}')
    const { code, err } = run('split', join(MODELS, 'lstm.onnx'), '-o', folder)
    expect([code, err]).toEqual([2, expect.stringContaining('holds a manifest.json that no split wrote')])
    expect(readdirSync(folder)).toEqual(['manifest.json'])
  })

  test('says where it cannot write', () => {
    const file = join(work, 'a-file')
    writeFileSync(file, '')
    const { code, err } = run('split', join(MODELS, 'lstm.onnx'), '-o', join(file, 'below'))
    expect([code, err]).toEqual([1, expect.stringMatching(/cannot be written[\s\S]*hint: /)])
  })
})

describe('extract', () => {
  test('cuts between values', () => {
    const out = join(work, 'piece.onnx')
    const cut = run(
      'extract',
      join(MODELS, 'attention-block.onnx'),
      '--from',
      'scores,mask',
      '--to',
      'weights',
      '-o',
      out,
      '--json',
    )
    expect(JSON.parse(cut.out)).toEqual({
      file: out,
      nodes: 3,
      inputs: ['scores', 'mask'],
      outputs: ['weights'],
    })
    expect(JSON.parse(run('inspect', out, '--json').out).ops).toEqual({ Add: 1, Mul: 1, Softmax: 1 })
  })

  test('says how to complete a cut', () => {
    const { code, err } = run(
      'extract',
      join(MODELS, 'attention-block.onnx'),
      '--from',
      'scores',
      '--to',
      'weights',
      '-o',
      'x.onnx',
    )
    expect([code, err]).toEqual([2, expect.stringContaining('hint:  Cut there as well: --from scores,mask')])
    expect(existsSync(join(work, 'x.onnx'))).toBe(false)
  })
})

describe('what goes wrong', () => {
  test.each<[string, string[], number, RegExp]>([
    ['no model', ['inspect'], 2, /missing required argument 'model'/],
    ['an unknown option', ['inspect', '--frob', 'x'], 2, /unknown option '--frob'/],
    ['an unknown command', ['inspct', 'x'], 2, /unknown command 'inspct'[\s\S]*Did you mean inspect/],
    [
      'a group of one',
      ['split', 'x.onnx', '-o', 'y', '--group', 'Conv'],
      2,
      /a group is two or more op types/,
    ],
    ['a missing file', ['inspect', 'nowhere.onnx'], 1, /nowhere\.onnx.*there is no such file[\s\S]*hint: /],
    ['a folder', ['inspect', '.'], 1, /this is a folder/],
    [
      'an unknown value',
      ['extract', join(MODELS, 'lstm.onnx'), '--to', 'Tagged', '-o', 'x.onnx'],
      2,
      /Did you mean "tagged"/,
    ],
  ])('%s', (_, args, code, message) => {
    const result = run(...args)
    expect(result.err).toMatch(message)
    expect([result.code, result.out]).toEqual([code, ''])
  })

  test('a truncated model', () => {
    const path = join(work, 'cut.onnx')
    writeFileSync(path, readFileSync(join(MODELS, 'conv-net.onnx')).subarray(0, 3000))
    const { code, err } = run('split', path, '-o', 'nothing')
    expect([code, err]).toEqual([1, expect.stringMatching(/cut\.onnx, byte \d+: [\s\S]*hint: /)])
    expect(existsSync(join(work, 'nothing'))).toBe(false)
  })

  test('control characters of a hostile model do not reach the terminal', () => {
    const path = join(work, 'hostile.onnx')
    const bytes = readFileSync(join(MODELS, 'example-matmul.onnx'))
    bytes.write('\u001b[2J!!', bytes.indexOf('matmul'))
    writeFileSync(path, bytes)
    chmodSync(path, 0o644)
    expect(run('split', path, '-o', 'h', '--json').out).not.toContain('\u001b')
  })
})

test('without onnxruntime the commands go on and say so', () => {
  const moved = join(work, 'node_modules/onnxruntime-node')
  execFileSync('mv', [moved, `${moved}-away`])
  try {
    const { code, out, err } = run('split', join(MODELS, 'lstm.onnx'), '-o', 'bare')
    expect([code, out]).toEqual([0, expect.stringContaining('3 models and manifest.json written')])
    expect(err).toContain('npm install --save-dev --ignore-scripts onnxruntime-node')
  } finally {
    execFileSync('mv', [`${moved}-away`, moved])
  }
})
