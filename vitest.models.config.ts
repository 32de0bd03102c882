import { onnx } from 'vitest-onnx'
import { defineConfig } from 'vitest/config'

/** The models of testdata/ as a user would test them: `npm start`. The package refers to itself, so build first. */
export default defineConfig({ plugins: [onnx()], test: { dir: 'testdata' } })
