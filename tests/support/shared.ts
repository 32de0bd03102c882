/** Files outside the project that tests use where they are present. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const SHARED: string = resolve(import.meta.dirname, '../../../shared/data')
export const hasShared: boolean = existsSync(join(SHARED, 'models/MANIFEST.json'))

export interface SharedModel {
  readonly file: string
  readonly path: string
  readonly runsOnOrtCpu: boolean
  readonly shapes: Readonly<Record<string, readonly number[]>>
  readonly values: Readonly<Record<string, readonly number[]>>
  /** Integers above this are out of range for some input. */
  readonly intmax: number | undefined
}

interface ManifestEntry {
  readonly file: string
  readonly runsOnOrtCpu?: boolean
  readonly testedWith?: Pick<SharedModel, 'shapes' | 'values' | 'intmax'>
}

export function sharedModels(): SharedModel[] {
  if (!hasShared) return []
  const manifest = JSON.parse(readFileSync(join(SHARED, 'models/MANIFEST.json'), 'utf8')) as {
    files: ManifestEntry[]
  }
  return manifest.files
    .filter(({ file }) => file.endsWith('.onnx'))
    .map(({ file, runsOnOrtCpu = false, testedWith }) => ({
      file,
      path: join(SHARED, 'models', file),
      runsOnOrtCpu,
      shapes: testedWith?.shapes ?? {},
      values: testedWith?.values ?? {},
      intmax: testedWith?.intmax,
    }))
}
