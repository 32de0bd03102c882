/** What goes wrong for a whole model is the ERROR of one test; its other tests are skipped and point there. */
import { isDeepStrictEqual } from 'node:util'
import type { TestContext } from 'vitest'
import { ModelTestError } from '../errors.ts'
import { FixtureFailure } from '../fixtures/case-fixtures.ts'
import type { Case } from '../suite/cases.ts'
import type { OpenModel } from './open-model.ts'

/**
 * A model that the reference cannot run is one ERROR, that of its full model, not one per layer. A
 * body that cannot run may be a branch that is not taken with these inputs.
 */
export function skipWithoutReference(
  model: OpenModel,
  one: Case,
  error: unknown,
  context: TestContext,
): void {
  if (one.kind !== 'layer' || !(error instanceof FixtureFailure) || error.fixture !== 'reference') return
  const cause = error.cause as Error
  if (cause instanceof ModelTestError && cause.code === 'FILE_UNWRITABLE')
    return skipAsReported(model, one, 'the cache cannot be written', context)
  if (model.source().parts.get(one.part ?? '')?.scope !== '') {
    const [reason] = String(cause.message).split('\n')
    context.skip(`the body cannot run on these inputs: ${reason}`)
  }
  skipAsReported(model, one, WHY_NO_REFERENCE[codeOf(cause)] ?? 'the reference cannot run the model', context)
}

const WHY_NO_REFERENCE: Readonly<Record<string, string>> = {
  EXTERNAL_DATA_UNREADABLE: 'the external data of the model cannot be read',
  EXTERNAL_DATA_OUTSIDE: 'the external data of the model cannot be read',
  INVALID_OPTION: 'the inputs of the model cannot be made',
  FILE_UNREADABLE: 'the inputs of the model cannot be made',
}

function codeOf(error: unknown): string {
  return error instanceof ModelTestError ? error.code : ''
}

/**
 * What goes wrong for all layers of a model is told by one test: its full model, else its first
 * layer. One that this run leaves out tells nothing.
 */
export function skipAsReported(
  { found, source }: OpenModel,
  one: Case,
  why: string,
  { skip, task }: TestContext,
): void {
  if (one.kind !== 'layer') return
  const left = new Set(task.file.tasks.filter(({ mode }) => mode !== 'run').map(({ name }) => name))
  const tells = (other: Case): boolean =>
    other.target === one.target &&
    other.chip === one.chip &&
    isDeepStrictEqual(other.sizes, one.sizes) &&
    other.skip === undefined &&
    other.xfail === undefined &&
    !left.has(other.name)
  const teller =
    found.cases.find((other) => other.kind === 'full' && tells(other)) ??
    found.cases.find(
      (other) => other.kind === 'layer' && source().parts.get(other.part!)?.scope === '' && tells(other),
    )
  if (teller !== undefined && teller !== one) skip(`${why}: see ${teller.name}`)
}
