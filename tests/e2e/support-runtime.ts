/**
 * Projects that use the packed package as users do: real Vitest, real onnxruntime, nothing stubbed.
 *
 * The tarball is unpacked once per test file; of this repository's modules only those that it
 * declares are in reach. Projects lie below, each with a cache, a home and a temporary folder of its own.
 */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { execa } from 'execa'
import { packInto } from '../support/packed.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const MODELS = join(ROOT, 'testdata/onnx_models')

/** Another Vitest or Node than the project's own, for scripts that try several. */
const MODULES = process.env['PLUGIN_TEST_MODULES'] ?? join(ROOT, 'node_modules')
const NODE = process.env['PLUGIN_TEST_NODE'] ?? process.execPath

let base: string | undefined

function unpacked(): string {
  if (base !== undefined) return base
  base = mkdtempSync(join(tmpdir(), 'vitest-onnx-runtime-'))
  const modules = join(base, 'node_modules')
  mkdirSync(join(modules, 'vitest-onnx'), { recursive: true })
  execFileSync('tar', ['-xzf', packInto(base), '--strip-components=1', '-C', join(modules, 'vitest-onnx')])
  const manifest = JSON.parse(readFileSync(join(modules, 'vitest-onnx/package.json'), 'utf8')) as Record<
    string,
    Record<string, string>
  >
  const declared = { ...manifest['dependencies'], ...manifest['optionalDependencies'] }
  for (const name of Object.keys(declared)) link(join(ROOT, 'node_modules', name), join(modules, name))
  // Another Vitest may be under test; everything else is what this project has.
  for (const name of ['vitest', '@vitest/ui']) link(join(MODULES, name), join(modules, name))
  return base
}

function link(folder: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(folder, path)
}

export function removeProjects(): void {
  if (base !== undefined) rmSync(base, { recursive: true, force: true, maxRetries: 5 })
}

export type Env = Readonly<Record<string, string>>

export interface Outcome {
  readonly status: string
  /** What the json reporter has of its failure. */
  readonly message: string
  readonly meta: { readonly onnx?: { readonly timings: Readonly<Record<string, number>> } }
}

export interface Run {
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
  /** Both, as a terminal shows them. */
  readonly screen: string
  readonly junit: string
  /** By test name. */
  readonly tests: Readonly<Record<string, Outcome>>
  /** The status of each test. */
  readonly statuses: Readonly<Record<string, string>>
}

export interface RuntimeProject {
  readonly folder: string
  write(path: string, content: string | Uint8Array): void
  read(path: string): string
  bytes(path: string): Uint8Array
  has(path: string): boolean
  remove(path: string): void
  files(path: string): string[]
  /** Vitest with the default, json and junit reporters. */
  run(args?: readonly string[], env?: Env): Promise<Run>
  /** Vitest with just these arguments. */
  vitest(args: readonly string[], env?: Env): Started
  /** Another program in front of Vitest, such as strace. */
  vitestUnder(program: readonly string[], args: readonly string[], env?: Env): Started
  cli(...args: string[]): Started
}

/** `models`: those of testdata by name, or the bytes of others. */
export function runtimeProject(
  models: readonly (string | readonly [name: string, bytes: Uint8Array])[],
  options = '',
): RuntimeProject {
  const folder = mkdtempSync(join(unpacked(), 'project-'))
  const write = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  write('package.json', '{ "private": true, "type": "module" }\n')
  write(
    'vitest.config.ts',
    `import { defineConfig } from 'vitest/config'
     import { onnx } from 'vitest-onnx'
     export default defineConfig({ plugins: [onnx(${options})] })\n`,
  )
  for (const name of ['home', 'tmp', 'testdata/onnx_models', 'node_modules'])
    mkdirSync(join(folder, name), { recursive: true })
  // What the user's own target needs, out of reach of the package.
  symlinkSync(join(ROOT, 'node_modules/onnx-proto'), join(folder, 'node_modules/onnx-proto'))
  for (const model of models) {
    if (typeof model !== 'string') write(`testdata/onnx_models/${model[0]}.onnx`, model[1])
    else copyFileSync(join(MODELS, `${model}.onnx`), join(folder, 'testdata/onnx_models', `${model}.onnx`))
  }
  const bin = join(unpacked(), 'node_modules/vitest/vitest.mjs')
  const start = (command: readonly string[], env: Env = {}): Started => startIn(folder, command, env)
  const vitestUnder: RuntimeProject['vitestUnder'] = (program, args, env) =>
    start([...program, NODE, bin, ...args], env)
  return {
    folder,
    write,
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    bytes: (path) => readFileSync(join(folder, path)),
    has: (path) => existsSync(join(folder, path)),
    remove: (path) => rmSync(join(folder, path)),
    files: (path) => listed(join(folder, path)),
    vitest: (args, env) => vitestUnder([], args, env),
    vitestUnder,
    cli: (...args) => start([NODE, join(unpacked(), 'node_modules/vitest-onnx/dist/cli/main.js'), ...args]),
    async run(args = [], env = {}) {
      for (const file of ['report.json', 'junit.xml']) rmSync(join(folder, file), { force: true })
      const { exitCode, stdout, stderr, all } = await vitestUnder([], ['run', ...REPORTERS, ...args], env)
      const tests = existsSync(join(folder, 'report.json'))
        ? testsIn(readFileSync(join(folder, 'report.json'), 'utf8'))
        : {}
      const junit = join(folder, 'junit.xml')
      return {
        code: exitCode,
        stdout,
        stderr,
        screen: all,
        junit: existsSync(junit) ? readFileSync(junit, 'utf8') : '',
        tests,
        statuses: statusesOf(tests),
      }
    },
  }
}

export type Started = ReturnType<typeof startIn>

function startIn(folder: string, [program, ...args]: readonly string[], env: Env) {
  return execa(program!, args, {
    cwd: folder,
    env: environment(folder, env),
    extendEnv: false,
    reject: false,
    all: true,
    stdin: 'ignore',
    // A group of its own, so that a test can end all of it at once.
    detached: true,
  })
}

const REPORTERS = [
  '--reporter=default',
  '--reporter=json',
  '--reporter=junit',
  '--outputFile.json=report.json',
  '--outputFile.junit=junit.xml',
]

/** Of a developer's machine, not of CI, whatever this one is; colourless. */
function environment(folder: string, env: Env): Record<string, string> {
  const own = Object.entries(process.env).filter(
    ([name, value]) =>
      value !== undefined && !/^(VITEST|NODE_ENV|TEST|ONNX_TEST_|ORT_|CI$|GITHUB_|NODE_OPTIONS)/.test(name),
  ) as [string, string][]
  return {
    ...Object.fromEntries(own),
    NO_COLOR: '1',
    FORCE_COLOR: '0',
    HOME: join(folder, 'home'),
    TMPDIR: join(folder, 'tmp'),
    ...env,
  }
}

export function testsIn(json: string): Record<string, Outcome> {
  const { testResults } = JSON.parse(json) as {
    testResults: {
      assertionResults: {
        title: string
        status: string
        failureMessages?: string[]
        meta?: Outcome['meta']
      }[]
    }[]
  }
  return Object.fromEntries(
    testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .map(({ title, status, failureMessages, meta }) => [
        title,
        { status, message: failureMessages?.join('\n') ?? '', meta: meta ?? {} },
      ]),
  )
}

export function statusesOf(tests: Readonly<Record<string, Outcome>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tests).map(([name, { status }]) => [name, status]))
}

function listed(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted()
}

/** A target as a user writes it: onnxruntime, but the node named "attention" gives 5 % too much. */
export const ONE_BAD_LAYER = `
import { defineTarget } from 'vitest-onnx'
import ort from 'onnxruntime-node'
import proto from 'onnx-proto'

export default defineTarget({
  name: 'mine',
  version: () => '1',
  compile({ bytes, folder }) {
    const model = proto.onnx.ModelProto.decode(bytes)
    const { node, initializer } = model.graph
    const at = node.findIndex(({ name }) => name === 'attention')
    if (at < 0) return { bytes, folder }
    const [output] = node[at].output
    node[at].output[0] = 'exact'
    initializer.push({ name: 'factor', dims: [], dataType: 1, floatData: [1.05] })
    node.splice(at + 1, 0, { opType: 'Mul', input: ['exact', 'factor'], output: [output] })
    return { bytes: proto.onnx.ModelProto.encode(model).finish(), folder }
  },
  async load({ bytes, folder }) {
    process.chdir(folder) // larger weights are external data
    const session = await ort.InferenceSession.create(bytes, { graphOptimizationLevel: 'disabled' })
    return {
      async run(inputs) {
        const feeds = [...inputs].map(([name, { dtype, shape, data }]) => [name, new ort.Tensor(dtype, data, shape)])
        const outputs = Object.entries(await session.run(Object.fromEntries(feeds)))
        return new Map(outputs.map(([name, { type, dims, data }]) => [name, { dtype: type, shape: dims, data }]))
      },
    }
  },
})
`

/** A target that gives `result`, an expression, for a run; `inputs` and `wait` are in scope. */
export function targetThat(result: string): string {
  return `
import { defineTarget } from 'vitest-onnx'
const wait = (ms) => new Promise((done) => setTimeout(done, ms))
export default defineTarget({
  name: 'mine',
  version: () => '1',
  compile: () => 'nothing',
  load: () => ({ run: async (inputs) => ${result} }),
})
`
}
