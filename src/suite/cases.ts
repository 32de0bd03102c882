/**
 * A model -> its cases: layers, data sets and the model as a whole, for every shape, target and chip.
 *
 * Nothing is run for it, so that thousands of models are listed in seconds. The names are
 * `<model>_layer_<OpType>_<n>`, `<model>_full_model` and `<model>_data_set_<n>`, then the sizes that
 * were set (`@batch=4,seq=16`), then `-<target>-<chip>`. A model with data sets is not tested as a
 * whole again, since its data sets do that, and if it is a single layer, not as a layer either.
 */
import { ModelTestError } from '../errors.ts'
import { type ModelFile, openModel } from '../files/model-file.ts'
import { dropTwins, partDigest } from '../graph/equality.ts'
import { foldShapes } from '../graph/fold-shapes.ts'
import { inferTypes, type TypeTable } from '../graph/infer-types.ts'
import type { Part } from '../graph/part.ts'
import { resolveModel, type ScopedGraph } from '../graph/resolve.ts'
import { splitGraph } from '../graph/split.ts'
import { isConstant } from '../onnx/constant.ts'
import { isCarriedByOrt } from '../targets/ort-tensor.ts'
import { dtypeFromOnnx } from '../tensor/dtype.ts'
import { matchesPattern } from '../compare/name-pattern.ts'
import { variantsOf } from './chip-targets.ts'
import { type DiscoveredModel, dataSetNumber } from './discover.ts'
import type { Layer } from './layers.ts'
import type { ResolvedConfig } from './options.ts'
import { dynamicDims, type ShapeCase, shapeCases } from './shape-cases.ts'
import { modelConfig, readSidecar, type Sidecar, sidecarXfails } from './sidecar.ts'
import { readXfails, type Xfail, xfailFinder } from './xfails.ts'

export interface Case {
  /** Unique within the model. */
  readonly name: string
  /** `model`: of a model that cannot be read; running it reports why. */
  readonly kind: 'layer' | 'full' | 'data-set' | 'model'
  /** The name of the part, for layers. */
  readonly part?: string
  /** The number of the data set. */
  readonly dataSet?: number
  /** By symbol, for models with dynamic dimensions. */
  readonly sizes: Readonly<Record<string, number>>
  readonly target: string
  readonly chip: string
  readonly tags: readonly string[]
  readonly opTypes: readonly string[]
  readonly xfail?: Xfail
  /** Why it is not to be run: the sidecar says so. */
  readonly skip?: string
}

export interface CasesOfModel {
  readonly cases: readonly Case[]
  /** Why there is only a case that reports it. */
  readonly problem?: ModelTestError
}

export function casesOf(model: DiscoveredModel, config: ResolvedConfig): CasesOfModel {
  const { open, ...found } = openCases(model, config)
  open?.file.close()
  return found
}

/** The same, for those who go on with the model; it is theirs to close. */
export function openCases(
  model: DiscoveredModel,
  config: ResolvedConfig,
): CasesOfModel & { readonly open?: OpenSplit } {
  let open: OpenSplit | undefined
  try {
    open = openSplit(model, config)
    return { cases: readCases(model, open), open }
  } catch (error) {
    open?.file.close()
    return { cases: [problemCase(model, config)], problem: problemOf(error, model) }
  }
}

export interface SplitModel {
  readonly graph: ScopedGraph
  /** From the file alone. */
  readonly types: TypeTable
  readonly layers: readonly Layer[]
}

/** A model that is open and taken apart, and the settings that hold for it. */
export interface OpenSplit extends SplitModel {
  readonly file: ModelFile
  readonly sidecar: Sidecar
  readonly config: ResolvedConfig
}

export function openSplit(model: DiscoveredModel, config: ResolvedConfig): OpenSplit {
  const sidecar = readSidecar(model)
  const own = modelConfig(model, sidecar, config)
  const file = openModel(model.path)
  try {
    return { file, sidecar, config: own, ...splitModel(file, model.name, own) }
  } catch (error) {
    file.close()
    throw error
  }
}

/** The layers by which cases are named: always those of the file, whatever a runtime says of its types. */
function splitModel(
  file: ModelFile,
  name: string,
  { groups, dedup }: Pick<ResolvedConfig, 'groups' | 'dedup'>,
): SplitModel {
  const graph = resolveModel(file.model)
  const types = inferTypes(graph)
  const typeOf = types.get.bind(types)
  const parts = splitGraph(graph, {
    stem: name,
    typeOf,
    folded: foldShapes(graph, types),
    groups,
    canCross: (code) => isCarriedByOrt(dtypeFromOnnx(code)),
  })
  if (!dedup) return { graph, types, layers: parts.map((part) => ({ part, twins: [] })) }
  return {
    graph,
    types,
    layers: dropTwins(parts, (part) => partDigest(part, typeOf, file.external.bind(file))),
  }
}

function readCases(model: DiscoveredModel, { sidecar, config, ...split }: OpenSplit): Case[] {
  const shapes = shapeCases(dynamicDims(split.graph, split.types), {
    config: config.shapes,
    sidecar: sidecar.shapes,
    sidecarFile: model.sidecar,
  })
  const finish = finisher(model, sidecar, config)
  return layersFirst(variants(subjectsOf(model, split, config), shapes, model, config)).map(finish)
}

/** What is tested, before shapes, targets and chips. */
interface Subject {
  readonly name: string
  readonly kind: Case['kind']
  readonly part?: string
  readonly dataSet?: number
  readonly opTypes: readonly string[]
}

function subjectsOf(
  model: DiscoveredModel,
  { graph, layers }: SplitModel,
  config: ResolvedConfig,
): Subject[] {
  const hasDataSets = model.dataSets.length > 0
  const opTypes = uniqueOps(graph.nodes.filter(({ entry }) => !isConstant(entry)).map(({ entry }) => entry))
  const isOneLayer = layers.length === 1 && hasDataSets
  return [
    ...(config.layers && !isOneLayer ? layers.map(({ part }) => layerSubject(part)) : []),
    ...model.dataSets.map((folder): Subject => {
      const dataSet = dataSetNumber(folder)
      return { name: `${model.name}_data_set_${dataSet}`, kind: 'data-set', dataSet, opTypes }
    }),
    ...(config.fullModel && !hasDataSets
      ? [{ name: `${model.name}_full_model`, kind: 'full', opTypes } satisfies Subject]
      : []),
  ]
}

function layerSubject({ name, nodes }: Part): Subject {
  return { name, kind: 'layer', part: name, opTypes: uniqueOps(nodes.map(({ entry }) => entry)) }
}

function uniqueOps(entries: readonly { readonly opType: string }[]): string[] {
  return [...new Set(entries.map(({ opType }) => opType))].toSorted()
}

/** The sizes of data sets are recorded, so they have one shape only. */
const RECORDED: readonly ShapeCase[] = [{ sizes: {}, label: '' }]

function variants(
  subjects: readonly Subject[],
  shapes: readonly ShapeCase[],
  model: DiscoveredModel,
  config: ResolvedConfig,
): Case[] {
  return variantsOf(model, config).flatMap(({ target, chip }) =>
    subjects.flatMap((subject) => {
      const tags = tagsOf(subject, target, chip)
      return (subject.kind === 'data-set' ? RECORDED : shapes).map((shape) =>
        caseOf(subject, shape, target, chip, tags),
      )
    }),
  )
}

function caseOf(
  { name, ...subject }: Subject,
  { sizes, label }: ShapeCase,
  target: string,
  chip: string,
  tags: readonly string[],
): Case {
  return { name: `${name}${label}-${target}-${chip}`, ...subject, sizes, target, chip, tags }
}

/** What captures expectations comes last, so that it stands in one file however many the layers fill. */
function layersFirst(cases: readonly Case[]): Case[] {
  return [...cases.filter(({ kind }) => kind === 'layer'), ...cases.filter(({ kind }) => kind !== 'layer')]
}

function tagsOf({ kind, opTypes }: Subject, target: string, chip: string): string[] {
  return [kind, ...opTypes.map((op) => `op/${op}`), `target/${target}`, `chip/${chip}`].map(cleanTag)
}

/** Vitest's tag filters give blanks, brackets, `!`, `&`, `|`, `*` and commas a meaning. */
function cleanTag(tag: string): string {
  return tag.replaceAll(/[^\w./-]/g, '_').slice(0, 80)
}

/** Adds what lists say about a case by its name. */
function finisher(model: DiscoveredModel, sidecar: Sidecar, config: ResolvedConfig): (one: Case) => Case {
  const xfailOf = xfailFinder([...sidecarXfails(model, sidecar, config.root), ...readXfails(model, config)])
  return (one) => {
    const xfail = xfailOf(one.name)
    const skip = skipReason(one.name, sidecar)
    if (xfail === undefined && skip === undefined) return one
    return { ...one, ...(xfail === undefined ? {} : { xfail }), ...(skip === undefined ? {} : { skip }) }
  }
}

function skipReason(name: string, { skip }: Sidecar): string | undefined {
  if (skip === undefined || skip === false) return undefined
  if (skip === true) return 'the sidecar says so'
  if (typeof skip === 'string') return skip
  return Object.entries(skip).find(([pattern]) => matchesPattern(pattern, name))?.[1]
}

/** The lists count for it too, as far as they can be read. */
function problemCase(model: DiscoveredModel, config: ResolvedConfig): Case {
  const one: Case = {
    name: `${model.name}_model`,
    kind: 'model',
    sizes: {},
    target: '',
    chip: '',
    tags: ['model'],
    opTypes: [],
  }
  const sidecar = unlessUnreadable(() => readSidecar(model)) ?? {}
  const finish = unlessUnreadable(() => finisher(model, sidecar, config))
  const skip = skipReason(one.name, sidecar)
  return finish?.(one) ?? (skip === undefined ? one : { ...one, skip })
}

function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined // the problem itself, or one that shows once the first is solved
  }
}

/** Whatever one model brings about, the others are still tested. */
function problemOf(error: unknown, { path }: DiscoveredModel): ModelTestError {
  if (error instanceof ModelTestError) return error
  return new ModelTestError('INVALID_GRAPH', `reading the model failed unexpectedly (${String(error)})`, {
    file: path,
    hint: 'This should not happen, whatever the file holds: please report it with the model.',
    cause: error,
  })
}
