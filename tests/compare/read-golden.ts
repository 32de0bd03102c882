/** Numbers recorded with torch and numpy, where ../shared is there to give them. */
import { existsSync, readFileSync } from 'node:fs'
import { bytesSource } from '../../src/bytes/byte-source.ts'
import { openSafetensors, readSafetensor } from '../../src/tensor/safetensors.ts'
import type { Tensor } from '../../src/tensor/tensor.ts'

const shared = '../shared/data'

export function hasGolden(folder: string): boolean {
  return existsSync(`${shared}/${folder}/expected.json`)
}

/** Infinity and NaN are strings in the files. */
export function readGoldenJson(folder: string): unknown {
  if (!hasGolden(folder)) return undefined
  return JSON.parse(readFileSync(`${shared}/${folder}/expected.json`, 'utf8'), (_, value: unknown) =>
    value === 'NaN' || value === 'Infinity' || value === '-Infinity' ? Number(value) : value,
  )
}

export function readGoldenTensors(folder: string, name: string): Map<string, Tensor> {
  const file = openSafetensors(bytesSource(readFileSync(`${shared}/${folder}/${name}`)))
  return new Map([...file.entries.keys()].map((key) => [key, readSafetensor(file, key)]))
}
