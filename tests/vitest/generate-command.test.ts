import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { generateCommand } from '../../src/cli/generate.ts'
import { buildModel } from '../../testdata/onnx-builder.ts'
import { tempFolder } from '../support/temp-model.ts'

afterEach(() => {
  vi.restoreAllMocks()
  process.exitCode = undefined
})

interface Outcome {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: typeof process.exitCode
}

async function generate(folder: string, ...args: readonly string[]): Promise<Outcome> {
  const [stdout, stderr] = [vi.spyOn(process.stdout, 'write'), vi.spyOn(process.stderr, 'write')]
  for (const stream of [stdout, stderr]) stream.mockReset().mockReturnValue(true)
  process.exitCode = undefined
  const folders = ['--testdata', join(folder, 'testdata'), '--output', join(folder, 'out')]
  await generateCommand().parseAsync([...folders, ...args], { from: 'user' })
  const textOf = (stream: typeof stdout): string => stream.mock.calls.map(([text]) => String(text)).join('')
  return { stdout: textOf(stdout), stderr: textOf(stderr), exitCode: process.exitCode }
}

function folderWithModel(): string {
  const folder = tempFolder()
  mkdirSync(join(folder, 'testdata'))
  const spec = { nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }] }
  writeFileSync(
    join(folder, 'testdata/m.onnx'),
    buildModel({ ...spec, inputs: { x: ['float32', [1]] }, outputs: { y: ['float32', [1]] } }),
  )
  return folder
}

test('a check fails until the files are written', async () => {
  const folder = folderWithModel()
  const before = await generate(folder, '--check')
  expect(before.exitCode).toBe(1)
  expect(before.stdout).toMatch(/added: .*out\/m\.onnx\.test\.ts/)
  expect(before.stderr).toContain('run vitest-onnx generate without --check')

  const written = await generate(folder)
  expect(written.stdout).toMatch(
    /test files of 1 models\n {2}added +1\n {2}changed +0\n {2}removed +0\n {2}unchanged +0/,
  )
  expect(await generate(folder, '--check')).toMatchObject({ exitCode: undefined, stderr: '' })
})

test('JSON names models, files and tags', async () => {
  const { stdout } = await generate(folderWithModel(), '--json')
  expect(JSON.parse(stdout)).toEqual({
    models: [{ id: 'm.onnx', name: 'm', files: [expect.stringMatching(/out\/m\.onnx\.test\.ts$/)] }],
    tags: ['chip/default', 'full', 'layer', 'op/Relu', 'target/sim'],
    added: [expect.stringMatching(/out\/m\.onnx\.test\.ts$/)],
    changed: [],
    removed: [],
    unchanged: 0,
  })
})

test('where there are no models it says where it looked', async () => {
  const folder = tempFolder()
  const { stderr } = await generate(folder)
  expect(stderr).toContain(`there is no .onnx file in ${join(folder, 'testdata')}`)
})
