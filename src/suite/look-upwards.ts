/** Files that hold for a folder and all below it: found from a model's folder upwards, not beyond testdata. */
import { existsSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** The folders from `from` up to `top`, the nearest first; only `from` if it is not in `top`. */
export function foldersUpwards(from: string, top: string): string[] {
  const way = relative(top, from)
  if (way === '') return [top]
  if (way === '..' || way.startsWith(`..${sep}`)) return [from]
  return [from, ...foldersUpwards(dirname(from), top)]
}

/** The files or folders called `name`, the nearest first. */
export function findUpwards(name: string, from: string, top: string): string[] {
  return foldersUpwards(from, top)
    .map((folder) => join(folder, name))
    .filter((path) => existsSync(path))
}
