/**
 * Filters that are paths in testdata -> the generated files of exactly those models.
 *
 * `vitest run testdata/onnx_models/example.onnx`, as a shell completes it, means that model, and a
 * folder all models in it. Vitest itself looks for the text of a filter anywhere in a path; what is
 * no path in testdata is left to it.
 */
import { statSync } from 'node:fs'
import { relative, resolve, sep } from 'node:path'
import type { TestProject } from 'vitest/node'
import type { ResolvedConfig } from '../suite/options.ts'
import { isTestFileBelow, isTestFileOf, slashed } from './generate-tests.ts'

export function acceptModelPaths(
  project: TestProject,
  config: ResolvedConfig,
  warn: (text: string) => void,
): void {
  const glob = project.globTestFiles.bind(project)
  project.globTestFiles = async (filters = []) => {
    const places = filters.map((filter) => placeOf(filter, config))
    if (places.every((place) => place === undefined)) return glob(filters)
    const others = filters.filter((_, at) => places[at]?.isThere !== true)
    const matched = others.length === 0 ? [] : (await glob(others)).testFiles
    const isMeant = (file: string): boolean => {
      const way = slashed(relative(config.output, file))
      return matched.includes(file) || places.some((place) => place?.holds(way))
    }
    const { testFiles, typecheckTestFiles } = await glob([])
    for (const [at, place] of places.entries()) {
      if (
        place !== undefined &&
        !testFiles.some((file) => place.holds(slashed(relative(config.output, file))))
      )
        warn(`no model has tests at ${filters[at]}; \`vitest list\` shows those that there are`)
    }
    return { testFiles: testFiles.filter(isMeant), typecheckTestFiles: typecheckTestFiles.filter(isMeant) }
  }
}

interface Place {
  /** If not, it may be the beginning of a path, or no path at all. */
  readonly isThere: boolean
  /** Whether it has the model of a generated file, relative to the output folder. */
  readonly holds: (file: string) => boolean
}

function placeOf(filter: string, { testdata, root }: ResolvedConfig): Place | undefined {
  const paths = [resolve(filter), resolve(root, filter)].filter((path) => isInside(path, testdata))
  const stats = paths.map((path) => statSync(path, { throwIfNoEntry: false }))
  const at = Math.max(
    stats.findIndex((stat) => stat !== undefined),
    0,
  )
  const [path, stat] = [paths[at], stats[at]]
  if (path === undefined) return undefined
  const id = slashed(relative(testdata, path))
  if (stat?.isDirectory())
    return { isThere: true, holds: (file) => id === '' || isTestFileBelow(`${id}/`, file) }
  if (stat !== undefined) return { isThere: true, holds: (file) => isTestFileOf(id, file) }
  return { isThere: false, holds: (file) => isTestFileBelow(id, file) }
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`)
}
