/**
 * Watch mode: files in testdata change -> test files are written anew, and what depends on them runs again.
 *
 * Vitest's own watcher tells of changes and is told of ours, as if it had seen them: the folder of
 * the generated files is not watched, so that nothing runs twice.
 */
import { basename, dirname, relative, sep } from 'node:path'
import type { TestProject, Vitest } from 'vitest/node'
import { CHIPS } from '../suite/chip-files.ts'
import type { DiscoveredModel } from '../suite/discover.ts'
import type { ResolvedConfig } from '../suite/options.ts'
import { sidecarFiles, weightFiles } from '../suite/referenced-files.ts'
import { THRESHOLDS } from '../suite/threshold-files.ts'
import { XFAILS } from '../suite/xfails.ts'
import { type Generated, generateTests } from './generate-tests.ts'

export interface WatchContext {
  readonly vitest: Vitest
  readonly project: TestProject
  readonly config: ResolvedConfig
  readonly generated: Generated
}

/** Long enough for a program to finish writing several files. */
const QUIET_MS = 150

export function watchModels({ vitest, project, config, generated }: WatchContext): void {
  const { watcher } = vitest.vite
  let [last, changes, others] = [generated, new Set<string>(), filesElsewhere(generated, config)]
  watcher.unwatch(config.output)
  watcher.add([config.testdata, ...others])
  let timer: NodeJS.Timeout | undefined
  const update = (): void => {
    const paths = changes
    changes = new Set()
    try {
      const before = last
      last = generateTests(config)
      others = filesElsewhere(last, config)
      watcher.add([...others])
      declareTags(vitest, project, last.tags)
      announce(watcher, before, last, paths, config)
    } catch (error) {
      vitest.logger.error(`vitest-onnx: ${(error as Error).message}`)
    }
  }
  watcher.on('all', (_, path) => {
    if (!others.has(path) && !isInside(path, config.testdata)) return
    if (isInside(path, config.output) || path.includes(`${sep}__snapshots__${sep}`)) return
    changes.add(path)
    clearTimeout(timer)
    timer = setTimeout(update, QUIET_MS)
  })
}

/** Whether a change of the file at `path` may change the results of a model. */
export function dependsOn(model: DiscoveredModel, path: string, config: ResolvedConfig): boolean {
  if (path === model.path || path === model.sidecar) return true
  if (path === config.thresholds || config.targets.some(({ module }) => module === path)) return true
  const [folder, home] = [dirname(path), dirname(model.path)]
  if (basename(path) === THRESHOLDS || basename(path) === XFAILS) return isInside(home, folder)
  if (basename(folder) === CHIPS) return isInside(home, dirname(folder))
  if (model.dataSets.some((set) => isInside(path, set)) || sidecarFiles(model).includes(path)) return true
  // The last: it opens the model. Weights are never outside of the model's folder.
  return isInside(path, home) && !path.endsWith('.onnx') && weightFiles(model).includes(path)
}

/** Files that count and need not be in testdata. */
function filesElsewhere({ models }: Generated, { thresholds, targets }: ResolvedConfig): Set<string> {
  const modules = targets.map(({ module }) => module)
  const inputs = models.flatMap(({ model }) => sidecarFiles(model))
  return new Set([thresholds, ...modules, ...inputs].filter((path) => path !== undefined))
}

type Watcher = Vitest['vite']['watcher']

function announce(
  watcher: Watcher,
  before: Generated,
  { models, added, changed, removed }: Generated,
  paths: ReadonlySet<string>,
  config: ResolvedConfig,
): void {
  for (const file of removed) watcher.emit('unlink', file)
  for (const file of added) watcher.emit('add', file)
  const known = new Set(before.models.flatMap(({ files }) => files))
  const again = models
    .filter(({ model }) => [...paths].some((path) => dependsOn(model, path, config)))
    .flatMap(({ files }) => files)
    .filter((file) => known.has(file))
  for (const file of new Set([...changed, ...again])) watcher.emit('change', file)
}

/** New models may have operators that no other has. */
function declareTags({ projects }: Vitest, own: TestProject, tags: readonly string[]): void {
  for (const { config } of new Set([...projects, own])) {
    const known = new Set(config.tags.map(({ name }) => name))
    config.tags.push(...tags.filter((name) => !known.has(name)).map((name) => ({ name })))
  }
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`)
}
