/** `vitest-onnx diff <test>`: the two results of a failed test compared once more, with a histogram. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { compareOutputs } from '../compare/compare-outputs.ts'
import { explainVerdict } from '../compare/explain.ts'
import { ModelTestError } from '../errors.ts'
import { loadTensors, readTensorRefs } from '../files/tensor-file.ts'
import { CASE_FILE, type FoundFailure, keptFailures } from '../suite/failures.ts'
import { note, print, printJson, safe } from './output.ts'

export function diffCommand(): Command {
  return new Command('diff')
    .summary('compare the results of a failed test again')
    .description(
      'Prints the figures, the worst elements and a histogram of the errors of a test that failed.',
    )
    .argument('<test>', 'the name of the test, as its message says')
    .option('--root <dir>', 'the folder that Vitest ran in', '.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ vitest-onnx diff example-matmul_layer_MatMul_0-sim-float16')
    .action(diff)
}

function diff(test: string, { root, json }: { readonly root: string; readonly json?: true }): void {
  const all = keptFailures(root)
  const found = latest(all.filter(({ kept }) => kept.test === test))
  if (found === undefined) throw notKept(all, test)
  const {
    folder,
    kept: { thresholds },
  } = found
  const [actual, expected] = ['actual', 'expected'].map((name) =>
    loadTensors(readTensorRefs(join(folder, `${name}.safetensors`))),
  )
  const verdict = compareOutputs(actual!, expected!, (name) => thresholds[name]!.tolerance)
  if (json) return printJson(verdict, plainNumbers)
  for (const [name, output] of verdict.outputs) {
    print(
      explainVerdict(output, { name, origin: thresholds[name]?.origin, histogram: true })
        .map(safe)
        .join('\n'),
    )
  }
  for (const name of verdict.missing) note(`${name}: the result has no such output`)
  for (const name of verdict.unexpected) note(`${name}: the reference has no such output`)
}

/** JSON has no NaN and no infinities, and maps would come out empty. */
function plainNumbers(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value)
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
}

/** Of models that were renamed or moved, failures of the same name may be left. */
function latest(found: readonly FoundFailure[]): FoundFailure | undefined {
  return found.toSorted((a, b) => timeOf(b) - timeOf(a))[0]
}

function timeOf({ folder }: FoundFailure): number {
  return statSync(join(folder, CASE_FILE)).mtimeMs
}

function notKept(all: readonly FoundFailure[], test: string): ModelTestError {
  const kept = all.map((found) => found.kept.test)
  return new ModelTestError('INVALID_OPTION', `no failure of "${test}" is kept`, {
    hint:
      kept.length === 0
        ? 'Run the test first, in this folder (or name the folder with --root); only failures are kept.'
        : `Kept are: ${kept.slice(0, 10).join(', ')}${kept.length > 10 ? ' and more' : ''}.`,
  })
}
