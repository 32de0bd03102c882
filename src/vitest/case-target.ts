/** The target and the chip of a case; or the case is skipped, since this run or this machine has none. */
import type { TestContext } from 'vitest'
import { ModelTestError } from '../errors.ts'
import type { Case } from '../suite/cases.ts'
import { readChip } from '../suite/chip-files.ts'
import { chipSettings, hasChip } from '../suite/chip-targets.ts'
import type { DiscoveredModel } from '../suite/discover.ts'
import type { ResolvedConfig, ResolvedTarget } from '../suite/options.ts'
import { findTarget } from '../targets/registry.ts'
import type { Chip, Target } from '../targets/target.ts'
import type { OpenModel } from './open-model.ts'

export interface ChosenTarget {
  readonly target: Target
  readonly chip: Chip
}

export async function targetOf(model: OpenModel, one: Case, context: TestContext): Promise<ChosenTarget> {
  const choice = await choiceOf(model, one)
  if ('skip' in choice) context.skip(choice.skip)
  return choice as ChosenTarget
}

type Choice = ChosenTarget | { readonly skip: string }

const choices = new WeakMap<OpenModel, Map<string, Promise<Choice>>>()

/** The same for all tests of a model on that target and chip. */
function choiceOf(model: OpenModel, one: Case): Promise<Choice> {
  const known = choices.get(model) ?? new Map<string, Promise<Choice>>()
  choices.set(model, known)
  const key = JSON.stringify([one.target, one.chip])
  const choice = known.get(key) ?? choose(model, one)
  known.set(key, choice)
  return choice
}

async function choose({ config, discovered }: OpenModel, one: Case): Promise<Choice> {
  const entry = config.targets.find(({ name }) => name === one.target)
  const target = await findTarget(one.target, entry?.module)
  if (await isForOthers(one, discovered, config))
    return { skip: `the target ${one.target} has no chip "${one.chip}"; other targets of the run have it` }
  const why = await target.unavailable?.()
  if (why === undefined) return { target, chip: chipOf(target, one, discovered, config) }
  if (entry?.isNamed !== true) return { skip: why }
  throw new ModelTestError('RUNTIME_MISSING', `the target ${one.target} is not available: ${why}`, {
    hint: 'Leave it out of ONNX_TEST_TARGETS, or install what it needs.',
  })
}

/** A chip that only some targets have is tested there; one that none has is an error. */
async function isForOthers(
  { target, chip }: Case,
  discovered: DiscoveredModel,
  config: ResolvedConfig,
): Promise<boolean> {
  const { targets } = config
  if (targets.length === 1) return false
  const settings = chipSettings(chip, discovered, config)
  const has = async ({ name, module }: ResolvedTarget): Promise<boolean> =>
    hasChip(await findTarget(name, module), chip, settings, { isOwn: module !== undefined })
  const takers = await Promise.all(targets.map((entry) => has(entry).catch(() => false)))
  return takers.includes(true) && !takers[targets.findIndex(({ name }) => name === target)]
}

/** A file of that name goes before a chip that the target brings. */
function chipOf(
  target: Target,
  { chip: name }: Case,
  discovered: DiscoveredModel,
  config: ResolvedConfig,
): Chip {
  const file = readChip(name, discovered, config)
  if (typeof file === 'object' && file !== null) return { ...file, name }
  const known = target.chips?.find((chip) => chip.name === name)
  if (known !== undefined) return known
  if (name === 'default') return { name }
  const names = target.chips?.map((chip) => chip.name) ?? []
  throw new ModelTestError('INVALID_OPTION', `the target ${target.name} has no chip "${name}"`, {
    hint: `It has ${names.join(', ') || 'none'}; a file chips/${name}.json in the testdata folder adds one.`,
  })
}
