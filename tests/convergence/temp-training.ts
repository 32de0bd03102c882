/**
 * A temporary project with an application made from a few lines of script, and its config.
 *
 * The script sees `arg(name)`, `save(step)`, `log(text)` and `sleep(ms)`; in a gather `out` is the
 * checkpoint folder, in a run `from`, `start` and `until` are set.
 */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { parseManifest, type Manifest } from '../../src/convergence/manifest.ts'

export interface TempTraining {
  readonly folder: string
  readonly config: string
  readonly storage: string
  readonly root: string
  readonly manifestFile: string
  readManifest(): Manifest
  setScript(script: string): void
}

type Settings = Record<string, unknown>

export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'convergence-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function tempTraining(script: string, settings: Settings = {}): TempTraining {
  const folder = tempFolder()
  const storage = path.join(folder, 'storage')
  const manifestFile = path.join(storage, 'tiny_convergence_harness_manifest.json')
  const setScript = (text: string): void =>
    writeFileSync(path.join(folder, 'app', 'train.mjs'), PROLOGUE + text)
  mkdirSync(path.join(folder, 'app'))
  setScript(script)
  const config = path.join(folder, 'convergence.yml')
  writeFileSync(config, stringify({ tiny: { ...tinyTest(), ...settings } }))
  return {
    folder,
    config,
    storage,
    root: folder,
    manifestFile,
    readManifest: () => parseManifest(readFileSync(manifestFile, 'utf8'), manifestFile),
    setScript,
  }
}

/** Logs `loss` of every step and saves a checkpoint every 4 steps. */
export const TRAINING = `
const last = Number(until ?? 12)
for (let step = Number(start ?? 0) + 1; step <= last; step++) {
  log('step ' + step + ' loss ' + (1 / step).toFixed(4))
  if (out && step % 4 === 0) save(step)
}
`

export function tinyTest(): Settings {
  return {
    directory: 'app',
    executable: [process.execPath, 'train.mjs'],
    log_output: 'stdout',
    log_parsing: {
      step_num: { regex: String.raw`step (\d+)` },
      model_save: { regex: 'saved (.+)' },
      loss: { regex: String.raw`loss (\S+)` },
    },
    metrics: { loss: { margin: 0.1, comparison: '<=' } },
    recording: { steps_to_record_after_save: 2 },
    flags: {
      gather: { checkpoint_output: { key: '--out', set_in_script: true } },
      run: {
        checkpoint_input: { key: '--from', set_in_script: true },
        start_step: { key: '--start', set_in_script: true },
        run_for: { key: '--until', set_in_script: true },
      },
    },
  }
}

const PROLOGUE = `
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeSync } from 'node:fs'
const arg = (name) => { const at = process.argv.indexOf('--' + name); return at < 0 ? undefined : process.argv[at + 1] }
const [out, from, start, until] = ['out', 'from', 'start', 'until'].map(arg)
const log = (text) => console.log(text)
const save = (step, name = 'model_' + step + '.bin') => {
  mkdirSync(out, { recursive: true })
  writeFileSync(out + '/' + name, '')
  log('saved ' + out + '/' + name)
}
void [from, start, until, sleep, writeSync]
`
