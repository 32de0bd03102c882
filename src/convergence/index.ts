/** Convergence regression testing: the public API of `vitest-onnx/convergence`. */
export { COMPARISONS, type Comparison } from './config-schema.ts'
export type { Measurement } from './compare-segment.ts'
export {
  ConvergenceRegression,
  defineConvergenceTest,
  type ConvergenceTestOptions,
} from './define-convergence-test.ts'
export type { ConvergenceEvent, OnEvent } from './events.ts'
export type { ApplicationFailure } from './explain-end.ts'
export type { GatherResult } from './gather-test.ts'
export { parseManifest, renderManifest, type CheckpointRecord, type Manifest } from './manifest.ts'
export type { CheckpointResult } from './run-checkpoint.ts'
export {
  gatherConvergence,
  runConvergence,
  type ConvergenceOptions,
  type GatherConvergenceOptions,
  type GatherReport,
  type RunReport,
  type TestRun,
} from './run-convergence.ts'
export type { MetricValue } from './value-log.ts'
