/**
 * A test and what the harness fills in -> the words of the command line.
 *
 * Pure. The words go to the program as they are, never through a shell. The order is that of older
 * harnesses: the harness's own flags, `misc`, then `common`.
 */
import type { FilledFlag, Flags } from './config-schema.ts'
import type { ConvergenceTest } from './parse-config.ts'

export interface CheckpointStart {
  readonly checkpoint: string
  readonly startStep: number
}

/** From the start, or on from the last complete checkpoint of an interrupted gather. */
export function gatherCommand(
  test: ConvergenceTest,
  checkpointOutput: string,
  resume: CheckpointStart | undefined,
): string[] {
  const { gather, common } = test.flags
  return [
    ...test.executable,
    gather.checkpoint_output.key,
    checkpointOutput,
    ...(resume === undefined ? [] : startFlags(test, resume)),
    ...words(gather.misc),
    ...words(common),
  ]
}

export function runCommand(test: ConvergenceTest, start: CheckpointStart, lastStep: number): string[] {
  const { run, common } = test.flags
  const runFor = run.run_for.counts === 'segment' ? lastStep - start.startStep : lastStep
  return [
    ...test.executable,
    ...startFlags(test, start),
    ...filled(run.run_for, runFor),
    ...words(run.misc),
    ...words(common),
  ]
}

function startFlags(test: ConvergenceTest, start: CheckpointStart): string[] {
  const { checkpoint_input: input, start_step: startStep } = test.flags.run
  return [input.key, start.checkpoint, ...filled(startStep, start.startStep)]
}

function filled({ key, offset = 0 }: FilledFlag, value: number): string[] {
  return [key, String(value + offset)]
}

function words(flags: Flags): string[] {
  return Object.values(flags ?? {}).flatMap(({ key, value }) => (value === null ? [key] : [key, value]))
}
