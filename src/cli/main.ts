#!/usr/bin/env node
/** The `vitest-onnx` command: parses, calls, prints. Exit codes: 0 fine, 1 the model's fault, 2 wrong usage. */
import { createRequire } from 'node:module'
import { Command, CommanderError } from 'commander'
import { type ErrorCode, ModelTestError } from '../errors.ts'
import { cacheCommand } from './cache.ts'
import { errorColors } from './colors.ts'
import { convergeCommand } from './converge.ts'
import { diffCommand } from './diff.ts'
import { extractCommand } from './extract.ts'
import { generateCommand } from './generate.ts'
import { inspectCommand } from './inspect.ts'
import { safe } from './output.ts'
import { splitCommand } from './split.ts'
import { xfailsCommand } from './xfails.ts'

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

const COMMANDS = [
  generateCommand(),
  diffCommand(),
  xfailsCommand(),
  cacheCommand(),
  inspectCommand(),
  splitCommand(),
  extractCommand(),
  convergeCommand(),
]

const program = new Command('vitest-onnx')
  .description('Test neural networks across runtimes: look into ONNX models and take them apart.')
  .version(version)
  .showHelpAfterError('(--help shows the options)')
  .addHelpText('after', '\nExit codes: 0 fine, 1 the model is at fault, 2 wrong usage.')
  .exitOverride()
for (const command of COMMANDS) program.addCommand(inherit(command, program))

/** Commander hands its settings down only to commands that are made by their parent. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent)
  for (const inner of command.commands) inherit(inner, command)
  return command
}

const WRONG_USAGE: ReadonlySet<ErrorCode> = new Set(['INVALID_OPTION', 'UNKNOWN_VALUE', 'INCOMPLETE_CUT'])

// A reader that stops early (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** Says what happened on stderr and returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof ModelTestError) {
    process.stderr.write(
      `${errorColors.red('error:')} ${lines(error.message)}\n${errorColors.dim('hint:')}  ${lines(error.hint)}\n`,
    )
    return WRONG_USAGE.has(error.code) ? 2 : 1
  }
  process.stderr.write(
    `${errorColors.red('error:')} unexpected: ${error instanceof Error ? error.stack : String(error)}\n`,
  )
  return 1
}

function lines(text: string): string {
  return text.split('\n').map(safe).join('\n')
}
