/**
 * `manifest.json` of a split: which file holds which part of which model.
 *
 * A folder that was split before is recognised by it, so what is read back is checked.
 */
import { z } from 'zod'
import { isConstant } from '../onnx/constant.ts'
import { isWeight, type ScopedGraph, type Value } from '../graph/resolve.ts'
import type { Layer } from './layers.ts'

export interface SplitManifest {
  readonly version: 1
  readonly source: { readonly file: string; readonly size: number; readonly sha256: string }
  readonly options: { readonly groups: readonly (readonly string[])[]; readonly dedup: boolean }
  readonly inputs: readonly string[]
  /** The outputs of the model, and what gives them. */
  readonly outputs: readonly { readonly name: string; readonly from: 'part' | 'input' | 'constant' }[]
  readonly parts: readonly PartEntry[]
}

export interface PartEntry {
  readonly name: string
  readonly file: string
  /** Empty at the top level, else the way in: `If_0/then`. */
  readonly scope: string
  /** Position of the first node among those of its graph that are no Constants. */
  readonly nodeIndex: number
  readonly nodeIndices: readonly number[]
  /** Names of the nodes in the source; '' for a node without one. */
  readonly sourceNodes: readonly string[]
  readonly opTypes: readonly string[]
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Why nodes stand together that no group names. */
  readonly merged?: string | undefined
  /** Parts of equal content that were left out. */
  readonly twins: readonly string[]
}

const names = z.array(z.string())
const count = z.number().int()

export const splitManifest: z.ZodType<SplitManifest> = z.object({
  version: z.literal(1),
  source: z.object({ file: z.string(), size: count, sha256: z.string() }),
  options: z.object({ groups: z.array(names), dedup: z.boolean() }),
  inputs: names,
  outputs: z.array(z.object({ name: z.string(), from: z.enum(['part', 'input', 'constant']) })),
  parts: z.array(
    z.object({
      name: z.string(),
      file: z.string(),
      scope: z.string(),
      nodeIndex: count,
      nodeIndices: z.array(count),
      sourceNodes: names,
      opTypes: names,
      inputs: names,
      outputs: names,
      merged: z.string().optional(),
      twins: names,
    }),
  ),
})

export function partEntryOf({ part, twins }: Layer, file: string): PartEntry {
  return {
    name: part.name,
    file,
    scope: part.scope,
    nodeIndex: part.nodeIndices[0]!,
    nodeIndices: [...part.nodeIndices],
    sourceNodes: part.nodes.map(({ entry }) => entry.name),
    opTypes: part.nodes.map(({ entry }) => entry.opType),
    inputs: part.inputs.map(({ name }) => name),
    outputs: part.outputs.map(({ name }) => name),
    ...(part.merged === undefined ? {} : { merged: part.merged }),
    twins: twins.map(({ name }) => name),
  }
}

export function outputSources(graph: ScopedGraph): SplitManifest['outputs'] {
  return graph.outputs.map((value) => ({ name: value.name, from: sourceOf(value) }))
}

function sourceOf(value: Value): 'part' | 'input' | 'constant' {
  if (isWeight(value)) return 'constant'
  return value.origin.kind === 'node' && !isConstant(value.origin.node.entry) ? 'part' : 'input'
}
