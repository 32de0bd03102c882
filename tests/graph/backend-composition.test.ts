/**
 * The models of the ONNX backend tests, run whole and by their parts on their recorded inputs.
 *
 * They lie in ../shared/data, which a clone alone does not have.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ModelFile, openModel } from '../../src/files/model-file.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { resolveModel, type Value } from '../../src/graph/resolve.ts'
import { isCarriedByOrt } from '../../src/targets/ort-tensor.ts'
import { dtypeFromOnnx } from '../../src/tensor/dtype.ts'
import { tensorFromProtoBytes } from '../../src/tensor/tensor-proto.ts'
import { differences, runBytes, runParts, splitFile, type Tensors } from '../support/composition.ts'
import { SHARED } from '../support/shared.ts'

const ARCHIVE = join(SHARED, 'onnx-backend-tests/onnx-1.20-backend-tests.tar.gz')

/** Somewhat less than there are: a way to run none of them must not pass. */
const LEAST_EQUAL = 1_450

describe.skipIf(!existsSync(ARCHIVE))('the ONNX backend tests (skipped without ../shared)', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'onnx-backend-tests-'))
    execFileSync('tar', ['xzf', ARCHIVE, '-C', folder])
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('the parts of each compose to it', { timeout: 300_000 }, async () => {
    const models = (readdirSync(folder, { recursive: true }) as string[])
      .filter((path) => path.endsWith('model.onnx'))
      .toSorted()
    const [problems, tally]: [string[], Record<Outcome, number>] = [[], { equal: 0, 'not run': 0 }]
    for (const path of models) {
      const outcome = await compose(join(folder, path))
      if (typeof outcome === 'string') tally[outcome]++
      else problems.push(`${dirname(path)}: ${outcome.join('; ')}`)
    }
    expect(problems).toEqual([])
    expect(tally.equal).toBeGreaterThan(LEAST_EQUAL)
  })
})

/** Not run: onnxruntime refuses the model or cannot be fed it, or it draws at random. */
type Outcome = 'equal' | 'not run'

async function compose(path: string): Promise<Outcome | string[]> {
  const file = openModel(path)
  try {
    const feeds = recordedInputs(file, join(dirname(path), 'test_data_set_0'))
    if (feeds === undefined) return 'not run'
    const whole = await attempt(path, feeds)
    if (whole === undefined || differences(whole, await runBytes(path, feeds)).length > 0) return 'not run'
    const split = await splitFile(file)
    const different = differences(whole, await runParts(split, feeds))
    return different.length === 0 ? 'equal' : different
  } catch (error) {
    return [String(error)]
  } finally {
    file.close()
  }
}

async function attempt(path: string, feeds: Tensors): Promise<Tensors | undefined> {
  try {
    return await runBytes(path, feeds)
  } catch {
    return undefined
  }
}

/** Undefined where an input or output is of a type that onnxruntime-node does not carry. */
function recordedInputs({ model }: ModelFile, folder: string): Tensors | undefined {
  const graph = resolveModel(model)
  const types = inferTypes(graph)
  const isCarried = (value: Value): boolean => {
    const type = types.get(value)
    return type?.kind === 'tensor' && isCarriedByOrt(dtypeFromOnnx(type.dataType))
  }
  if (![...graph.inputs, ...graph.outputs].every(isCarried)) return undefined
  return new Map(
    graph.inputs.map(({ written }, at) => [
      written,
      tensorFromProtoBytes(readFileSync(join(folder, `input_${at}.pb`))).tensor,
    ]),
  )
}
