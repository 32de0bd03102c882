/** The example training in a temporary project, and ways to change it. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { tempFolder } from '../convergence/temp-training.ts'

const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

export interface Demo {
  readonly folder: string
  readonly storage: string
  readonly manifestFile: string
  /** Replaces a text of the training or of its config, which must be there. */
  edit(file: 'train.mjs' | 'convergence.yml', from: string, to: string): void
  /** The command on the demo. */
  converge(...words: string[]): CommandRun
}

type CommandRun = ReturnType<typeof startCommand>

export function demoProject(): Demo {
  const folder = tempFolder()
  const storage = path.join(folder, 'known-good')
  cpSync(path.join(ROOT, 'examples/convergence'), path.join(folder, 'examples/convergence'), {
    recursive: true,
  })
  const edit: Demo['edit'] = (name, from, to) => {
    const file = path.join(folder, 'examples/convergence', name)
    const text = readFileSync(file, 'utf8')
    if (!text.includes(from)) throw new Error(`${name} has no "${from}"`)
    writeFileSync(file, text.replace(from, to))
  }
  return {
    folder,
    storage,
    manifestFile: path.join(storage, 'surface_convergence_harness_manifest.json'),
    edit,
    converge: (...words) =>
      startCommand(folder, ['-t', 'examples/convergence/convergence.yml', '-s', 'known-good', ...words]),
  }
}

export function startCommand(cwd: string, words: readonly string[]) {
  const program = path.join(ROOT, 'tests/convergence/converge-program.ts')
  return execa(process.execPath, ['--import', import.meta.resolve('tsx'), program, 'converge', ...words], {
    cwd,
    reject: false,
  })
}

/** A change that the margin covers. */
export const HARMLESS = ['convergence.yml', 'value: 0.2\n', 'value: 0.201\n'] as const

/** What must be caught. */
export const BROKEN = [
  ['a learning rate three times as high', 'convergence.yml', 'value: 0.2\n', 'value: 0.6\n'],
  ['dropped momentum', 'convergence.yml', 'value: 0.9\n', 'value: 0\n'],
  ['the wrong sign of the loss', 'train.mjs', '- lr * gradient', '+ lr * gradient'],
] as const
