import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compareOutputs } from '../../src/compare/compare-outputs.ts'
import { openModelSource } from '../../src/fixtures/model-source.ts'
import { casesOf } from '../../src/suite/cases.ts'
import { discoverModels } from '../../src/suite/discover.ts'
import { resolveConfig } from '../../src/suite/options.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { explainMismatch } from '../../src/vitest/mismatch.ts'
import { thresholdsOf } from '../../src/vitest/thresholds.ts'
import { buildModel } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

/** The message of a failure of the model as a whole, on all of its outputs. */
function message(
  rules: readonly object[],
  expected: ReadonlyMap<string, Tensor>,
  actual: ReadonlyMap<string, Tensor>,
): string[] {
  const root = tempFolder()
  mkdirSync(join(root, 'testdata'))
  writeFileSync(
    join(root, 'testdata/net.onnx'),
    buildModel({
      nodes: [
        { op: 'ArgMax', inputs: ['x'], outputs: ['index'] },
        { op: 'Exp', inputs: ['x'], outputs: ['y'] },
      ],
      inputs: { x: ['float32', [2]] },
      outputs: { index: ['int64', [1]], y: ['float32', [2]] },
    }),
  )
  writeFileSync(join(root, 'testdata/thresholds.json'), JSON.stringify({ rules }))
  const config = resolveConfig({}, root, {})
  const [model] = discoverModels(config.testdata)
  const source = openModelSource(model!, config)
  const one = casesOf(model!, config).cases.find(({ kind }) => kind === 'full')!
  const verdict = compareOutputs(actual, expected, thresholdsOf(source, one).of)
  source.file.close()
  return explainMismatch({ source, one, verdict, expected, actual, kept: root, culprit: undefined })
}

function outputs(index: bigint, y: number): ReadonlyMap<string, Tensor> {
  return new Map<string, Tensor>([
    ['index', tensor('int64', [1], BigInt64Array.of(index))],
    ['y', tensor('float32', [1], Float32Array.of(y))],
  ])
}

function told(lines: readonly string[]): string[] {
  return lines.filter((line) => line.startsWith('threshold'))
}

test('every output that fails is told with the rule that judged it', () => {
  const rules = [
    { dtype: 'int64', tolerance: { int_tol: 5 } },
    { dtype: 'float32', tolerance: 0.00002 },
  ]
  const float = 'threshold fp_max_tol 0.00002 from testdata/thresholds.json: every case in float32'
  expect(told(message(rules, outputs(1n, 1), outputs(1n, 2)))).toEqual([float])
  expect(told(message(rules, outputs(1n, 1), outputs(9n, 2)))).toEqual([
    'threshold int_tol 5 from testdata/thresholds.json: every case in int64',
    float,
  ])
})
