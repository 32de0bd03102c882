/**
 * Events -> progress on a stream: one line that is redrawn on a terminal, plain lines elsewhere.
 */
import type { ConvergenceEvent } from './events.ts'
import type { Paint } from './render-table.ts'
import { metricTitle } from './render-table.ts'

export interface ProgressStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** Between two redraws on a terminal, and two lines of steps elsewhere. */
const REDRAW_MS = 100
const PLAIN_MS = 10_000

export class Progress {
  readonly #stream: ProgressStream
  readonly #paint: Paint
  readonly #interval: number
  #shownAt = 0
  #checkpoints = 0
  #values = new Map<string, string>()

  constructor(stream: ProgressStream, paint: Paint) {
    this.#stream = stream
    this.#paint = paint
    this.#interval = stream.isTTY === true ? REDRAW_MS : PLAIN_MS
  }

  readonly show = (event: ConvergenceEvent): void => {
    if (event.kind === 'step') this.#showStep(event)
    else if (event.kind === 'started') this.#start(event)
    else this.#print(this.#describe(event))
  }

  /** Takes the redrawn line away. */
  clear(): void {
    if (this.#stream.isTTY === true) this.#stream.write('\r\u001B[2K')
  }

  #start({ test, command, startStep }: Extract<ConvergenceEvent, { kind: 'started' }>): void {
    this.#values = new Map()
    this.#shownAt = Date.now()
    const where = startStep === null ? '' : ` from step ${startStep}`
    this.#print(`${test}${where}: ${this.#paint.dim(command.map(quote).join(' '))}`)
  }

  #describe(event: Exclude<ConvergenceEvent, { kind: 'step' | 'started' }>): string {
    const { test } = event
    switch (event.kind) {
      case 'saved':
        return `${test}: step ${event.startStep}, saved ${event.checkpoint}`
      case 'recorded':
        this.#checkpoints += 1
        return `${test}: recorded ${event.steps} steps after step ${event.startStep}`
      case 'judged':
        return `${test}: from step ${event.result.startStep}: ${this.#verdict(event.result.outcome)}`
      case 'warning':
        return `${test}: warning: ${event.message}`
    }
  }

  #showStep({ test, step, values }: Extract<ConvergenceEvent, { kind: 'step' }>): void {
    for (const value of values) this.#values.set(metricTitle(value), value.value)
    if (Date.now() - this.#shownAt < this.#interval) return
    this.#shownAt = Date.now()

    const metrics = [...this.#values].map(([name, value]) => `${name} ${value}`)
    const recorded = this.#checkpoints === 0 ? [] : [`${this.#checkpoints} checkpoints recorded`]
    const line = [`${test}: step ${step}`, ...recorded, ...metrics].join(', ')
    if (this.#stream.isTTY === true) this.#redraw(line)
    else this.#print(line)
  }

  #redraw(line: string): void {
    this.#stream.write(`\r\u001B[2K${line.slice(0, (this.#stream.columns ?? 80) - 1)}`)
  }

  #print(line: string): void {
    this.clear()
    this.#stream.write(`${line}\n`)
  }

  #verdict(outcome: string): string {
    return outcome === 'passed' ? this.#paint.good(outcome) : this.#paint.bad(outcome)
  }
}

function quote(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
