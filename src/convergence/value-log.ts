/**
 * Metric values by step, metric and label; a value logged again replaces the earlier one.
 */
import type { LoggedValue } from './parse-log-line.ts'

export interface MetricValue extends LoggedValue {
  readonly step: number
}

export class ValueLog {
  readonly #values = new Map<string, MetricValue>()

  add(step: number, logged: LoggedValue): void {
    const { metric, label, value } = logged
    this.#values.set(valueKey(step, logged), { step, metric, label, value: detached(value) })
  }

  get({ step, metric, label }: Omit<MetricValue, 'value'>): string | undefined {
    return this.#values.get(valueKey(step, { metric, label }))?.value
  }

  get size(): number {
    return this.#values.size
  }

  all(): MetricValue[] {
    return [...this.#values.values()]
  }
}

function valueKey(step: number, { metric, label }: Omit<LoggedValue, 'value'>): string {
  return JSON.stringify([step, metric, label])
}

/** V8 keeps the whole chunk of output alive for a part cut out of it: a copy lets it go. */
function detached(text: string): string {
  return Buffer.from(text).toString()
}
