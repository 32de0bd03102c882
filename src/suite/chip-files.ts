/**
 * Chips: the names that a run asks for, and the files that describe them.
 *
 * A chip is a JSON file in a folder `chips` beside the model or above it; `default` and the chips
 * that a target brings along need none. What is in the file is the target's business.
 */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ModelTestError } from '../errors.ts'
import type { DiscoveredModel } from './discover.ts'
import { findUpwards } from './look-upwards.ts'
import type { ResolvedConfig } from './options.ts'
import { readJson, readText } from './read-text.ts'

export const DEFAULT_CHIP = 'default'

export const CHIPS = 'chips'

const GROUP = '.group'

/** The chips to test a model on: lists of `.group` files and `all` taken apart, each name once. */
export function chipNames(model: DiscoveredModel, config: ResolvedConfig): string[] {
  return [...new Set(config.chips.flatMap((written) => expand(written, model, config)))]
}

export function chipFile(name: string, model: DiscoveredModel, config: ResolvedConfig): string | undefined {
  return chipFolders(model, config)
    .map((folder) => join(folder, `${name}.json`))
    .find((path) => existsSync(path))
}

/** The content of the chip's file; undefined if it has none. */
export function readChip(name: string, model: DiscoveredModel, config: ResolvedConfig): unknown {
  const file = chipFile(name, model, config)
  return file === undefined ? undefined : readJson(file)
}

function expand(written: string, model: DiscoveredModel, config: ResolvedConfig): string[] {
  if (written === 'all') return [DEFAULT_CHIP, ...chipsInFiles(model, config)]
  if (!written.endsWith(GROUP)) return [checkName(written, 'chips')]
  const file = groupFile(written, model, config)
  const names = readText(file)
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '')
  if (names.length > 0) return names.map((name) => checkName(name, file))
  throw new ModelTestError('INVALID_OPTION', 'the group names no chip', {
    file,
    hint: 'Write one name of a chip a line.',
  })
}

function chipsInFiles(model: DiscoveredModel, config: ResolvedConfig): string[] {
  const names = chipFolders(model, config).flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.json') && !file.startsWith('disable') && !file.startsWith('.'))
      .map((file) => file.slice(0, -'.json'.length)),
  )
  return names.toSorted().map((name) => checkName(name, 'chips'))
}

function chipFolders(model: DiscoveredModel, config: ResolvedConfig): string[] {
  return findUpwards(CHIPS, dirname(model.path), config.testdata)
}

/** As written from the root, else from a folder of chips. */
function groupFile(written: string, model: DiscoveredModel, config: ResolvedConfig): string {
  const places = [config.root, ...chipFolders(model, config)].map((folder) => resolve(folder, written))
  const found = places.find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new ModelTestError('INVALID_OPTION', `there is no group file "${written}"`, {
    hint: `Looked for ${places.join(', ')}.`,
  })
}

/** Names of chips stand at the end of test names. */
function checkName(name: string, where: string): string {
  if (/^[\w.+-]+$/.test(name)) return name
  throw new ModelTestError('INVALID_OPTION', `${where}: "${name}" is no name of a chip`, {
    hint: 'A name has letters, digits and any of . _ + -; several have commas between.',
  })
}
