import { expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { ModelTestError } from '../../src/errors.ts'
import { partDigest } from '../../src/graph/equality.ts'
import { foldShapes } from '../../src/graph/fold-shapes.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { inputDomains } from '../../src/graph/input-domains.ts'
import { fixInputShapes, inputShapes } from '../../src/graph/input-shapes.ts'
import { extractPart } from '../../src/graph/part.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { splitGraph } from '../../src/graph/split.ts'
import type { OpenExternal } from '../../src/graph/weights.ts'
import { computedValues, graphAsModel } from '../../src/graph/whole.ts'
import { indexModel } from '../../src/onnx/model-index.ts'
import { summarizeModel } from '../../src/onnx/summary.ts'
import { HOSTILE_MODELS, type Outcome } from './hostile-models.ts'

test.each(HOSTILE_MODELS)('%s', (_, expected, build) => {
  expect(outcomeOf(build())).toBe(expected)
})

function outcomeOf(bytes: Uint8Array): Outcome {
  try {
    return takeApart(bytes)
  } catch (error) {
    if (error instanceof ModelTestError) return error.code
    throw error
  }
}

const external: OpenExternal = (location) => {
  throw new Error(`nothing here is outside, but "${location}" is asked for`)
}

/** Everything that is done to a model without running it; how many parts it has. */
function takeApart(bytes: Uint8Array): number {
  const model = indexModel(bytesSource(bytes, 'hostile.onnx'))
  summarizeModel(model)
  const graph = resolveModel(model)
  const types = inferTypes(graph)
  const typeOf = types.get.bind(types)
  inputDomains(graph, fixInputShapes(graph, types, inputShapes(graph, types)))
  const parts = splitGraph(graph, { stem: 'hostile', typeOf, folded: foldShapes(graph, types) })
  const inline = { kind: 'inline', external } as const
  for (const part of parts) {
    partDigest(part, typeOf, external)
    extractPart(part, typeOf, inline)
  }
  const whole = graphAsModel(graph, computedValues(graph), typeOf, inline)
  const some = [parts[0], parts.at(-1)].filter((part) => part !== undefined)
  for (const written of [whole, ...some.map((part) => extractPart(part, typeOf, inline))]) {
    resolveModel(indexModel(bytesSource(written.toBytes(), 'extracted.onnx')))
  }
  return parts.length
}
