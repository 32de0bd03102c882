/**
 * (targets, chips) -> which of them are tested together.
 *
 * A chip is tested on the targets that have it. A file that sets `storage` describes a chip of `sim`,
 * one with settings of onnxruntime a chip of `cpu` and the providers; any other file is for all. A
 * chip that none of the targets has goes to all of them, and each says so. What other targets bring
 * along is known only once they are loaded: see `hasChip`.
 */
import { simTarget } from '../targets/sim-target.ts'
import { cpuTarget } from '../targets/ort-target.ts'
import type { Target } from '../targets/target.ts'
import { wasmTarget } from '../targets/wasm-target.ts'
import { chipNames, DEFAULT_CHIP, readChip } from './chip-files.ts'
import type { DiscoveredModel } from './discover.ts'
import type { ResolvedConfig, ResolvedTarget } from './options.ts'

export interface Variant {
  readonly target: string
  readonly chip: string
}

/** Target by target, as far as it can be told without loading them. */
export function variantsOf(model: DiscoveredModel, config: ResolvedConfig): Variant[] {
  const takers = new Map(
    chipNames(model, config).map((chip) => [chip, targetsOfChip(chip, model, config)] as const),
  )
  return config.targets.flatMap((target) =>
    [...takers]
      .filter(([, targets]) => targets.includes(target))
      .map(([chip]) => ({ target: target.name, chip })),
  )
}

function targetsOfChip(
  chip: string,
  model: DiscoveredModel,
  config: ResolvedConfig,
): readonly ResolvedTarget[] {
  if (config.targets.length === 1) return config.targets
  const file = chipSettings(chip, model, config)
  const takers = config.targets.filter((target) => {
    const known = target.module === undefined ? AT_HAND.get(target.name) : undefined
    return known === undefined || hasChip(known, chip, file)
  })
  return takers.length === 0 ? config.targets : takers
}

const AT_HAND: ReadonlyMap<string, Target> = new Map(
  [simTarget, cpuTarget, wasmTarget].map((target) => [target.name, target]),
)

/**
 * Whether a target has a chip. `file` is what the chip's file says, undefined where it has none;
 * what a file means to a target of the user's own, only that target knows.
 */
export function hasChip(
  target: Target,
  chip: string,
  file: object | undefined,
  { isOwn = false }: { readonly isOwn?: boolean } = {},
): boolean {
  if (file !== undefined) return isOwn || takesFile(target.name, file)
  return chip === DEFAULT_CHIP || target.chips?.some(({ name }) => name === chip) === true
}

const OF_ORT = ['optimisation', 'threads', 'session', 'cpuFallback']

function takesFile(target: string, file: object): boolean {
  const isOfSim = 'storage' in file
  const isOfOrt = OF_ORT.some((field) => field in file)
  if (target === 'sim') return isOfSim || !isOfOrt
  if (target === 'wasm') return !isOfSim && !isOfOrt
  return !isOfSim
}

/** What the file of a chip says. One that cannot be read is the error of the tests that need it. */
export function chipSettings(
  chip: string,
  model: DiscoveredModel,
  config: ResolvedConfig,
): object | undefined {
  try {
    const file = readChip(chip, model, config)
    return typeof file === 'object' && file !== null ? file : undefined
  } catch {
    return {}
  }
}
