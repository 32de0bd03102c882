/**
 * Files made by others: Hugging Face's safetensors, numpy's npz, the ONNX backend tests.
 *
 * They lie in ../shared/data, which a clone alone does not have; without it these are skipped.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { WireReader } from '../../src/bytes/wire-reader.ts'
import { encodeFloats, type FloatFormat } from '../../src/tensor/float-formats.ts'
import { openNpz, readNpzTensor } from '../../src/tensor/npz.ts'
import { packBits } from '../../src/tensor/packed-integers.ts'
import { openSafetensors, readSafetensor, safetensorsBytes } from '../../src/tensor/safetensors.ts'
import { readTensorInfo, tensorFromProtoBytes, tensorProtoBytes } from '../../src/tensor/tensor-proto.ts'
import { type Tensor, toFloat64 } from '../../src/tensor/tensor.ts'

const shared = '../shared/data'
const golden = filesUnder(`${shared}/golden`, '.safetensors')
const archive = `${shared}/onnx-backend-tests/onnx-1.20-backend-tests.tar.gz`

describe.skipIf(golden.length === 0)('safetensors of Hugging Face models (skipped without ../shared)', () => {
  test.each(golden)('%s is written again byte for byte', (path) => {
    const bytes = readFileSync(path)
    const file = openSafetensors(bytesSource(bytes, path))
    const tensors = [...file.entries.keys()].map((name) => [name, readSafetensor(file, name)] as const)
    expect(Buffer.compare(safetensorsBytes(tensors, file.metadata), bytes)).toBe(0)
  })

  test('attention masks are zeros and ones, logits are finite', () => {
    const path = golden.find((file) => file.endsWith('gpt2/golden.safetensors'))!
    const file = openSafetensors(bytesSource(readFileSync(path)))
    const mask = toFloat64(readSafetensor(file, 'input.padded.attention_mask'))
    expect(new Set(mask)).toEqual(new Set([0, 1]))
    expect(toFloat64(readSafetensor(file, 'output.logits')).every((value) => Number.isFinite(value))).toBe(
      true,
    )
  })

  const pointer = `${shared}/models/hf-llama31-lfs/model-00001-of-00002.safetensors`
  test.skipIf(!existsSync(pointer))('a Git LFS pointer is recognised', () => {
    expect(() => openSafetensors(bytesSource(readFileSync(pointer)))).toThrow(/Git LFS pointer/)
  })
})

describe.skipIf(!existsSync(`${shared}/models`))('npz of real models (skipped without ../shared)', () => {
  test.each([
    ['qlstm-scan-tract', { input: [[3, 3], -3.69159937], output: [[3, 3], 1.40625] }],
    ['bilstm-tract', { input: [[2, 58], 7842], Add_26: [[2, 58, 2], -1161.10327] }],
  ])('%s has the arrays and sums that numpy finds', (model, expected) => {
    const path = `${shared}/models/${model}/io.npz`
    const file = openNpz(bytesSource(readFileSync(path)))
    expect([...file.members.keys()]).toEqual(Object.keys(expected))
    for (const [name, [shape, sum]] of Object.entries(expected) as [string, [number[], number]][]) {
      const t = readNpzTensor(file, name)
      expect(t.shape).toEqual(shape)
      expect(toFloat64(t).reduce((total, value) => total + value, 0)).toBeCloseTo(sum, 2)
    }
  })
})

describe.skipIf(!existsSync(archive))('the ONNX backend tests (skipped without ../shared)', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'onnx-backend-tests-'))
    execFileSync('tar', ['xzf', archive, '-C', folder, '--exclude=model.onnx'])
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('every recorded tensor is read, and written again byte for byte where it was raw', () => {
    const differing: string[] = []
    let count = 0
    for (const path of filesUnder(folder, '.pb').filter((file) => !isSequenceOrOptional(file))) {
      const bytes = readFileSync(path)
      const { name, tensor: t } = tensorFromProtoBytes(bytes, path)
      count++
      const inRawForm = t.dtype === 'string' || rawIn(bytes)
      if (inRawForm && Buffer.compare(tensorProtoBytes(name, t), bytes) !== 0) differing.push(path)
    }
    expect(count).toBeGreaterThan(5000)
    expect(differing).toEqual([])
  })

  const narrowing: [string, FloatFormat, boolean][] = [
    ['test_cast_FLOAT_to_BFLOAT16', 'bfloat16', true],
    ['test_cast_FLOAT_to_FLOAT16', 'float16', true],
    ['test_cast_DOUBLE_to_FLOAT16', 'float16', true],
    ['test_cast_FLOAT_to_FLOAT4E2M1', 'float4e2m1', true],
    ['test_cast_FLOAT_to_FLOAT8E4M3FN', 'float8e4m3fn', true],
    ['test_cast_FLOAT_to_FLOAT8E4M3FNUZ', 'float8e4m3fnuz', true],
    ['test_cast_FLOAT_to_FLOAT8E5M2', 'float8e5m2', true],
    ['test_cast_FLOAT_to_FLOAT8E5M2FNUZ', 'float8e5m2fnuz', true],
    ['test_cast_FLOAT16_to_FLOAT8E4M3FN', 'float8e4m3fn', true],
    ['test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FN', 'float8e4m3fn', false],
    ['test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ', 'float8e4m3fnuz', false],
    ['test_cast_no_saturate_FLOAT_to_FLOAT8E5M2', 'float8e5m2', false],
    ['test_cast_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ', 'float8e5m2fnuz', false],
    ['test_cast_e8m0_FLOAT_to_FLOAT8E8M0', 'float8e8m0', true],
    ['test_cast_e8m0_FLOAT16_to_FLOAT8E8M0', 'float8e8m0', true],
  ]
  test.each(narrowing)('%s: the same bit patterns', (name, format, saturate) => {
    const [input, output] = recorded(folder, name)
    const values = toFloat64(input)
    const patterns = [...encodeFloats(format, values, { saturate })]
    // ONNX's text says that NaN becomes 6 in float4e2m1; the tool that made its data gives -0.
    if (format === 'float4e2m1') patterns[values.findIndex(Number.isNaN)] = 0b1000
    const packed = format === 'float4e2m1' ? [...packBits(patterns, 4)] : patterns
    expect(packed).toEqual([...(output.data as Uint8Array)])
  })

  const widening = ['BFLOAT16', 'FLOAT16', 'FLOAT8E4M3FN', 'FLOAT8E4M3FNUZ', 'FLOAT8E5M2', 'FLOAT8E5M2FNUZ']
  test.each([...widening, 'FLOAT4E2M1', 'INT4', 'UINT4', 'INT2', 'UINT2'])(
    'test_cast_%s_to_FLOAT: the same numbers',
    (dtype) => {
      const [input, output] = recorded(folder, `test_cast_${dtype}_to_FLOAT`)
      expect([...toFloat64(input)]).toEqual([...toFloat64(output)])
    },
  )
})

function recorded(folder: string, name: string): [input: Tensor, output: Tensor] {
  const read = (file: string): Tensor =>
    tensorFromProtoBytes(readFileSync(join(folder, 'node', name, 'test_data_set_0', file))).tensor
  return [read('input_0.pb'), read('output_0.pb')]
}

/** These record a SequenceProto or an OptionalProto for some inputs and outputs. */
function isSequenceOrOptional(path: string): boolean {
  return /sequence|optional|_seq|_opt\b/.test(path)
}

function rawIn(proto: Uint8Array): boolean {
  return readTensorInfo(new WireReader(bytesSource(proto)), 0, proto.length).raw !== undefined
}

function filesUnder(folder: string, ending: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(folder, file))
    .toSorted()
}
