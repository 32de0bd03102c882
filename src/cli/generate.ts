/** `vitest-onnx generate`: the test files of the models, for those who keep them in git. */
import { relative } from 'node:path'
import { Command } from 'commander'
import { environmentWarnings } from '../suite/environment.ts'
import { resolveConfig } from '../suite/options.ts'
import { type Generated, generateTests, untested } from '../vitest/generate-tests.ts'
import { note, print, printJson, table } from './output.ts'

interface GenerateCommandOptions {
  readonly testdata?: string
  readonly output?: string
  readonly check?: true
  readonly json?: true
}

export function generateCommand(): Command {
  return new Command('generate')
    .summary('write the test files of the models')
    .description(
      'Writes one test file per model, as the plugin does when Vitest starts. The environment variables\n' +
        'ONNX_TEST_* count; options of the plugin do not, so give the same folders here.',
    )
    .option('--testdata <dir>', 'the folder of the models', 'testdata')
    .option('--output <dir>', 'the folder of the test files', '.vitest-onnx/tests')
    .option('--check', 'write nothing; exit with 1 if something would change')
    .option('--json', 'print what changed as JSON')
    .addHelpText('after', '\nExample:\n  $ vitest-onnx generate --output tests/models --check')
    .action(generate)
}

function generate({ testdata, output, check, json }: GenerateCommandOptions): void {
  const config = resolveConfig({ testdata, output }, process.cwd(), process.env)
  for (const warning of environmentWarnings(process.env)) note(warning)
  const generated = generateTests(config, { dryRun: check === true })
  const changes = [...generated.added, ...generated.changed, ...generated.removed].length
  if (json) printJson(summary(generated, config.root))
  else print(report(generated, config.root, check === true))
  if (generated.models.length === 0) note(`there is no .onnx file in ${config.testdata}`)
  const remark = untested(generated)
  if (remark !== undefined) note(remark)
  if (check && changes > 0) {
    note('run vitest-onnx generate without --check to write them')
    process.exitCode = 1
  }
}

function summary({ models, tags, added, changed, removed, unchanged }: Generated, root: string): object {
  const named = (paths: readonly string[]): string[] => paths.map((path) => relative(root, path))
  return {
    models: models.map(({ model, files }) => ({ id: model.id, name: model.name, files: named(files) })),
    tags,
    added: named(added),
    changed: named(changed),
    removed: named(removed),
    unchanged,
  }
}

function report(
  { models, added, changed, removed, unchanged }: Generated,
  root: string,
  isCheck: boolean,
): string {
  const rows: (readonly [string, number, readonly string[]])[] = [
    ['added', added.length, added],
    ['changed', changed.length, changed],
    ['removed', removed.length, removed],
  ]
  const counts = table([...rows.map(([what, count]) => [what, count]), ['unchanged', unchanged]])
  const names = isCheck
    ? rows.flatMap(([what, , paths]) => paths.map((path) => `  ${what}: ${relative(root, path)}`))
    : []
  return [`test files of ${models.length} models`, counts, ...names].join('\n')
}
