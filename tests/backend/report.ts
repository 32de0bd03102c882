/**
 * The ONNX backend tests through the plugin, listed by what became of them:
 * `npm run backend -- <archive.tar.gz or folder> [--write docs/onnx-backend-tests.md]`.
 *
 * Unpacks to a temporary project that refers to this package as built, runs Vitest there with the
 * `cpu` target against the recorded outputs, and groups the tests of data sets by cause.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

interface Outcome {
  readonly test: string
  readonly cause: string
}

function layOut(folder: string, from: string): void {
  mkdirSync(join(folder, 'testdata'))
  mkdirSync(join(folder, 'node_modules'))
  if (statSync(from).isDirectory()) cpSync(from, join(folder, 'testdata'), { recursive: true })
  else execFileSync('tar', ['-xzf', from, '-C', join(folder, 'testdata')])
  symlinkSync(ROOT, join(folder, 'node_modules/vitest-onnx'))
  symlinkSync(join(ROOT, 'node_modules/vitest'), join(folder, 'node_modules/vitest'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }\n')
  writeFileSync(
    join(folder, 'vitest.config.ts'),
    "import { onnx } from 'vitest-onnx'\nexport default { plugins: [onnx({ targets: ['cpu'], layers: false })] }\n",
  )
}

function runTests(folder: string): Outcome[] {
  const report = join(folder, 'report.json')
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs')
  spawnSync(process.execPath, [vitest, 'run', '--reporter=json', `--outputFile=${report}`], {
    cwd: folder,
    stdio: 'ignore',
  })
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: {
      name: string
      assertionResults: { title: string; status: string; failureMessages: string[] }[]
    }[]
  }
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ status, title, failureMessages }) => ({
      test: `${basename(dirname(name))} (${title.replace(/-cpu-default$/, '').replace(/^.*_data_set_/, 'data set ')})`,
      cause: status === 'passed' ? 'passes' : causeOf(failureMessages[0] ?? status),
    })),
  )
}

const CAUSES: readonly (readonly [cause: string, pattern: RegExp])[] = [
  ['differs from the recorded output', /^FAIL/],
  ['type not feedable: onnxruntime-node refuses it at load', /Unsupported data type/],
  ['type not feedable: onnxruntime-node cannot be fed it', /onnxruntime-node cannot be fed/],
  ['type not feedable: a sequence or an optional', /is no tensor/],
  ['not supported by onnxruntime: no kernel', /Could not find an implementation|Failed to find kernel/],
  ['not supported by onnxruntime: no such operator', /is not a registered function|Fatal error/],
  ['onnxruntime ends its process', /was ended by/],
  ['onnxruntime refuses the model', /cannot load the model/],
  ['onnxruntime fails while running', /cannot run the model/],
]

function causeOf(message: string): string {
  return CAUSES.find(([, pattern]) => pattern.test(message))?.[0] ?? message.split('\n')[0]!
}

function render(outcomes: readonly Outcome[]): string {
  const byCause = new Map<string, Outcome[]>()
  for (const outcome of outcomes) byCause.set(outcome.cause, [...(byCause.get(outcome.cause) ?? []), outcome])
  const ordered = [...byCause].toSorted((a, b) => b[1].length - a[1].length)
  const rows = ordered.map(([cause, tests]) => `| ${cause} | ${tests.length} |`)
  const lists = ordered
    .filter(([cause]) => cause !== 'passes')
    .map(
      ([cause, tests]) =>
        `## ${cause[0]!.toUpperCase()}${cause.slice(1)}\n\n${tests
          .map(({ test }) => `- ${test}`)
          .toSorted()
          .join('\n')}\n`,
    )
  return [
    '# The ONNX backend tests',
    '',
    'Every data set of the ONNX 1.20 backend tests, run through the plugin on the `cpu` target against its recorded outputs',
    '(rtol 1e-3, atol 1e-7, integers exact; bfloat16 up-cast, with the tolerance `bf16`). Made by `npm run backend -- <archive> --write docs/onnx-backend-tests.md`.',
    '',
    '| what | data sets |',
    '| --- | ---: |',
    ...rows,
    '',
    ...lists,
  ].join('\n')
}

const [source, flag, target] = process.argv.slice(2)
if (
  source === undefined ||
  !existsSync(source) ||
  (flag !== undefined && (flag !== '--write' || target === undefined))
) {
  process.stderr.write('usage: npm run backend -- <archive.tar.gz or folder> [--write <file.md>]\n')
  process.exit(2)
}

const project = mkdtempSync(join(tmpdir(), 'onnx-backend-'))
try {
  layOut(project, resolve(source))
  const started = performance.now()
  const outcomes = runTests(project)
  const seconds = (performance.now() - started) / 1000
  process.stdout.write(`${outcomes.length} data sets in ${seconds.toFixed(0)} s\n`)
  const text = render(outcomes)
  if (target === undefined) process.stdout.write(text)
  else writeFileSync(target, text)
} finally {
  rmSync(project, { recursive: true, force: true })
}
