/**
 * A child of the split benchmark: answers the processor time per node of all steps, for graphs of one kind.
 *
 * `time-per-node.ts <nodes> <model> …`, smallest first. The models come as files because a
 * process that has built large ones has taught its compiler that messages live long.
 */
import { readFileSync } from 'node:fs'
import { bytesSource } from '../src/bytes/byte-source.ts'
import { indexModel } from '../src/onnx/model-index.ts'
import { answer, measureProcessor, type MeasureOptions } from './measure.ts'
import { sizeOfAll, takeApart } from './steps.ts'

/** A sample of small graphs is as many of them as make this many nodes, garbage collection included. */
const NODES_PER_SAMPLE = 10_000

const WARM_UP: MeasureOptions = { runs: 3, warmUp: 0 }
const MANY: MeasureOptions = { runs: 9, warmUp: 1 }
const FEW: MeasureOptions = { runs: 3, warmUp: 1 }

interface Graph {
  readonly nodes: number
  readonly bytes: Uint8Array
}

const args = process.argv.slice(2)
const graphs: Graph[] = args.flatMap((nodes, at) =>
  at % 2 === 0 ? [{ nodes: Number(nodes), bytes: readFileSync(args[at + 1]!) }] : [],
)
for (const graph of graphs.slice(0, -1)) microsecondsPerNode(graph, WARM_UP)
answer(graphs.map((graph) => microsecondsPerNode(graph)))

function microsecondsPerNode(
  { nodes, bytes }: Graph,
  repetitions: MeasureOptions = nodes > NODES_PER_SAMPLE ? FEW : MANY,
): number {
  const count = Math.max(1, NODES_PER_SAMPLE / nodes)
  const sample = (): void => {
    for (let graph = 0; graph < count; graph++) sizeOfAll(takeApart(indexModel(bytesSource(bytes))))
  }
  return (measureProcessor(sample, repetitions) * 1000) / (nodes * count)
}
