/**
 * `vitest-onnx converge`: gathers or runs convergence tests and prints the result.
 *
 * Exit codes: 0 passed, 1 a regression, 2 wrong usage or config, 3 the application failed, 130
 * interrupted. The result goes to stdout, progress and errors to stderr.
 */
import { Command, InvalidArgumentError } from 'commander'
import { Progress } from '../convergence/progress.ts'
import { renderReport } from '../convergence/render-report.ts'
import type { Paint } from '../convergence/render-table.ts'
import {
  gatherConvergence,
  runConvergence,
  type GatherReport,
  type RunReport,
} from '../convergence/run-convergence.ts'
import { DEFAULT_MANIFEST_NAME } from '../convergence/storage.ts'
import { writePlots } from '../convergence/write-plots.ts'
import { ModelTestError } from '../errors.ts'
import { colors, errorColors } from './colors.ts'

interface ConvergeOptions {
  readonly testConfigPath: string
  readonly storagePath: string
  readonly gather?: true
  readonly fresh?: true
  readonly manifestName: string
  readonly test?: string
  readonly stepTimeout?: number
  readonly plot?: string
  readonly json?: true
}

const USAGE_EXIT = 2
const APPLICATION_EXIT = 3

const EXIT_CODES = {
  passed: 0,
  gathered: 0,
  regressed: 1,
  failed: APPLICATION_EXIT,
  interrupted: 130,
} satisfies Record<RunReport['outcome'] | GatherReport['outcome'], number>

export function convergeCommand(): Command {
  return new Command('converge')
    .summary('test that a training still converges as it did')
    .description(
      'Tests that a training still converges as it did, by short segments from known-good checkpoints.\n' +
        'Gather once with -g; then run without it after every change.',
    )
    .requiredOption('-t, --test-config-path <file>', 'the YAML config of the tests')
    .requiredOption('-s, --storage-path <folder>', 'where the manifest and the checkpoints are kept')
    .option('-g, --gather', 'run the training to its end and record its checkpoints')
    .option('--fresh', 'with -g: start over where an interrupted gather would go on')
    .option('--manifest-name <name>', 'the manifest is <test>_<name>', DEFAULT_MANIFEST_NAME)
    .option('--test <name>', 'only this test of the config')
    .option('--step-timeout <seconds>', 'stop the application when it logs no new step for so long', seconds)
    .option('--plot <folder>', 'write the curves as SVG and as index.html')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE_EXIT))
    .action(converge)
}

const HELP = `
Examples:
  $ vitest-onnx converge -t convergence.yml -s known-good -g
  $ vitest-onnx converge -t convergence.yml -s known-good --plot plots

Exit codes:
  0  every value passes      2  wrong usage, config or manifest
  1  a regression            3  the application failed
  130  interrupted; after -g, the same command goes on from the last complete checkpoint`

async function converge(options: ConvergeOptions): Promise<void> {
  const interrupt = new InterruptSignal()
  const progress = new Progress(process.stderr, paintFor(process.stderr))
  try {
    const report = await start(options, interrupt.signal, progress)
    progress.clear()
    print(report, options)
    if (options.plot !== undefined) await plot(report, options.plot)
    process.exitCode = EXIT_CODES[report.outcome]
  } catch (error) {
    progress.clear()
    if (!(error instanceof ModelTestError)) throw error
    explain(error)
  } finally {
    interrupt.release()
  }
}

async function start(
  options: ConvergeOptions,
  signal: AbortSignal,
  progress: Progress,
): Promise<RunReport | GatherReport> {
  const { testConfigPath: config, storagePath: storage, manifestName, test, stepTimeout, fresh } = options
  const common = { config, storage, manifestName, test, stepTimeout, signal, onEvent: progress.show }
  return options.gather === true ? gatherConvergence({ ...common, fresh }) : runConvergence(common)
}

function print(report: RunReport | GatherReport, { json }: ConvergeOptions): void {
  const text =
    json === true ? JSON.stringify(report, undefined, 2) : renderReport(report, paintFor(process.stdout))
  process.stdout.write(`${text}\n`)
}

async function plot(report: RunReport | GatherReport, folder: string): Promise<void> {
  process.stderr.write(`plots: ${await writePlots(report, folder)}\n`)
}

function explain(error: ModelTestError): void {
  process.stderr.write(`${paintFor(process.stderr).bad('error:')} ${error.message}\nhint: ${error.hint}\n`)
  process.exitCode = error.code === 'APPLICATION_FAILED' ? APPLICATION_EXIT : USAGE_EXIT
}

/** The first Ctrl-C ends the application in good order, a second one ends the command at once. */
class InterruptSignal {
  readonly #controller = new AbortController()

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#interrupt)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  release(): void {
    for (const name of SIGNALS) process.off(name, this.#interrupt)
  }

  readonly #interrupt = (): void => {
    if (this.#controller.signal.aborted) process.exit(EXIT_CODES.interrupted)
    this.#controller.abort()
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function paintFor(stream: NodeJS.WriteStream): Paint {
  const colours = stream === process.stderr ? errorColors : colors
  return { good: colours.green, bad: colours.red, dim: colours.dim }
}

function seconds(text: string): number {
  const value = Number(text)
  if (value > 0) return value
  throw new InvalidArgumentError('It must be a number of seconds above 0.')
}
