/**
 * Where the manifest and the checkpoints of a test lie under the storage folder.
 *
 * Edge. A manifest is replaced in one step: whoever reads it, or finds it after a crash, sees a
 * whole one.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ModelTestError } from '../errors.ts'
import { makeFolder } from '../files/make-folder.ts'
import { writeFileAtomic } from '../files/write-file.ts'
import { parseManifest, renderManifest, type Manifest } from './manifest.ts'

export const DEFAULT_MANIFEST_NAME = 'convergence_harness_manifest.json'

export interface TestStorage {
  readonly folder: string
  readonly manifestFile: string
  /** Where the application is told to write. */
  readonly checkpointFolder: string
}

export function storageOf(test: string, folder: string, manifestName: string): TestStorage {
  const root = path.resolve(folder)
  return {
    folder: root,
    manifestFile: path.join(root, `${test}_${manifestName}`),
    checkpointFolder: path.join(root, 'ckpts', test),
  }
}

/** Undefined where nothing was gathered yet. */
export function readManifest({ manifestFile }: TestStorage): Manifest | undefined {
  if (!existsSync(manifestFile)) return undefined
  try {
    return parseManifest(readFileSync(manifestFile, 'utf8'), manifestFile)
  } catch (error) {
    if (error instanceof ModelTestError) throw error
    throw new ModelTestError('FILE_UNREADABLE', 'the manifest cannot be read', {
      file: manifestFile,
      hint: 'Check that it is a file and its permissions.',
      cause: error,
    })
  }
}

export function writeManifest({ manifestFile }: TestStorage, manifest: Manifest): void {
  writeFileAtomic(manifestFile, renderManifest(manifest))
}

export function prepareStorage({ checkpointFolder }: TestStorage): void {
  try {
    makeFolder(checkpointFolder)
  } catch (error) {
    throw new ModelTestError('FILE_UNWRITABLE', 'the folder for the checkpoints cannot be made', {
      file: checkpointFolder,
      hint: 'Check the permissions of the storage folder and the space on the disk.',
      cause: error,
    })
  }
}

/** A logged path -> the path that the manifest keeps: relative to it, with forward slashes. */
export function manifestPath({ folder }: TestStorage, directory: string, logged: string): string {
  return path.relative(folder, path.resolve(directory, logged)).split(path.sep).join('/')
}

/**
 * The file of a checkpoint. Older harnesses wrote paths relative to `ckpts/`: those are found too.
 * Undefined where there is none.
 */
export function findCheckpoint({ folder }: TestStorage, checkpoint: string): string | undefined {
  const places = [path.resolve(folder, checkpoint), path.resolve(folder, 'ckpts', checkpoint)]
  return places.find((place) => checkpointExists(place))
}

/** Some frameworks name a checkpoint by the common beginning of its files: model.ckpt-100.index. */
function checkpointExists(place: string): boolean {
  if (existsSync(place)) return true
  const [folder, name] = [path.dirname(place), path.basename(place)]
  return existsSync(folder) && readdirSync(folder).some((file) => file.startsWith(`${name}.`))
}
