/**
 * A project as a user has it, in a temp folder: models, a config of three lines, this package.
 *
 * The package is built from the sources as they are now, into that folder.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { execa } from 'execa'

export interface Project {
  readonly folder: string
  vitest(...args: readonly string[]): Promise<VitestRun>
  /** Removes what runs have left. */
  clear(): void
}

export interface VitestRun {
  readonly ms: number
  readonly stdout: string
  /** The most memory of all processes together, as far as samples tell; 0 where there is no /proc. */
  readonly peakBytes: number
}

const REPOSITORY = resolve(import.meta.dirname, '..')

/** Types are checked elsewhere; here they would only take time. */
const UNCHECKED = ['--noCheck', '--declaration', 'false', '--isolatedDeclarations', 'false']

/** Builds the package into a folder, and gives that folder. */
export async function buildPackage(parent: string): Promise<string> {
  const folder = join(parent, 'vitest-onnx')
  mkdirSync(folder)
  const out = ['--outDir', join(folder, 'dist')]
  await execa('npx', ['tsc', '-p', 'tsconfig.build.json', ...UNCHECKED, ...out], { cwd: REPOSITORY })
  writeFileSync(join(folder, 'package.json'), readFileSync(join(REPOSITORY, 'package.json')))
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

export function makeProject(
  folder: string,
  library: string,
  models: Iterable<readonly [name: string, bytes: Uint8Array]>,
): Project {
  mkdirSync(join(folder, 'testdata'), { recursive: true })
  // A copy, not a link: what a link leads to would be transformed like sources of the project.
  cpSync(library, join(folder, 'node_modules/vitest-onnx'), { recursive: true, verbatimSymlinks: true })
  symlinkSync(join(REPOSITORY, 'node_modules/vitest'), join(folder, 'node_modules/vitest'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(folder, 'vitest.config.ts'), CONFIG)
  for (const [name, bytes] of models) writeFileSync(join(folder, 'testdata', name), bytes)
  return {
    folder,
    vitest: (...args) => runVitest(folder, args),
    clear() {
      for (const name of LEFT_BY_RUNS) rmSync(join(folder, name), { recursive: true, force: true })
    },
  }
}

/** Vitest alone: as many files of as many tests, which do nothing, under the settings of models. */
export function makeEmptyProject(folder: string, files: number, testsPerFile: number): Project {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  mkdirSync(join(folder, 'tests'))
  symlinkSync(join(REPOSITORY, 'node_modules/vitest'), join(folder, 'node_modules/vitest'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(folder, 'vitest.config.ts'), EMPTY_CONFIG)
  const tests = Array.from({ length: testsPerFile }, (_, n) => `test('number ${n}', () => {})\n`).join('')
  for (let n = 0; n < files; n++) {
    writeFileSync(join(folder, 'tests', `${n}.test.ts`), `import { test } from 'vitest'\n\n${tests}`)
  }
  return { folder, vitest: (...args) => runVitest(folder, args), clear() {} }
}

const EMPTY_CONFIG = `import { defineConfig } from 'vitest/config'
export default defineConfig({ test: { isolate: false, pool: 'forks' } })
`

const LEFT_BY_RUNS = ['.vitest-onnx', 'node_modules/.cache', 'testdata/__snapshots__']

const CONFIG = `import { defineConfig } from 'vitest/config'
import { onnx } from 'vitest-onnx'
export default defineConfig({ plugins: [onnx({ targets: ['cpu'] })] })
`

async function runVitest(folder: string, args: readonly string[]): Promise<VitestRun> {
  const started = performance.now()
  const run = execa(process.execPath, [join(folder, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: folder,
    env: { ...WITHOUT_SETTINGS, CI: '', NO_COLOR: '1' },
    all: true,
    reject: false,
  })
  let peakBytes = 0
  const timer = setInterval(() => {
    peakBytes = Math.max(peakBytes, run.pid === undefined ? 0 : residentBytes(run.pid))
  }, SAMPLE_MS)
  try {
    const { stdout, all, exitCode } = await run
    if (exitCode !== 0) throw new Error(`vitest ${args.join(' ')} failed:\n${lastLines(all)}`)
    return { ms: performance.now() - started, stdout, peakBytes }
  } finally {
    clearInterval(timer)
  }
}

const SAMPLE_MS = 250

function lastLines(text: string): string {
  return text.split('\n').slice(-30).join('\n')
}

/** Settings of who runs the benchmark would change what is measured. */
const WITHOUT_SETTINGS = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => /^(ONNX_TEST_|FMS_TEST_|VITEST|NODE_OPTIONS)/.test(name))
    .map((name) => [name, undefined]),
)

/** Of a process and all it has started. */
function residentBytes(root: number): number {
  const [parents, sizes] = [new Map<number, number>(), new Map<number, number>()]
  for (const pid of processIds()) {
    const status = textOf(`/proc/${pid}/status`)
    parents.set(pid, Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? 0))
    sizes.set(pid, Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024)
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && pid !== 0 && (pid === root || isBelow(parents.get(pid)))
  return [...sizes].reduce((sum, [pid, size]) => (isBelow(pid) ? sum + size : sum), 0)
}

function processIds(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  } catch {
    return []
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
