/** Models built in code, as files in a folder that goes with the worker. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ModelFile, openModel } from '../../src/files/model-file.ts'
import { buildModel, type ModelSpec } from '../../testdata/onnx-builder.ts'

const folder = mkdtempSync(join(tmpdir(), 'vitest-onnx-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

let count = 0

export function tempFolder(): string {
  return mkdtempSync(join(folder, 'dir-'))
}

export function tempModel(spec: ModelSpec, name = `model-${count++}.onnx`): ModelFile {
  return tempModelBytes(buildModel(spec), name)
}

export function tempModelBytes(bytes: Uint8Array, name = `model-${count++}.onnx`): ModelFile {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return openModel(path)
}
