/**
 * Compiling for the simulated accelerator: an ONNX model and a chip -> an ONNX model that gives,
 * on onnxruntime's CPU provider with optimisation disabled, what such a chip would give.
 *
 * Pure, and the same bytes every time. Names, dtypes and shapes of inputs and outputs stay. Which
 * values are rounded is in stored-values.ts, how in rounding.ts. A model that only passes a value
 * on, from input to output, stores it nowhere. What the chip cannot do is COMPILE_FAILED.
 */
import { type ByteSource, bytesSource } from '../../bytes/byte-source.ts'
import { ModelTestError } from '../../errors.ts'
import { qualifiedName } from '../../graph/dtype-rules.ts'
import { functionsNeeded } from '../../graph/functions.ts'
import { inferTypes, type TypeTable } from '../../graph/infer-types.ts'
import { resolveModel, type Value } from '../../graph/resolve.ts'
import type { WeightPolicy } from '../../graph/weights.ts'
import { indexModel, type ModelIndex, type NodeEntry } from '../../onnx/model-index.ts'
import type { SimChip } from './chip.ts'
import { type Estimate, estimateModel, type ShapeOf } from './estimate.ts'
import { AS_IT_IS, defaultOpset, rewriteModel } from './rewrite-model.ts'
import { planStorage } from './stored-values.ts'

/** What the reference run saw of the values of the main graph, by name. */
export interface SimRanges {
  readonly [valueName: string]: {
    readonly min: number
    readonly max: number
    /** For the estimates of memory and time. */
    readonly shape?: readonly number[]
  }
}

export interface SimReport extends Estimate {
  /** Nodes of the model as it was, those of bodies of control flow included. */
  readonly nodes: number
  /** Values that the chip rounds. */
  readonly roundedValues: number
}

export interface SimCompilation {
  readonly bytes: Uint8Array
  readonly report: SimReport
}

/**
 * External data stays a reference, relative to wherever the runtime is told to look.
 *
 * @param ranges for the scales of int8, and for shapes that the model does not declare
 * @param weights where large weights of the new model lie; by default where they are
 */
export function compileForSim(
  model: ByteSource | Uint8Array,
  chip: SimChip,
  ranges: SimRanges = {},
  weights: WeightPolicy = AS_IT_IS,
): SimCompilation {
  const index = indexModel(model instanceof Uint8Array ? bytesSource(model) : model)
  const nodes = [...allNodes(index)]
  checkOps(index, nodes, chip)
  const main = resolveModel(index)
  const types = inferTypes(main)
  const seen = (value: Value): SimRanges[string] | undefined =>
    value.graph === main && Object.hasOwn(ranges, value.name) ? ranges[value.name] : undefined
  const estimate = estimateModel(main, types, chip, shapes(types, seen))
  checkMemory(index, estimate, chip)

  const plan = planStorage(main, types, chip.storage)
  if (plan.rounded.size > 0) checkOpset(index, chip)
  const message = rewriteModel({ main, types, plan, chip, rangeOf: seen, weights })
  const report = { nodes: nodes.length, roundedValues: plan.rounded.size, ...estimate }
  return { bytes: message.toBytes(), report }
}

function* allNodes({ graph }: Pick<ModelIndex, 'graph'>): Generator<NodeEntry> {
  for (const node of graph.nodes) {
    yield node
    for (const body of node.subgraphs) yield* allNodes(body)
  }
}

function shapes(types: TypeTable, seen: (value: Value) => SimRanges[string] | undefined): ShapeOf {
  return (value) => {
    const observed = seen(value)?.shape
    if (observed !== undefined) return observed
    const type = types.get(value)
    const dims = type?.kind === 'tensor' ? type.shape : undefined
    return dims?.every((dim) => typeof dim === 'number') ? dims : undefined
  }
}

/** Nodes of the functions that the model calls count too. */
function checkOps(
  model: ModelIndex,
  nodes: readonly NodeEntry[],
  { name, unsupportedOps = [] }: SimChip,
): void {
  if (unsupportedOps.length === 0) return
  const lacking = new Set(unsupportedOps)
  const called = functionsNeeded(model, nodes).flatMap((entry) => entry.nodes)
  const found = [...nodes, ...called].find((node) => lacking.has(qualifiedName(node)))
  if (found === undefined) return
  const node = found.name === '' ? `the node that gives "${found.outputs[0] ?? ''}"` : `node "${found.name}"`
  throw new ModelTestError(
    'COMPILE_FAILED',
    `chip "${name}" has no ${qualifiedName(found)}, which ${node} needs`,
    {
      file: model.source.name,
      hint: 'Test this model on another chip, or take the op from unsupportedOps in the chip file.',
    },
  )
}

function checkMemory(model: ModelIndex, { peakBytes, weightBytes }: Estimate, chip: SimChip): void {
  const { name, memoryBytes = Infinity } = chip
  if (peakBytes <= memoryBytes) return
  throw new ModelTestError(
    'COMPILE_FAILED',
    `the model needs ${peakBytes} bytes (${weightBytes} of them weights), chip "${name}" has ${memoryBytes}`,
    {
      file: model.source.name,
      hint: 'Use smaller shapes, test the layers alone, or raise memoryBytes in the chip file.',
    },
  )
}

/** Cast takes the number of a dtype since opset 6. onnxruntime itself promises to run 7 and later. */
const FIRST_OPSET = 6

function checkOpset(model: ModelIndex, { name, storage }: SimChip): void {
  const opset = defaultOpset(model) ?? FIRST_OPSET
  if (opset >= FIRST_OPSET) return
  throw new ModelTestError(
    'COMPILE_FAILED',
    `chip "${name}" stores ${storage}, and opset ${opset} of the model has no Cast to simulate that with`,
    { file: model.source.name, hint: 'Convert the model to opset 7 or newer, or use a float32 chip.' },
  )
}
