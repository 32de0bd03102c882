/**
 * `onnx(options?)`: the Vitest plugin.
 *
 * Before Vitest looks for tests it writes the test files of the models, and adds a project for them
 * alone, so that the user's other tests keep their settings. In watch mode it keeps them up to date.
 * Several in one run, as in the packages of a workspace, add a project each: see instances.ts.
 */
import { availableParallelism } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import type { Plugin } from 'vitest/config'
import type { TestProject, Vitest, VitestPluginContext } from 'vitest/node'
import { ModelTestError } from '../errors.ts'
import { makeFolder } from '../files/make-folder.ts'
import { environmentWarnings } from '../suite/environment.ts'
import type { OnnxOptions, ResolvedConfig } from '../suite/options.ts'
import { CONFIG_KEY, PROCESSES_KEY } from './config-key.ts'
import { type Generated, generateTests, untested } from './generate-tests.ts'
import { type Instance, instanceOf, PLUGIN_NAME } from './instances.ts'
import { acceptModelPaths } from './path-filters.ts'
import { TimesReporter } from './times-reporter.ts'
import { watchModels } from './watch.ts'

export function onnx(options?: OnnxOptions): Plugin {
  return {
    name: PLUGIN_NAME,
    // For other plugins onnx() of the same run.
    api: { options },
    configureVitest: (context) => legibly(() => addModels(context, options)),
  }
}

async function addModels(
  { vitest, project: owner, injectTestProjects }: VitestPluginContext,
  options?: OnnxOptions,
): Promise<void> {
  const instance = instanceOf(vitest, owner, options)
  if (instance === undefined) return
  const { config, isFirst } = instance
  const generated = generateTests(config)
  makeFolder(config.output)
  for (const line of remarks(instance, generated, vitest)) vitest.logger.warn(line)
  for (const project of vitest.projects) if (!isOfModels(project)) leaveOut(project, config)
  snapshotsBesideModels(vitest, config)
  if (isFirst) vitest.config.reporters.push(new TimesReporter() as never)
  const [project] = await injectTestProjects([projectOf(vitest, instance, generated)])
  if (project === undefined) return
  acceptModelPaths(project, config, (text) => vitest.logger.warn(`vitest-onnx: ${text}`))
  if (vitest.config.watch) watchModels({ vitest, project, config, generated })
}

function remarks({ config, isFirst }: Instance, generated: Generated, vitest: Vitest): string[] {
  const general = isFirst ? environmentWarnings(process.env) : []
  const warnings = [...general, untested(generated)].filter((text) => text !== undefined)
  if (generated.models.length === 0 && !vitest.config.mergeReports) {
    warnings.push(
      `no models found: there is no .onnx file in ${relative(vitest.config.root, config.testdata) || config.testdata} ` +
        '(the option testdata names the folder; names that start with "disable" are left out)',
    )
  }
  return warnings.map((text) => `vitest-onnx: ${text}`)
}

type InjectedProject = Parameters<VitestPluginContext['injectTestProjects']>[0]
type ProjectOptions = Exclude<InjectedProject, readonly unknown[]>

function projectOf(vitest: Vitest, { config, name, vite }: Instance, { tags }: Generated): ProjectOptions {
  return {
    root: config.root,
    // The aliases of the project hold for its targets too.
    resolve: { alias: vite.config.resolve.alias },
    test: {
      name,
      dir: config.output,
      include: ['**/*.test.ts'],
      exclude: [],
      isolate: false,
      pool: 'forks',
      testTimeout: testTimeout(config),
      hookTimeout: testTimeout(config),
      tags: tags.map((tag) => ({ name: tag })),
      provide: { [CONFIG_KEY]: config, [PROCESSES_KEY]: processesPerWorker(vitest) },
      sequence: { groupOrder: groupOrder(vitest) },
    },
  }
}

/**
 * Vitest leaves a core to itself, which on small machines is half of them, and waits most of the time.
 * So a worker may keep as many processes busy as there are cores for each worker.
 */
function processesPerWorker({ config: { maxWorkers } }: Vitest): number {
  const cores = availableParallelism()
  return Math.max(1, Math.floor(cores / Math.max(1, maxWorkers || cores - 1)))
}

/** Steps have limits of their own, which name what took too long; this is the net below them. */
function testTimeout({ timeouts: { compile, run } }: ResolvedConfig): number {
  return 2 * (compile + run) * 1000
}

/** Projects that run side by side must agree on the number of workers (Vitest refuses to start otherwise). */
function groupOrder({ projects, config }: Vitest): number {
  const isAlike = projects.every(
    (project) => (project.config.maxWorkers ?? config.maxWorkers) === config.maxWorkers,
  )
  const orders = projects.map((project) => project.config.sequence?.groupOrder ?? 0)
  return isAlike ? 0 : Math.max(0, ...orders) + 1
}

function isOfModels({ config: { provide = {} } }: TestProject): boolean {
  return CONFIG_KEY in provide
}

/** The usual patterns of other projects match generated files too, also those that an earlier config left. */
function leaveOut({ config: { root, exclude } }: TestProject, { output }: ResolvedConfig): void {
  if (!exclude.includes(LEFT_OVER)) exclude.push(LEFT_OVER)
  const way = relative(root, output)
  if (way === '' || isAbsolute(way)) return
  exclude.push(`${way.split(sep).join('/')}/**`)
}

const LEFT_OVER = '**/.vitest-onnx/**'

/** `testdata/onnx_models/__snapshots__/example-matmul.onnx.snap`; other tests keep their place. */
function snapshotsBesideModels({ snapshot }: Vitest, { output, testdata }: ResolvedConfig): void {
  const before = snapshot.options.resolveSnapshotPath
  snapshot.options.resolveSnapshotPath = (testPath, extension, context) => {
    const way = relative(output, testPath)
    if (way.startsWith('..') || isAbsolute(way)) {
      return (
        before?.(testPath, extension, context) ??
        join(dirname(testPath), '__snapshots__', `${basename(testPath)}${extension}`)
      )
    }
    // Of several files the last has the tests of the whole model, so it goes by the model's name.
    const name = basename(way).replace(/(\.(\d+)-of-\2)?\.test\.ts$/, '')
    return join(testdata, dirname(way), '__snapshots__', `${name}${extension}`)
  }
}

/** Vitest shows a message and no hint. */
async function legibly(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ModelTestError)) throw error
    // Vitest prints a stack and every cause; neither tells the reader more than these two lines.
    const legible = new Error(`${error.message}\n${error.hint}`)
    legible.stack = `vitest-onnx: ${legible.message}`
    throw legible
  }
}
