import { defineProject, type TestProjectConfiguration } from 'vitest/config'

/** The projects of `vitest.config.ts`: fast tests run in shared workers, e2e tests start real processes. */
const projects: TestProjectConfiguration[] = [
  defineProject({
    test: {
      name: 'unit',
      include: ['tests/**/*.test.ts'],
      exclude: ['tests/e2e/**'],
      isolate: false,
      pool: 'forks',
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
  }),
  defineProject({
    test: {
      name: 'e2e',
      include: ['tests/e2e/**/*.test.ts'],
      pool: 'forks',
      testTimeout: 180_000,
      hookTimeout: 300_000,
    },
  }),
]

export default projects
