/** `npm run bench -- <name> [--json]`: runs a benchmark and prints its figures beside their goals. */
import { type Figure, isMissed, renderSection, type Section } from './figures.ts'
import { describeMachine } from './measure.ts'
import { split } from './split.ts'
import { suite } from './suite.ts'

interface Bench {
  readonly about: string
  readonly run: () => AsyncIterable<Section>
}

const BENCHES: ReadonlyMap<string, Bench> = new Map([
  ['split', { about: 'opening models, taking them apart, extracting layers', run: split }],
  ['suite', { about: 'the tests of models under Vitest', run: suite }],
])

const USAGE = 2

await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<void> {
  const [name = '', ...others] = args.filter((arg) => arg !== '--json')
  const bench = BENCHES.get(name)
  if (bench === undefined || others.length > 0) {
    process.stderr.write(usage(others.length > 0 ? others[0]! : name))
    process.exitCode = USAGE
    return
  }
  await (args.includes('--json') ? runAsJson(name, bench) : runAsText(name, bench))
}

async function runAsText(name: string, bench: Bench): Promise<void> {
  console.log(`${name}: ${bench.about}\n${describeMachine()}; times are medians\n`)
  const figures: Figure[] = []
  for await (const section of bench.run()) {
    console.log(`${renderSection(section)}\n`)
    figures.push(...section.figures)
  }
  const [goals, missed] = [figures.filter(({ goal }) => goal !== undefined), figures.filter(isMissed)]
  console.log(`${goals.length - missed.length} of ${goals.length} goals met`)
}

async function runAsJson(name: string, bench: Bench): Promise<void> {
  const sections: Section[] = []
  for await (const section of bench.run()) sections.push(section)
  console.log(JSON.stringify({ bench: name, machine: describeMachine(), sections }, null, 2))
}

function usage(unknown: string): string {
  const names = [...BENCHES].map(([name, { about }]) => `  ${name}  ${about}`)
  const problem = unknown === '' ? '' : `There is no benchmark "${unknown}".\n\n`
  return `${problem}Usage: npm run bench -- <name> [--json]\n\n${names.join('\n')}\n`
}
