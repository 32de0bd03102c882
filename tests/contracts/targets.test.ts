import { resolve } from 'node:path'
import { describe, test } from 'vitest'
import { cpuTarget, providerTarget } from '../../src/targets/ort-target.ts'
import { findTarget } from '../../src/targets/registry.ts'
import { simTarget } from '../../src/targets/sim-target.ts'
import { wasmTarget } from '../../src/targets/wasm-target.ts'
import { targetContract } from './target-contract.ts'

/** What rounding to a storage may cost these models. */
const SIM_TOLERANCE: Readonly<Record<string, number>> = {
  default: 1e-6,
  float32: 1e-6,
  float16: 5e-3,
  bfloat16: 4e-2,
  int8: 5e-2,
}

for (const chip of simTarget.chips!) targetContract(simTarget, { chip, tolerance: SIM_TOLERANCE[chip.name]! })

targetContract(cpuTarget, { tolerance: 1e-6 })

targetContract(wasmTarget, { tolerance: 1e-6 })

const EXAMPLE = resolve(import.meta.dirname, '../../examples/custom-target/half-inputs.mjs')
targetContract(await findTarget('half-inputs', EXAMPLE), { tolerance: 5e-3, checksChips: false })

const webgpu = providerTarget('webgpu')
const whyNot = await webgpu.unavailable!()

/** Without a graphics device: see "WebGPU without a GPU" in docs/targets.md. */
if (whyNot !== undefined) {
  describe('webgpu', () => test('keeps the contract', ({ skip }) => skip(whyNot)))
} else {
  const onCpu = /webgpu lacks an operator, type or shape/
  const refuses = Object.fromEntries(['int64', 'string', 'Loop'].map((name) => [name, onCpu]))
  const mayRefuse = { float16: /device does not support/ }
  targetContract(webgpu, { tolerance: 1e-5, refuses, mayRefuse })
  targetContract(webgpu, { tolerance: 1e-5, mayRefuse, chip: webgpu.chips![1]! })
}
