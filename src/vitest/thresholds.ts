/**
 * The tolerance of a case and who set it.
 *
 * Precedence: the environment's tolerance, its threshold table, the sidecar's rules, the threshold
 * table, the option, the default.
 * Recorded data sets are judged as ONNX judges them unless somebody says otherwise; those of models
 * with bfloat16 with what its rounding takes.
 */
import { DEFAULT_TOLERANCE, NAMED_TOLERANCES, type Tolerance } from '../compare/tolerance.ts'
import {
  type ResolvedThreshold,
  resolveThreshold,
  type ThresholdCase,
  type ThresholdTable,
} from '../compare/thresholds.ts'
import type { ModelSource } from '../fixtures/model-source.ts'
import type { Case } from '../suite/cases.ts'
import { sidecarThresholds } from '../suite/sidecar.ts'
import { readThresholds } from '../suite/threshold-files.ts'
import { carriesBfloat16 } from '../targets/upcast/carries-bfloat16.ts'
import type { Tensor } from '../tensor/tensor.ts'

export interface CaseTolerances {
  readonly of: (name: string, expected: Tensor) => Tolerance
  readonly resolve: (expected: Tensor) => ResolvedThreshold
}

/** Throws where a table or a rule cannot be used, though nothing may ever be judged by it. */
export function checkThresholds({ config, discovered, sidecar }: ModelSource): void {
  if (config.fromEnvironment.includes('tolerance')) return
  sidecarThresholds(discovered, sidecar, config.root)
  readThresholds(discovered, config)
}

const ONNX_DATA_SETS: Tolerance = { ...DEFAULT_TOLERANCE, rtol: 1e-3, atol: 1e-7, intTol: 0 }

/** What is recorded was rounded to bfloat16 at every step; the model runs up-cast, without that. */
function isRounded({ file, types }: ModelSource, { kind }: Case): boolean {
  return kind === 'data-set' && carriesBfloat16(file.model, types)
}

function defaultTolerance(source: ModelSource, one: Case): Tolerance {
  if (isRounded(source, one)) return NAMED_TOLERANCES.bf16
  return one.kind === 'data-set' ? ONNX_DATA_SETS : DEFAULT_TOLERANCE
}

export function thresholdsOf(source: ModelSource, one: Case): CaseTolerances {
  const { config } = source
  const base = config.tolerance ?? defaultTolerance(source, one)
  const fallback = { tolerance: base, origin: config.toleranceOrigin ?? defaultOrigin(source, one) }
  const tables = tablesOf(source, base)
  const resolve = (expected: Tensor): ResolvedThreshold => {
    const about = describe(source, one, expected)
    for (const table of tables) {
      const found = table === undefined ? undefined : resolveThreshold(table, about, UNDECIDED)
      if (found !== undefined && found.origin !== UNDECIDED.origin) return found
    }
    return fallback
  }
  return { resolve, of: (_, expected) => resolve(expected).tolerance }
}

/** The first that decides counts. */
function tablesOf(
  { config, discovered, sidecar }: ModelSource,
  base: Tolerance,
): readonly (ThresholdTable | undefined)[] {
  if (config.fromEnvironment.includes('tolerance')) return []
  const own = sidecarThresholds(discovered, sidecar, config.root, base)
  const table = readThresholds(discovered, config, base)
  return config.fromEnvironment.includes('thresholds') ? [table, own] : [own, table]
}

const UNDECIDED: ResolvedThreshold = { tolerance: DEFAULT_TOLERANCE, origin: '' }

function defaultOrigin(source: ModelSource, one: Case): string {
  if (isRounded(source, one)) return 'the default for recorded bfloat16 data'
  return one.kind === 'data-set' ? 'the default for recorded data' : 'the default'
}

function describe({ discovered }: ModelSource, one: Case, expected: Tensor): ThresholdCase {
  return {
    model: discovered.name,
    layer: subjectName(discovered.name, one),
    target: one.target,
    chip: one.chip,
    dtype: expected.dtype,
    ...(one.kind === 'layer' ? { opTypes: one.opTypes } : {}),
  }
}

/** The name of the case without sizes, target and chip. */
function subjectName(model: string, { kind, part, dataSet }: Case): string | undefined {
  switch (kind) {
    case 'layer':
      return part
    case 'data-set':
      return `${model}_data_set_${dataSet}`
    case 'full':
      return `${model}_full_model`
    case 'model':
      return undefined
  }
}
