/**
 * Every `onnx()` of a run -> its configuration, the name of its project and a folder for its test files.
 *
 * Vitest calls the plugin for every project that has it, also for those that have it of the root
 * config: the same configuration counts once. Others run side by side, so that they may share
 * neither models, whose snapshots they would fight for, nor test files.
 */
import { relative, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { TestProject, Vitest } from 'vitest/node'
import { ModelTestError } from '../errors.ts'
import { type OnnxOptions, type ResolvedConfig, resolveConfig } from '../suite/options.ts'

export interface Instance {
  readonly config: ResolvedConfig
  /** Of the project of its models. */
  readonly name: string
  /** That of the config it stands in. */
  readonly vite: TestProject['vite']
  /** Whether no other was there before. */
  readonly isFirst: boolean
}

export const PLUGIN_NAME = 'vitest-onnx'

/** Undefined if the same is there already. */
export function instanceOf(
  vitest: Vitest,
  project: TestProject,
  options: OnnxOptions | undefined,
): Instance | undefined {
  const known = instancesOf(vitest)
  const home = isInherited(vitest, project, options) ? vitest : project
  const written = resolveConfig(options, home.config.root, process.env)
  const key = JSON.stringify(written)
  if (known.has(key)) return undefined
  const others = [...known.values()]
  for (const { config } of others) checkModelsApart(written, config)
  const config = options?.output === undefined ? withFreeOutput(written, others) : written
  for (const other of others) checkOutputsApart(config, other.config)
  const instance = {
    config,
    name: freeName(vitest, others),
    vite: home.vite,
    isFirst: others.length === 0,
  }
  known.set(key, instance)
  return instance
}

type Instances = Map<string, Instance>

/** A workspace may hold several copies of this package, and config files are loaded more than once. */
const INSTANCES = Symbol.for('vitest-onnx:instances')

function instancesOf(vitest: Vitest & { [INSTANCES]?: WeakMap<object, Instances> }): Instances {
  // Not by Vitest itself, which is the same after it started anew for a changed config file.
  const runs = (vitest[INSTANCES] ??= new WeakMap())
  const known = runs.get(vitest.config) ?? new Map<string, Instance>()
  runs.set(vitest.config, known)
  return known
}

/** With `extends: true` a project has the plugins of the root config, and the models are those of the root. */
function isInherited(vitest: Vitest, project: TestProject, options: OnnxOptions | undefined): boolean {
  const { configFile, plugins } = vitest.vite.config
  if (configFile === undefined || configFile !== project.vite.config.configFile) return false
  return plugins.some(
    ({ name, api }) =>
      name === PLUGIN_NAME &&
      isDeepStrictEqual((api as { options?: OnnxOptions } | undefined)?.options, options),
  )
}

/** `.vitest-onnx/tests`, or where that is taken `.vitest-onnx/tests-<testdata>`. */
function withFreeOutput(config: ResolvedConfig, others: readonly Instance[]): ResolvedConfig {
  if (others.every((other) => other.config.output !== config.output)) return config
  const folder = relative(config.root, config.testdata).replaceAll(/[^\p{L}\p{N}._]+/gu, '-')
  return { ...config, output: `${config.output}-${folder}` }
}

/** `onnx`, `onnx-2`, … */
function freeName({ projects }: Vitest, others: readonly Instance[]): string {
  const taken = new Set([...projects, ...others].map(({ name }) => name))
  let name = 'onnx'
  for (let count = 2; taken.has(name); count++) name = `onnx-${count}`
  return name
}

function checkModelsApart({ testdata, root }: ResolvedConfig, other: ResolvedConfig): void {
  if (!overlap(testdata, other.testdata)) return
  throw new ModelTestError(
    'INVALID_OPTION',
    testdata === other.testdata
      ? `two plugins onnx() with different settings have one testdata folder, ${testdata}` +
          (root === other.root ? '' : `, one in ${other.root}, one in ${root}`)
      : `the testdata folders of two plugins onnx() lie in each other: ${other.testdata} and ${testdata}`,
    {
      hint:
        'Give each plugin a folder of its own: onnx({ testdata: "models-a" }), onnx({ testdata: "models-b" }); ' +
        'or write one plugin, onnx({ targets: ["sim", "cpu"] }), and a sidecar <model>.test.yaml where a model needs other settings.',
    },
  )
}

function checkOutputsApart({ output, testdata }: ResolvedConfig, other: ResolvedConfig): void {
  if (!overlap(output, other.output)) return
  throw new ModelTestError(
    'INVALID_OPTION',
    `the test files of two plugins onnx(), with testdata ${other.testdata} and ${testdata}, ` +
      `would be written to ${output === other.output ? `one folder, ${output}` : `folders in each other: ${other.output} and ${output}`}`,
    {
      hint: 'Leave out the option output, or give each a folder of its own: onnx({ output: ".vitest-onnx/tests-b" }).',
    },
  )
}

function overlap(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}${sep}`) || b.startsWith(`${a}${sep}`)
}
