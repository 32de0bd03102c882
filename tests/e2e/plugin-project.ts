/** A project with models that uses the plugin, in a folder of its own, run by a real Vitest. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { buildModel, type ModelSpec } from '../../testdata/onnx-builder.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Another Vitest or Node than the project's own, for `npm` scripts that try several. */
const MODULES = process.env['PLUGIN_TEST_MODULES'] ?? join(ROOT, 'node_modules')
const NODE = process.env['PLUGIN_TEST_NODE'] ?? process.execPath

const FOLDER = mkdtempSync(join(tmpdir(), 'vitest-onnx-plugin-'))
process.on('exit', () => rmSync(FOLDER, { recursive: true, force: true, maxRetries: 5 }))

export interface Project {
  readonly folder: string
  write(path: string, content: string | Uint8Array): void
  read(path: string): string
  bytes(path: string): Uint8Array
  remove(path: string): void
  files(path: string): string[]
  vitest(...args: string[]): ReturnType<typeof run>
  /** The tests of a run with the json reporter, by name. */
  results(...args: string[]): Promise<Record<string, string>>
  watch(): Watch
}

export interface ProjectOptions {
  /** The text between the brackets of `onnx(…)`. */
  readonly options?: string
  readonly env?: Readonly<Record<string, string>>
}

export function project(models: Readonly<Record<string, ModelSpec>>, options: ProjectOptions = {}): Project {
  const folder = mkdtempSync(join(FOLDER, 'project-'))
  const write = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  write('package.json', '{ "type": "module" }')
  write('vitest.config.ts', configText(options.options ?? ''))
  write('stub-runtime.ts', STUB)
  symlinkSync(MODULES, join(folder, 'node_modules'))
  for (const [path, spec] of Object.entries(models)) write(path, buildModel(spec))
  const vitest = (...args: string[]): ReturnType<typeof run> => run(folder, args, options.env)
  return {
    folder,
    write,
    bytes: (path) => readFileSync(join(folder, path)),
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    remove: (path) => rmSync(join(folder, path), { recursive: true }),
    files: (path) => listed(join(folder, path)),
    vitest,
    async results(...args) {
      await vitest('run', ...args, '--reporter=json', '--outputFile=report.json')
      return resultsIn(readFileSync(join(folder, 'report.json'), 'utf8'))
    },
    watch: () => watch(folder, options.env),
  }
}

/** One Relu; or as many nodes, one after another, as there are op types. */
export function chain(...ops: readonly string[]): ModelSpec {
  const names = ops.length === 0 ? ['Relu'] : ops
  return {
    nodes: names.map((op, at) => ({
      op,
      inputs: [at === 0 ? 'x' : `v${at}`],
      outputs: [at === names.length - 1 ? 'y' : `v${at + 1}`],
    })),
    inputs: { x: ['float32', [2, 3]] },
    outputs: { y: ['float32', [2, 3]] },
  }
}

export function resultsIn(json: string): Record<string, string> {
  const { testResults } = JSON.parse(json) as {
    testResults: { assertionResults: { title: string; status: string }[] }[]
  }
  const all = testResults.flatMap(({ assertionResults }) => assertionResults)
  return Object.fromEntries(all.map(({ title, status }) => [title, status]))
}

export interface Watch {
  /** What was printed since the last call, once it shows the end of a run that satisfies `pattern`. */
  until(pattern: RegExp): Promise<string>
  stop(): Promise<void>
}

function configText(options: string): string {
  return `
    import { defineConfig } from 'vitest/config'
    import { onnx } from ${JSON.stringify(join(ROOT, 'src/vitest/plugin.ts'))}
    export default defineConfig({
      resolve: { alias: { 'vitest-onnx/runtime': new URL('./stub-runtime.ts', import.meta.url).pathname } },
      plugins: [onnx(${options})],
    })
  `
}

/** Stands in for the runtime: tests of a Sigmoid fail, others pass. */
const STUB = `
  import { expect, inject } from 'vitest'
  export function openSuite(id: string) {
    const config = inject('vitest-onnx:config')
    return {
      run({ task }: { task: { name: string } }) {
        expect(config.testdata + '/' + id).toContain('/testdata/')
        if (task.name.includes('_snapshot_full')) expect(task.name.length).toMatchSnapshot()
        if (task.name.includes('Sigmoid')) throw new Error('FAIL: outputs differ')
      },
    }
  }
`

const QUIET = { NO_COLOR: '1', CI: '1', FORCE_COLOR: '0' }

function run(folder: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return start(folder, args, { ...QUIET, ...env })
}

function start(folder: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const own = Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_ENV|TEST|ONNX_TEST_)/.test(name))
  return execa(NODE, [join(folder, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: folder,
    env: { ...Object.fromEntries(own), ...env },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
}

function watch(folder: string, env: Readonly<Record<string, string>> = {}): Watch {
  const child = start(folder, ['--watch', '--reporter=verbose'], { NO_COLOR: '1', ...env })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await child
  }
  onTestFinished(stop)
  return {
    async until(pattern) {
      const deadline = Date.now() + 30_000
      while (!pattern.test(text)) {
        if (Date.now() > deadline) throw new Error(`waited for ${pattern}, saw:\n${text}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      const seen = text
      text = ''
      return seen
    },
    stop,
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .toSorted()
  } catch {
    return []
  }
}
