/**
 * Random ModelProtos, most of which make sense: nodes read what there is, under odd names.
 *
 * Some do not: names defined twice or never, cycles, sizes beyond all bounds, data that does
 * not fit its shape, attributes of the wrong kind.
 */
import * as fc from 'fast-check'
import { encodeModel } from '../onnx/built-models.ts'

const name = fc.oneof(
  { weight: 6, arbitrary: fc.nat(12).map((n) => `v${n}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '',
      ' ',
      'v1__2',
      'v2__2',
      '__proto__',
      'a/b',
      '../x',
      'ü',
      '\u0000',
      '😀',
      'v',
    ),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 4, unit: 'grapheme' }) },
)

const size = fc.oneof(
  { weight: 6, arbitrary: fc.nat(4) },
  { weight: 1, arbitrary: fc.constantFrom(-1, -5, 1024, 2 ** 31, 2 ** 53, 2 ** 60) },
)
const sizes = fc.array(size, { maxLength: 4 })

const dtype = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(1, 6, 7, 9) },
  fc.integer({ min: -1, max: 40 }),
)

const shape = fc.array(
  fc.oneof(
    size.map((dimValue) => ({ dimValue })),
    name.map((dimParam) => ({ dimParam })),
  ),
  {
    maxLength: 4,
  },
)

const { type } = fc.letrec<{ type: object }>((tie) => ({
  type: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    {
      weight: 4,
      arbitrary: fc.record({ tensorType: fc.record({ elemType: dtype, shape: fc.record({ dim: shape }) }) }),
    },
    fc.record({ sequenceType: fc.record({ elemType: tie('type') }) }),
    fc.record({ optionalType: fc.record({ elemType: tie('type') }) }),
    fc.record({ mapType: fc.record({ keyType: dtype, valueType: tie('type') }) }),
    fc.constant({}),
  ),
}))

const valueInfo = fc.record({ name, type }, { requiredKeys: ['name'] })

/** Half of them hold the data that their sizes ask for. */
const tensor = fc
  .record({
    name,
    dims: sizes,
    dataType: dtype,
    fits: fc.boolean(),
    values: fc.array(fc.integer({ min: -3, max: 5 }), { maxLength: 6 }),
    form: fc.constantFrom('int64Data', 'int32Data', 'floatData', 'rawData', 'outside'),
  })
  .map(({ fits, values, form, name: own, dims, dataType }): { name: string } =>
    fits
      ? tensorProto(own, [values.length], INT64, { int64Data: values })
      : tensorProto(own, dims, dataType, dataFields(form, values)),
  )

const INT64 = 7

function tensorProto(own: string, dims: number[], dataType: number, data: object): { name: string } {
  return { name: own, dims, dataType, ...data } as { name: string }
}

function dataFields(form: string, values: number[]): object {
  if (form === 'rawData') return { rawData: Uint8Array.from(values) }
  if (form !== 'outside') return { [form]: values }
  const entries = { location: '../w', offset: String(values[0] ?? ''), length: '9007199254740993' }
  const externalData = Object.entries(entries).map(([key, value]) => ({ key, value }))
  return { dataLocation: 1, externalData: externalData.slice(0, 1 + (values.length % 3)) }
}

const ATTRIBUTES = [
  'axis',
  'axes',
  'to',
  'value',
  'value_ints',
  'value_int',
  'starts',
  'ends',
  'body',
  'then_branch',
]
const SHAPE_OPS =
  'Constant Shape Size Gather Slice Concat Unsqueeze Squeeze Reshape Expand Range ConstantOfShape Where Add Mul ' +
  'Div Max ReduceProd Cast Identity Equal'
const OTHER_OPS = 'If Loop Scan SequenceConstruct SequenceAt Conv Clip F G é constructor'
const OPS = [...`${SHAPE_OPS} ${OTHER_OPS}`.split(' '), '']

interface Graph {
  readonly node: Node[]
  readonly initializer: { name: string }[]
  readonly input: { name: string }[]
  readonly output: { name: string }[]
}

interface Node {
  input: string[]
  readonly output: string[]
  readonly attribute: { g?: Graph }[]
}

const plainAttribute = fc.record(
  {
    name: fc.oneof(fc.constantFrom(...ATTRIBUTES), name),
    type: fc.nat(14),
    i: fc.integer({ min: -3, max: 8 }),
    f: fc.float(),
    ints: fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 4 }),
    t: tensor,
    refAttrName: name,
  },
  { requiredKeys: ['name'] },
)

function attributeAt(depth: number): fc.Arbitrary<object> {
  if (depth === 0) return plainAttribute
  const inner = graphAt(depth - 1)
  const label = fc.constantFrom(...ATTRIBUTES)
  return fc.oneof(
    { weight: 5, arbitrary: plainAttribute },
    { weight: 2, arbitrary: fc.record({ name: label, g: inner }) },
    { weight: 1, arbitrary: fc.record({ name: label, graphs: fc.array(inner, { maxLength: 2 }) }) },
  )
}

function graphAt(depth: number): fc.Arbitrary<Graph> {
  const node = fc.record({
    name,
    opType: fc.constantFrom(...OPS),
    domain: fc.constantFrom('', '', '', '', 'ai.onnx', 'local'),
    input: fc.array(name, { maxLength: 4 }),
    output: fc.array(name, { minLength: 1, maxLength: 3 }),
    attribute: fc.array(attributeAt(depth), { maxLength: 3 }),
  })
  return fc.record({
    name,
    node: fc.array(node, { maxLength: 2 + 2 * depth }),
    initializer: fc.array(tensor, { maxLength: 3 }),
    input: fc.array(valueInfo, { maxLength: 3 }),
    output: fc.array(valueInfo, { maxLength: 2 }),
    valueInfo: fc.array(valueInfo, { maxLength: 2 }),
  }) as fc.Arbitrary<Graph>
}

const graph = graphAt(2)

const opset = fc.record({ domain: fc.constantFrom('', 'local', 'ai.onnx'), version: fc.nat(30) })

export const anyModel: fc.Arbitrary<Uint8Array> = fc
  .record({
    graph,
    isSound: fc.nat(9).map((n) => n > 0),
    irVersion: fc.oneof({ weight: 9, arbitrary: fc.constant(8) }, fc.constantFrom(1, 3, -1, 2 ** 53)),
    opsetImport: fc.array(opset, { minLength: 1, maxLength: 2 }),
    functions: fc.array(
      fc.record({
        name: fc.constantFrom('F', 'G'),
        domain: fc.constantFrom('', 'local'),
        input: fc.array(name, { maxLength: 2 }),
        output: fc.array(name, { maxLength: 2 }),
        node: fc.array(
          fc.record({
            opType: fc.constantFrom('F', 'G', 'Add', 'Constant'),
            domain: fc.constantFrom('', 'local'),
            input: fc.array(name, { maxLength: 2 }),
            output: fc.array(name, { maxLength: 2 }),
          }),
          { maxLength: 3 },
        ),
      }),
      { maxLength: 2 },
    ),
  })
  .map(({ isSound, graph: main, ...model }) => {
    if (isSound) defineWhatIsRead(main, [])
    return encodeModel({ ...model, graph: main } as never)
  })

/** Replaces the names that nothing defines by ones that something does. */
function defineWhatIsRead(main: Graph, outside: readonly string[]): void {
  const first = main.input.length + main.initializer.length === 0 ? [{ name: 'x' }] : []
  main.input.push(...first)
  const here = [...main.input, ...main.initializer].map((entry) => entry.name).concat(outside)
  const given = (wanted: string): string =>
    wanted === '' || here.includes(wanted) ? wanted : here[wanted.length % here.length]!
  for (const node of main.node) {
    node.input = node.input.map(given)
    for (const { g } of node.attribute) if (g != null) defineWhatIsRead(g, here)
    here.push(...node.output.filter((output) => output !== ''))
  }
  for (const output of main.output) output.name = given(output.name === '' ? 'x' : output.name)
}
