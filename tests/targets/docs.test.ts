import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DEFAULT_CHIPS, parseSimChip } from '../../src/targets/sim/chip.ts'

const ROOT = join(import.meta.dirname, '../..')
const DOCS = readFileSync(join(ROOT, 'docs/targets.md'), 'utf8')

test('the target in docs/targets.md is the example that the contract runs', () => {
  const example = readFileSync(join(ROOT, 'examples/custom-target/half-inputs.mjs'), 'utf8')
  expect(DOCS).toContain(`\`\`\`js\n${example}\`\`\``)
})

test('the chip file in docs/targets.md is one, and the chips of sim are all named', () => {
  const [, chip] = /```json\n([\s\S]*?)```/.exec(DOCS)!
  expect(parseSimChip(chip!, 'chips/small.json')).toMatchObject({ name: 'small', storage: 'float16' })
  for (const { name } of DEFAULT_CHIPS) expect(DOCS).toContain(`\`${name}\``)
})
