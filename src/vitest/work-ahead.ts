/** The work of tests, begun before their turn, so that the processes of onnxruntime never wait for one. */
import type { TestContext } from 'vitest'
import { resultsOf, subjectOf } from '../fixtures/case-fixtures.ts'
import type { Subject } from '../fixtures/subject.ts'
import type { Case } from '../suite/cases.ts'
import type { ChosenTarget } from './case-target.ts'
import { cacheOf, type OpenModel } from './open-model.ts'

/** What a test needs, in the making. */
interface Ahead {
  readonly subject: Promise<Subject>
  readonly results: Promise<Subject['reference']>
}

/** What was begun for the test, or is now. */
export function workOn(model: OpenModel, one: Case, on: ChosenTarget): Ahead {
  const ahead = aheadsOf(model).get(one) ?? begin(model, one, on)
  aheadsOf(model).delete(one)
  return ahead
}

const aheads = new WeakMap<OpenModel, Map<Case, Ahead>>()

function aheadsOf(model: OpenModel): Map<Case, Ahead> {
  const known = aheads.get(model) ?? new Map<Case, Ahead>()
  aheads.set(model, known)
  return known
}

/** Tests whose work is under way: enough to keep the processes of onnxruntime busy. */
const MAX_AHEAD = 24

/**
 * While this test is judged, the processes of onnxruntime run those that follow; what goes wrong is
 * the business of the test it belongs to. A user's own target may live in this process, so its tests
 * run strictly in turn.
 */
export function workAhead(
  model: OpenModel,
  { target: name, chip: chipName }: Case,
  on: ChosenTarget,
  { task }: TestContext,
): void {
  if (model.config.targets.find((entry) => entry.name === name)?.module !== undefined) return
  const { tasks } = task.file
  const at = positionIn(tasks, task)
  for (const next of tasks.slice(at + 1, at + 1 + MAX_AHEAD)) {
    const one = next.type === 'test' && next.mode === 'run' ? model.byName.get(next.name) : undefined
    if (one === undefined || one.skip !== undefined || one.xfail !== undefined) continue
    if (one.target !== name || one.chip !== chipName || aheadsOf(model).has(one)) continue
    aheadsOf(model).set(one, begin(model, one, on))
  }
}

function begin(model: OpenModel, one: Case, on: ChosenTarget): Ahead {
  const source = model.source()
  const { timeouts } = source.config
  const cache = cacheOf(source.config)
  const subject = subjectOf(source, one, cache)
  const results = subject.then((made) => resultsOf(made, one.name, { ...on, timeouts }, cache))
  // Whoever runs the test hears of it.
  results.catch(() => {})
  return { subject, results }
}

type Tasks = TestContext['task']['file']['tasks']

const positions = new WeakMap<Tasks, ReadonlyMap<Tasks[number], number>>()

function positionIn(tasks: Tasks, task: Tasks[number]): number {
  const known = positions.get(tasks) ?? new Map(tasks.map((one, at) => [one, at]))
  positions.set(tasks, known)
  return known.get(task) ?? tasks.length
}
