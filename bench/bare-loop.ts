/**
 * A child of the suite benchmark: creates a session and runs it, layer by layer, and answers how long
 * that took. `bare-loop.ts <project folder>`: its only model, with the settings of the target `cpu`.
 *
 * Taking the model apart and reading the activations that feed a layer do not count.
 */
import * as ort from 'onnxruntime-node'
import { openCache } from '../src/cache/store.ts'
import { loadTensors } from '../src/files/tensor-file.ts'
import { subjectOf } from '../src/fixtures/case-fixtures.ts'
import { openModelSource } from '../src/fixtures/model-source.ts'
import { casesOf } from '../src/suite/cases.ts'
import { discoverModels } from '../src/suite/discover.ts'
import { resolveConfig } from '../src/suite/options.ts'
import { sharedOrtPool } from '../src/targets/ort-pool.ts'
import { toOrtTensor } from '../src/targets/ort-tensor.ts'
import { answer } from './measure.ts'

export interface BareLoopAnswer {
  readonly runs: number
  readonly ms: number
}

const [folder = '.'] = process.argv.slice(2)
answer(await bareLoop(folder))
process.exit()

async function bareLoop(root: string): Promise<BareLoopAnswer> {
  const config = resolveConfig({ targets: ['cpu'] }, root, {})
  const [discovered] = discoverModels(config.testdata)
  const source = openModelSource(discovered!, config)
  const cache = openCache({ folder: config.cacheDir })
  const { cases } = casesOf(discovered!, config)
  let ms = 0
  for (const one of cases) {
    const { model, inputs } = await subjectOf(source, one, cache)
    const feeds = Object.fromEntries(
      [...loadTensors(inputs)].map(([name, value]) => [name, toOrtTensor(ort, value)]),
    )
    const started = performance.now()
    const session = await ort.InferenceSession.create(model.bytes, {
      executionProviders: ['cpu'],
      graphOptimizationLevel: 'all',
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      logSeverityLevel: 3,
      extra: { session: { model_external_initializers_file_folder_path: model.folder } },
    })
    await session.run(feeds, model.outputs)
    await session.release()
    ms += performance.now() - started
  }
  sharedOrtPool().close()
  return { runs: cases.length, ms }
}
