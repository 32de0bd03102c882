/** A folder and those above it, unless they are there. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** Not `recursive`: Node tries for ever where a file system has no such folders, as in /proc. */
export function makeFolder(path: string): void {
  make(path, false)
}

function make(path: string, hasParent: boolean): void {
  try {
    mkdirSync(path)
  } catch (error) {
    if (existsSync(path)) return
    const isTop = hasParent || dirname(path) === path
    if (isTop || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    make(dirname(path), false)
    make(path, true)
  }
}
