/** What a test leaves in its meta, for reporters: where its time went, and how it ended. */
export interface OnnxMeta {
  /** Milliseconds by step, in the order of first use. */
  readonly timings: Readonly<Record<string, number>>
  /** A known failure that was tried and failed. */
  readonly isXfail?: boolean
}

export class Timings {
  isXfail = false
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
    const timings = Object.fromEntries(this.#steps)
    return this.isXfail ? { timings, isXfail: true } : { timings }
  }
}
