/**
 * (the test that an expectation is of, the model) -> whether it is a test of another run.
 *
 * A run with other targets, chips or sizes has tests that this one has not: what the environment
 * says once is not said for good. No run has a test of a model that is not tested as a whole any
 * more, of a dimension that it lacks, or of a chip that the target is known to lack.
 */
import type { Case } from '../suite/cases.ts'
import { chipFile, DEFAULT_CHIP } from '../suite/chip-files.ts'
import type { DiscoveredModel } from '../suite/discover.ts'
import type { ResolvedConfig } from '../suite/options.ts'
import { shapeCases } from '../suite/shape-cases.ts'
import { findTarget } from '../targets/registry.ts'

export interface TestedModel {
  readonly config: ResolvedConfig
  readonly discovered: DiscoveredModel
  /** Of this run. */
  readonly cases: readonly Case[]
  /** Its dynamic dimensions; asked for only where a test names sizes. */
  readonly symbols: () => readonly string[]
}

export async function isOfOtherRun(test: string, model: TestedModel): Promise<boolean> {
  const whole = `${model.discovered.name}_full_model`
  const [, sizes, target, chip] = VARIANT.exec(test.slice(whole.length)) ?? []
  if (!test.startsWith(whole) || target === undefined || chip === undefined) return false
  if (model.cases.some(({ name }) => name === test)) return false
  return isTestedWhole(model) && hasDimensions(model, sizes) && (await mayHaveChip(model, target, chip))
}

/** `@batch=4,seq=16-sim-default`; of these only chips have a `-` in their names. */
const VARIANT = /^(?:@([^-]*))?-([^-]+)-(.+)$/

function isTestedWhole({ cases, config, discovered }: TestedModel): boolean {
  const isLeftOut = config.fromEnvironment.includes('fullModel') && discovered.dataSets.length === 0
  return isLeftOut || cases.some(({ kind }) => kind === 'full')
}

function hasDimensions({ symbols }: TestedModel, sizes: string | undefined): boolean {
  if (sizes === undefined) return true
  const forced = Object.fromEntries(symbols().map((symbol) => [symbol, [1]]))
  const [all] = shapeCases(Object.keys(forced), { config: { forced, general: {} } })
  const known = dimensionsIn(all?.label.slice(1) ?? '')
  return dimensionsIn(sizes).every((name) => known.includes(name))
}

function dimensionsIn(sizes: string): string[] {
  return sizes.split(',').map((size) => size.replace(/=.*/, ''))
}

async function mayHaveChip(
  { config, discovered }: TestedModel,
  name: string,
  chip: string,
): Promise<boolean> {
  if (chip === DEFAULT_CHIP || chipFile(chip, discovered, config) !== undefined) return true
  try {
    const target = await findTarget(name, config.targets.find((entry) => entry.name === name)?.module)
    return target.chips?.some((known) => known.name === chip) === true
  } catch {
    return true // a target of the user's that this run does not know
  }
}
