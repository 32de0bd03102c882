/** The command alone, as a program: `tsx converge-program.ts converge -t … -s …`. */
import { Command } from 'commander'
import { convergeCommand } from '../../src/cli/converge.ts'

await new Command('vitest-onnx').addCommand(convergeCommand()).parseAsync()
