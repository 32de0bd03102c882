/** `vitest-onnx xfails update <report>`: the list of known failures, brought up to date from a run. */
import { existsSync, readFileSync } from 'node:fs'
import { Command } from 'commander'
import { z } from 'zod'
import { ModelTestError } from '../errors.ts'
import { writeFileAtomic } from '../files/write-file.ts'
import { type TestResult, updateXfails, XFAILS } from '../suite/xfails.ts'
import type { OnnxMeta } from '../vitest/timings.ts'
import { print } from './output.ts'

export function xfailsCommand(): Command {
  const update = new Command('update')
    .summary('drop what passes, add what fails')
    .description(
      "Reads a report of Vitest's json reporter, drops the tests that pass from the list of known failures,\n" +
        'adds those that fail, and keeps comments. Run with ONNX_TEST_TRY_XFAILS=1, so that listed tests run.',
    )
    .argument('<report>', 'written by vitest run --reporter=json --outputFile=report.json')
    .option('--file <file>', 'the list', `testdata/${XFAILS}`)
    .option('--check', 'write nothing; exit with 1 if the list would change')
    .action(updateList)
  return new Command('xfails').description('look after the list of known failures').addCommand(update)
}

function updateList(report: string, { file, check }: { readonly file: string; readonly check?: true }): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const after = updateXfails(before, readReport(report))
  if (after === before) print(`${file} is up to date`)
  else if (check) {
    print(`${file} is out of date`)
    process.exitCode = 1
  } else {
    writeFileAtomic(file, after)
    print(`${file} written`)
  }
}

const reportSchema = z.object({
  testResults: z.array(
    z.object({
      assertionResults: z.array(
        z.object({
          title: z.string(),
          status: z.string(),
          meta: z.record(z.string(), z.unknown()).optional(),
        }),
      ),
    }),
  ),
})

function readReport(path: string): TestResult[] {
  try {
    const { testResults } = reportSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
    return testResults.flatMap(({ assertionResults }) =>
      assertionResults
        .filter(({ meta }) => meta !== undefined && 'onnx' in meta)
        .flatMap(({ title, status, meta }) => resultOf(title, status, meta!)),
    )
  } catch (cause) {
    throw new ModelTestError(
      'INVALID_OPTION',
      `this is no report of Vitest's json reporter (${(cause as Error).message.split('\n')[0]})`,
      {
        file: path,
        hint: 'Make one: ONNX_TEST_TRY_XFAILS=1 vitest run --reporter=json --outputFile=report.json',
        cause,
      },
    )
  }
}

/** A known failure that was tried and failed is reported as skipped; its meta says so. */
function resultOf(test: string, status: string, meta: Readonly<Record<string, unknown>>): TestResult[] {
  const { isXfail } = meta['onnx'] as OnnxMeta
  if (status === 'passed') return [{ test, passed: true }]
  return status === 'failed' || isXfail === true ? [{ test, passed: false }] : []
}
