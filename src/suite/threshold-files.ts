/** Which threshold table holds for a model: the one that is set for all, else the nearest `thresholds.json`. */
import { dirname, relative } from 'node:path'
import { parseThresholds, type ThresholdTable } from '../compare/thresholds.ts'
import type { Tolerance } from '../compare/tolerance.ts'
import type { DiscoveredModel } from './discover.ts'
import { findUpwards } from './look-upwards.ts'
import type { ResolvedConfig } from './options.ts'
import { readJson } from './read-text.ts'

export const THRESHOLDS = 'thresholds.json'

export function thresholdFile(model: DiscoveredModel, config: ResolvedConfig): string | undefined {
  return config.thresholds ?? findUpwards(THRESHOLDS, dirname(model.path), config.testdata)[0]
}

/** What a rule leaves open comes from `base`. */
export function readThresholds(
  model: DiscoveredModel,
  config: ResolvedConfig,
  base?: Tolerance,
): ThresholdTable | undefined {
  const file = thresholdFile(model, config)
  if (file === undefined) return undefined
  return parseThresholds(readJson(file), relative(config.root, file), base)
}
