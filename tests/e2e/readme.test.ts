/** What README.md and docs/find-the-bad-layer.md show is done here, line by line, in a project with the models that it speaks of. */
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { npyBytes } from '../../src/tensor/npy.ts'
import { buildModel, floats, op } from '../../testdata/onnx-builder.ts'
import { removeProjects, type RuntimeProject, runtimeProject } from './support-runtime.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

interface Block {
  readonly language: string
  readonly text: string
}

function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, inside]) => ({
    language: language!,
    text: inside!,
  }))
}

const BLOCKS: readonly Block[] = blocksOf(README)
const TREE = readFileSync(join(ROOT, 'docs/find-the-bad-layer.md'), 'utf8')

function blockWith(language: string, words: string): string {
  const found = BLOCKS.filter((block) => block.language === language && block.text.includes(words))
  expect(found, `one ${language} block of README.md with "${words}"`).toHaveLength(1)
  return found[0]!.text
}

/** Commands of all shell blocks, without their remarks. */
const COMMANDS = [...BLOCKS, ...blocksOf(TREE)]
  .filter(({ language }) => language === 'sh')
  .flatMap(({ text }) => text.split('\n'))
  .map((line) => line.replace(/\s+#.*$/, '').trim())
  .filter((line) => line !== '')

/** CI does the first, and the tests of the packed package the second. */
const DONE_ELSEWHERE = /^npm (ci|install)\b/

/** a + b -> c -> y, with dimensions to set and an input to read from a file. */
const MODEL = buildModel({
  nodes: [op('Add', ['a', 'b'], ['s']), op('Relu', ['s'], ['c']), op('Softmax', ['c'], ['y'])],
  inputs: { a: ['float32', [2, 3]], b: ['float32', [2, 3]] },
  outputs: { y: ['float32', [2, 3]] },
})

const EXAMPLE = buildModel({
  nodes: [
    op('Gather', ['table', 'ids'], ['rows']),
    op('Softmax', ['rows'], ['p']),
    op('Relu', ['image'], ['r']),
  ],
  inputs: { ids: ['int64', ['batch', 'seq']], image: ['float32', [2, 2]] },
  outputs: { p: ['float32', ['batch', 'seq', 2]], r: ['float32', [2, 2]] },
  initializers: {
    table: floats(
      [1001, 2],
      Array.from({ length: 2002 }, (_, at) => Math.sin(at)),
    ),
  },
})

/** Eight in all at least: of so many shards none may be empty. */
const MODELS = readdirSync(join(ROOT, 'testdata/onnx_models'))
  .filter((name) => name.endsWith('.onnx'))
  .map((name) => basename(name, '.onnx'))

let project: RuntimeProject

beforeAll(() => {
  project = runtimeProject([...MODELS, ['example', EXAMPLE]])
  project.write('vitest.config.ts', blockWith('ts', '// vitest.config.ts'))
  project.write('tests/own.test.ts', `import { test } from 'vitest'\ntest('own', () => {})\n`)
  project.write('testdata/a/model.onnx', MODEL)
  project.write('model.onnx', MODEL)
  project.write('testdata/onnx_models/example.test.yaml', blockWith('yaml', '# example.test.yaml'))
  project.write('testdata/onnx_models/cat.npy', npyBytes(floats([2, 2], [1, -2, 3, -4])))
  cpSync(join(ROOT, 'examples'), join(project.folder, 'examples'), { recursive: true })
  symlinkSync(
    join(ROOT, 'node_modules/onnxruntime-web'),
    join(project.folder, '../node_modules/onnxruntime-web'),
  )
  putIntoPath('vitest', 'vitest/vitest.mjs')
  putIntoPath('vitest-onnx', 'vitest-onnx/dist/cli/main.js')
})

afterAll(removeProjects)

/** As npm does when it installs a package. */
function putIntoPath(name: string, script: string): void {
  const bin = join(project.folder, 'node_modules/.bin')
  const path = join(project.folder, '../node_modules', script)
  mkdirSync(bin, { recursive: true })
  chmodSync(path, 0o755)
  symlinkSync(path, join(bin, name))
}

async function shell(command: string): Promise<{ readonly code: number | undefined; readonly text: string }> {
  const { exitCode, all } = await execa('sh', ['-c', command], {
    cwd: project.folder,
    env: { ...SETTINGS, HOME: join(project.folder, 'home'), TMPDIR: join(project.folder, 'tmp') },
    reject: false,
    all: true,
    stdin: 'ignore',
  })
  return { code: exitCode, text: all }
}

/** Of who runs these tests none; and npx is not to look for newer versions of itself. */
const SETTINGS: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.keys(process.env)
      .filter((name) => /^(VITEST|NODE_ENV|TEST$|ONNX_TEST_|CI$|GITHUB_|NODE_OPTIONS)/.test(name))
      .map((name) => [name, undefined]),
  ),
  NO_COLOR: '1',
  npm_config_update_notifier: 'false',
}

test('the picture is what the command prints', async () => {
  const [first, ...picture] = blockWith('', '$ ONNX_TEST_CHIPS').trimEnd().split('\n')
  const { code, text } = await shell(first!.replace(/^\$ /, ''))
  expect(code).toBe(1)
  const shown = new Set(text.split('\n').map(withoutTimes))
  expect(picture.filter((line) => !LEFT_OUT.test(line) && !shown.has(withoutTimes(line)))).toEqual([])
})

/** Dots for what is left out; and the summary line of the file, which a terminal lays out in another way. */
const LEFT_OUT = /^\s*(…|❯.*|)$/

function withoutTimes(line: string): string {
  return line
    .replace(/\s+\d+\s?ms$/, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

describe('the commands', () => {
  test.for(COMMANDS.filter((command) => !DONE_ELSEWHERE.test(command)))('%s', async (command) => {
    const { code, text } = await shell(command.replace('<test>', 'conv-net_layer_Conv_0-sim-float16'))
    expect(code, text).toBe(0)
  })
})

test('the sidecar sets what it says', async () => {
  const { code, text } = await shell('npx vitest run --reporter=verbose example.onnx')
  expect(code, text).toBe(0)
  for (const size of [1, 4]) expect(text).toContain(`example_full_model@batch=${size},seq=16-sim-default`)
})

test('the library takes a model apart', async () => {
  project.write('library.mjs', blockWith('ts', 'layersOf'))
  const { code, text } = await shell('node library.mjs')
  expect(code, text).toBe(0)
  expect(text).toMatch(/^model_layer_Add_0 \d+\nmodel_layer_Relu_1 \d+\nmodel_layer_Softmax_2 \d+$/)
})
