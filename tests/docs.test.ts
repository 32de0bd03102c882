import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { environmentTable } from '../src/suite/environment.ts'

const read = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8')

test('every error code is a heading in docs/errors.md, and no other is', () => {
  const [declaration] = /export type ErrorCode =[\s\S]*?\n\n/.exec(read('src/errors.ts'))!
  const codes = [...declaration.matchAll(/'([A-Z_]+)'/g)].map(([, code]) => code)
  const headings = [...read('docs/errors.md').matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading)
  expect(headings.toSorted()).toEqual(codes.toSorted())
})

test('the README lists the environment variables of the code', () => {
  expect(read('README.md')).toContain(environmentTable().trim())
})
