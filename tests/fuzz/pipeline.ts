/**
 * Any bytes -> through everything that is pure: index, names, types, folding, split, extraction.
 *
 * The one rule: the bytes are read, or refused with ModelTestError, in little time. What is
 * extracted must be readable in its turn, since those bytes are no longer a stranger's.
 */
import { createContext, Script } from 'node:vm'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { ModelTestError } from '../../src/errors.ts'
import { cutPrefix } from '../../src/graph/cut.ts'
import { partDigest } from '../../src/graph/equality.ts'
import { foldShapes } from '../../src/graph/fold-shapes.ts'
import { inferTypes } from '../../src/graph/infer-types.ts'
import { extractPart } from '../../src/graph/part.ts'
import { resolveModel } from '../../src/graph/resolve.ts'
import { splitGraph } from '../../src/graph/split.ts'
import type { OpenExternal } from '../../src/graph/weights.ts'
import { computedValues, graphAsModel } from '../../src/graph/whole.ts'
import { indexModel } from '../../src/onnx/model-index.ts'
import { summarizeModel } from '../../src/onnx/summary.ts'

export type Outcome = 'read' | 'refused'

/** One case may take so long; real models of this size take some milliseconds. */
const CASE_MILLISECONDS = 5_000

/** Runs the pipeline; throws whatever is no ModelTestError, and when time is up. */
export function outcomeOf(bytes: Uint8Array): Outcome {
  return withinTime(CASE_MILLISECONDS, () => {
    try {
      runPipeline(bytes)
      return 'read'
    } catch (error) {
      if (!(error instanceof ModelTestError)) throw error
      if (error.hint === '') throw new Error('an error without a hint', { cause: error })
      return 'refused'
    }
  })
}

const ZEROS = new Uint8Array(4 * 1024 * 1024)
const external: OpenExternal = (location) => bytesSource(ZEROS, location)

/** Parts of one model that are extracted: they are alike after some. */
const MAX_PARTS = 60

function runPipeline(bytes: Uint8Array): void {
  const model = indexModel(bytesSource(bytes, 'fuzz.onnx'))
  summarizeModel(model)
  const graph = resolveModel(model)
  const types = inferTypes(graph)
  const typeOf = types.get.bind(types)
  const folded = foldShapes(graph, types)
  const inline = { kind: 'inline', external } as const
  const extracted: Uint8Array[] = []
  for (const part of splitGraph(graph, { stem: 'fuzz', typeOf, folded }).slice(0, MAX_PARTS)) {
    partDigest(part, typeOf, external)
    extracted.push(extractPart(part, typeOf, inline).toBytes())
    extractPart(part, typeOf, { kind: 'reference', location: 'fuzz.onnx', minBytes: 16 }).toBytes()
  }
  extracted.push(graphAsModel(graph, computedValues(graph), typeOf, inline).toBytes())
  for (const value of graph.outputs) cutPrefix(graph, [value])
  for (const part of extracted) expectReadable(part)
}

/** What we wrote ourselves is no reason to refuse anything. */
function expectReadable(bytes: Uint8Array): void {
  try {
    const model = indexModel(bytesSource(bytes, 'extracted.onnx'))
    resolveModel(model)
    summarizeModel(model)
  } catch (cause) {
    throw new Error('what was extracted cannot be read', { cause })
  }
}

const context = createContext({ run: undefined as unknown })
const script = new Script('run()')

/** Ends even an endless loop: a script's time limit holds for all that it calls. */
export function withinTime<T>(milliseconds: number, run: () => T): T {
  context['run'] = run
  return script.runInContext(context, { timeout: milliseconds }) as T
}
