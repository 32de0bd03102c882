/** Where the time of a test went: step -> milliseconds, in the order of first use. */
export interface OnnxMeta {
  readonly timings: Readonly<Record<string, number>>
}

export class Timings {
  readonly #steps = new Map<string, number>()

  async time<T>(step: string, work: () => T | Promise<T>): Promise<T> {
    const started = performance.now()
    try {
      return await work()
    } finally {
      this.#steps.set(step, (this.#steps.get(step) ?? 0) + performance.now() - started)
    }
  }

  meta(): OnnxMeta {
    return { timings: Object.fromEntries(this.#steps) }
  }
}
