/**
 * A model on disk: its index, and the files that its weights lie in.
 *
 * External data is opened only inside the model's own folder, whatever the file says. Where the
 * model is a symbolic link, as in the cache of Hugging Face, the folder it leads to counts too.
 */
import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { ModelTestError } from '../errors.ts'
import { indexModel, type ModelIndex } from '../onnx/model-index.ts'
import { type FileSource, openFile } from './file-source.ts'

export interface ModelFile {
  readonly path: string
  /** The file name without `.onnx`. */
  readonly stem: string
  readonly model: ModelIndex
  /** The file that external data lies in. */
  external(location: string, tensorName: string): FileSource
  close(): void
}

export function openModel(path: string): ModelFile {
  const source = openFile(path)
  const opened = new Map<string, FileSource>()
  const close = (): void => {
    for (const file of [source, ...opened.values()]) file.close()
  }
  try {
    return {
      path,
      stem: basename(path).replace(/\.onnx$/i, ''),
      model: indexModel(source),
      external(location, tensorName) {
        const known = opened.get(location)
        if (known !== undefined) return known
        const file = openFile(externalPath(path, location, tensorName))
        opened.set(location, file)
        return file
      },
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

/** The path of an external data file, if it is in the model's folder or below. */
export function externalPath(modelPath: string, location: string, tensorName: string): string {
  const folder = dirname(resolve(modelPath))
  const path = resolve(folder, location)
  if (isAbsolute(location) || location.includes('\0') || !isInside(folder, path))
    throw outside(modelPath, location, tensorName)
  try {
    const target = realpathSync(path)
    const homes = [realpathSync(folder), dirname(realpathSync(modelPath))]
    if (!homes.some((home) => isInside(home, target))) throw outside(modelPath, location, tensorName)
  } catch (cause) {
    if (cause instanceof ModelTestError) throw cause
    throw new ModelTestError(
      'EXTERNAL_DATA_UNREADABLE',
      `the data of "${tensorName}" should be in "${location}", which cannot be read`,
      {
        file: modelPath,
        hint: `Put ${location} beside the model; models with external data consist of several files.`,
        cause,
      },
    )
  }
  return path
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

function outside(modelPath: string, location: string, tensorName: string): ModelTestError {
  return new ModelTestError(
    'EXTERNAL_DATA_OUTSIDE',
    `"${tensorName}" points to "${location}", outside ${dirname(modelPath)}`,
    {
      file: modelPath,
      hint: 'Move the data file next to the model, or export again with the data in one file.',
    },
  )
}
