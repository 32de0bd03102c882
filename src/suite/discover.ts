/**
 * A testdata folder -> its models, sorted by path.
 *
 * Every `.onnx` file is a model. Names that start with `disable` or a dot, and node_modules, are
 * passed over. Symbolic links are followed, into each folder once, so that links in a circle end.
 * No two models have one name: see model-names.ts.
 */
import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import glob from 'fast-glob'
import { ModelTestError } from '../errors.ts'
import { modelNames } from './model-names.ts'

export interface DiscoveredModel {
  /** Absolute. */
  readonly path: string
  /** Relative to testdata, with forward slashes: `onnx_models/example-matmul.onnx`. */
  readonly id: string
  /** What the names of its tests start with; no other model of the folder has it. */
  readonly name: string
  /** Absolute folders, in order of their numbers. */
  readonly dataSets: readonly string[]
  /** `<stem>.test.yaml` beside the model. */
  readonly sidecar?: string
}

const PASSED_OVER = ['**/disable*', '**/node_modules', '**/__snapshots__']

/** The extension of a sidecar, after the stem of its model. */
export const SIDECAR = '.test.yaml'

/** No models where there is no folder. */
export function discoverModels(testdata: string): DiscoveredModel[] {
  if (!checkFolder(testdata)) return []
  const tree: Tree = { files: [], folders: [] }
  walk(testdata, '', [], tree)
  return modelsOf(testdata, tree)
}

interface Tree {
  /** Relative, with forward slashes. */
  readonly files: string[]
  readonly folders: string[]
}

function checkFolder(testdata: string): boolean {
  const stat = statSync(testdata, { throwIfNoEntry: false })
  if (stat === undefined) return false
  if (stat.isDirectory()) return true
  throw new ModelTestError('INVALID_OPTION', `testdata ${testdata} is a file, not a folder`, {
    hint: 'Name the folder that holds the models: onnx({ testdata: "testdata" }).',
  })
}

/** `walked`: real folders that are gone through already, with all that is in them. */
function walk(folder: string, prefix: string, walked: string[], tree: Tree): void {
  const real = realpathSync(folder)
  if (walked.some((other) => real === other || real.startsWith(`${other}${sep}`))) return
  walked.push(real)
  // Not `**`, which leaves out names with line breaks.
  const entries = glob.sync('**/*', {
    cwd: folder,
    ignore: [...PASSED_OVER, ...PASSED_OVER.map((pattern) => `${pattern}/**`)],
    onlyFiles: false,
    followSymbolicLinks: false,
    objectMode: true,
    suppressErrors: true,
  })
  for (const { path, dirent } of entries) {
    const kind = kindOf(dirent, join(folder, path))
    if (kind === 'file') tree.files.push(prefix + path)
    if (kind !== 'folder') continue
    tree.folders.push(prefix + path)
    if (dirent.isSymbolicLink()) walk(join(folder, path), `${prefix}${path}/`, walked, tree)
  }
}

type Kind = 'file' | 'folder' | 'other'

function kindOf(entry: glob.Entry['dirent'], path: string): Kind {
  if (entry.isSymbolicLink()) return linkedKind(path)
  if (entry.isDirectory()) return 'folder'
  return entry.isFile() ? 'file' : 'other'
}

/** A link that leads nowhere counts as a file: a model that cannot be read is to be seen. */
function linkedKind(path: string): Kind {
  try {
    const stat = statSync(path)
    if (stat.isDirectory()) return 'folder'
    return stat.isFile() ? 'file' : 'other'
  } catch {
    return 'file'
  }
}

function modelsOf(testdata: string, { files, folders }: Tree): DiscoveredModel[] {
  const known = new Set(files)
  const dataSets = dataSetsByParent(folders)
  const ids = files.filter((file) => file.toLowerCase().endsWith('.onnx')).toSorted()
  const perFolder = new Map<string, number>()
  for (const id of ids) perFolder.set(dirname(id), (perFolder.get(dirname(id)) ?? 0) + 1)
  const names = modelNames(ids, basename(testdata), (folder) => dataSets.has(folder))
  return ids.map((id) => {
    const folder = dirname(id)
    const ownsSets = basename(id) === 'model.onnx' || perFolder.get(folder) === 1
    const model = {
      path: join(testdata, id),
      id,
      name: names.get(id)!,
      dataSets: ownsSets ? (dataSets.get(folder) ?? []).map((set) => join(testdata, set)) : [],
    }
    const sidecar = id.replace(/\.onnx$/i, SIDECAR)
    return known.has(sidecar) ? withSidecar(model, join(testdata, sidecar)) : model
  })
}

function withSidecar(model: DiscoveredModel, sidecar: string): DiscoveredModel {
  return { ...model, sidecar }
}

const DATA_SET = /^test_data_set_(\d+)$/

function dataSetsByParent(folders: readonly string[]): Map<string, string[]> {
  const sets = folders.filter((folder) => DATA_SET.test(basename(folder)))
  const byParent = new Map<string, string[]>()
  for (const set of sets) byParent.set(dirname(set), [...(byParent.get(dirname(set)) ?? []), set])
  for (const siblings of byParent.values()) siblings.sort((a, b) => dataSetNumber(a) - dataSetNumber(b))
  return byParent
}

export function dataSetNumber(folder: string): number {
  return Number(DATA_SET.exec(basename(folder))?.[1] ?? Number.NaN)
}
