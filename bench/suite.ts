/**
 * `suite`: how long the tests of models take under Vitest, in a project as a user has it.
 *
 * Three questions: what do tests cost beyond the work of the runtime, what is saved when nothing
 * has changed, and how does it go with a thousand models.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { MessageWriter } from '../src/bytes/wire-writer.ts'
import type { BareLoopAnswer } from './bare-loop.ts'
import type { Section } from './figures.ts'
import { chain, withTempFolder } from './generate-models.ts'
import { askChild, median } from './measure.ts'
import { buildPackage, makeEmptyProject, makeProject, type Project, type VitestRun } from './suite-project.ts'

export async function* suite(): AsyncGenerator<Section> {
  yield* await withTempFolder(async (folder) => {
    const library = await buildPackage(folder)
    return [await largeModel(folder, library), await manyModels(folder, library)]
  })
}

const REAL_MODEL = resolve(import.meta.dirname, '../../shared/data/models/onnx-light/light_densenet121.onnx')
const REAL_LAYERS = 1746
/** Cold, warm and bare take turns, so that a busy machine disturbs them alike. */
const ROUNDS = 3

async function largeModel(folder: string, library: string): Promise<Section> {
  const isReal = existsSync(REAL_MODEL)
  const name = isReal ? 'light_densenet121.onnx' : 'chain.onnx'
  const bytes = isReal ? readFileSync(REAL_MODEL) : chain(REAL_LAYERS)
  const project = makeProject(join(folder, 'large'), library, [[name, bytes]])
  const empty = makeEmptyProject(join(folder, 'large-empty'), 2, Math.ceil((REAL_LAYERS + 1) / 2))
  const rounds: Round[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await coldWarmBare(project, empty))
  const [cold, warm, bare, alone] = (['cold', 'warm', 'bare', 'alone'] as const).map((kind) =>
    median(rounds.map((round) => round[kind].ms)),
  ) as [number, number, number, number]
  return {
    title: `${rounds[0]!.bare.runs} tests of ${isReal ? name : 'a generated chain'} on the target cpu`,
    figures: [
      {
        what: 'first run, to the bare loop',
        value: median(rounds.map((round) => round.cold.ms / round.bare.ms)),
        unit: 'x',
        goal: 2,
      },
      {
        what: 'second run, to the first',
        value: median(rounds.map((round) => round.warm.ms / round.cold.ms)),
        unit: 'x',
        goal: 0.35,
      },
      {
        what: 'second run, per test beyond Vitest alone',
        value: median(rounds.map((round) => (round.warm.ms - round.alone.ms) / round.bare.runs)),
        unit: 'ms',
        goal: 1.5,
      },
      { what: 'first run', value: cold, unit: 'ms' },
      { what: 'second run', value: warm, unit: 'ms' },
      { what: 'bare loop', value: bare, unit: 'ms' },
      { what: 'Vitest alone, as many tests that do nothing', value: alone, unit: 'ms' },
      { what: 'peak memory of the first run', value: peak(rounds.map((one) => one.cold)), unit: 'MB' },
      { what: 'peak memory of the second run', value: peak(rounds.map((one) => one.warm)), unit: 'MB' },
    ],
    notes: [
      `Wall time of \`vitest run\`, its start included; medians of ${ROUNDS} rounds, ratios within a round.`,
      'Bare loop: create a session, run it, release it, for each test, in one process that is up already.',
      'Memory: resident, summed over all processes (so shared pages count in each), sampled.',
      ...(isReal ? [] : ['../shared is absent: a generated graph of as many nodes stands in for the model.']),
    ],
  }
}

interface Round {
  readonly cold: VitestRun
  readonly warm: VitestRun
  readonly bare: BareLoopAnswer
  readonly alone: VitestRun
}

async function coldWarmBare(project: Project, empty: Project): Promise<Round> {
  project.clear()
  const cold = await project.vitest('run')
  const warm = await project.vitest('run')
  const alone = await empty.vitest('run')
  return { cold, warm, alone, bare: await askChild<BareLoopAnswer>('bare-loop.ts', [project.folder]) }
}

const MODELS = 1000

async function manyModels(folder: string, library: string): Promise<Section> {
  const start = await startUp(folder, library)
  const project = makeProject(join(folder, 'many'), library, tinyModels(MODELS))
  // The first start writes the test files, which is part of a first listing.
  const list = await project.vitest('list', '--json')
  const staticList = await project.vitest('list', '--json', '--static-parse')
  const tests = (JSON.parse(list.stdout) as unknown[]).length
  const cold = await project.vitest('run')
  const empty = makeEmptyProject(join(folder, 'many-empty'), MODELS, tests / MODELS)
  const [warms, alones] = [[] as number[], [] as number[]]
  for (let round = 0; round < 2; round++) {
    warms.push((await project.vitest('run')).ms)
    alones.push((await empty.vitest('run')).ms)
  }
  const aloneList = await empty.vitest('list', '--json')
  const [warm, alone] = [median(warms), median(alones)]
  return {
    title: `${MODELS} models of one node, ${tests} tests on the target cpu`,
    figures: [
      { what: 'list', value: list.ms, unit: 'ms', goal: 4000 },
      { what: 'list, parsed only', value: staticList.ms, unit: 'ms', goal: 4000 },
      { what: 'first run', value: cold.ms, unit: 'ms', goal: 15_000 },
      { what: 'second run', value: warm, unit: 'ms', goal: 15_000 },
      {
        what: 'second run, per test beyond Vitest alone',
        value: (warm - alone) / tests,
        unit: 'ms',
        goal: 1.5,
      },
      { what: 'second run, per test beyond the start', value: (warm - start) / tests, unit: 'ms' },
      { what: 'start: second run with one model', value: start, unit: 'ms' },
      { what: 'Vitest alone, as many files and tests', value: alone, unit: 'ms' },
      { what: 'Vitest alone, list', value: aloneList.ms, unit: 'ms' },
      { what: 'peak memory of the first run', value: peak([cold]), unit: 'MB' },
    ],
    notes: [
      'The first list also writes the test files.',
      'Vitest alone: the tests do nothing, and no plugin is there; the rest of its settings are the same.',
    ],
  }
}

/** What a run takes that has next to nothing to do. */
async function startUp(folder: string, library: string): Promise<number> {
  const project = makeProject(join(folder, 'one'), library, tinyModels(1))
  const [, ...runs] = [await project.vitest('run'), await project.vitest('run'), await project.vitest('run')]
  return median(runs.map(({ ms }) => ms))
}

/** No two have the same content, or they would share what is cached. */
function* tinyModels(count: number): Generator<readonly [string, Uint8Array]> {
  const model = chain(1)
  for (let n = 0; n < count; n++) {
    const mark = new MessageWriter().stringField(DOC_STRING, `number ${n}`).toBytes()
    yield [`tiny-${n}.onnx`, Buffer.concat([model, mark])]
  }
}

/** ModelProto.doc_string: fields may come in any order. */
const DOC_STRING = 6

function peak(runs: readonly VitestRun[]): number {
  return Math.max(...runs.map(({ peakBytes }) => peakBytes)) / 1e6
}
