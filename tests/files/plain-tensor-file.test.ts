import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadTensors, readTensorRefs, writePlainTensorFile } from '../../src/files/tensor-file.ts'
import { type Tensor, tensor } from '../../src/tensor/tensor.ts'
import { floats } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

const ODD = ['=x', '~x', '__metadata__', '__proto__']

const TENSORS: ReadonlyMap<string, Tensor> = new Map<string, Tensor>([
  ...['x', '/a/b:0', '12', '3', '', ...ODD].map((name, at) => [name, floats([1], [at])] as const),
  ['words', tensor('string', [1], ['a'])],
  ['~words', tensor('string', [1], ['b'])],
])

function written(): string {
  const path = join(tempFolder(), 'values.safetensors')
  writePlainTensorFile(path, TENSORS)
  return path
}

test('other programs find the tensors by their names', () => {
  const bytes = readFileSync(written())
  const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE()))
  const { __metadata__: texts, ...entries } = JSON.parse(header.toString()) as Record<string, object>
  expect(Object.keys(entries).toSorted()).toEqual(
    ['x', '/a/b:0', '12', '3', '', ...ODD.map((name) => `=${name}`)].toSorted(),
  )
  expect(texts).toEqual({ words: '[[1],["a"]]', '=~words': '[[1],["b"]]' })
})

test('they come back as they were, whatever their names', () => {
  const loaded = loadTensors(readTensorRefs(written()))
  expect(new Map([...loaded].toSorted())).toEqual(new Map([...TENSORS].toSorted()))
})
