/** What a test leaves in its meta, for reporters: where its time went, and how it ended. */
export interface OnnxMeta {
  /** Milliseconds by step, in the order of first use. */
  readonly timings: Readonly<Record<string, number>>
  /** A known failure that was tried and failed. */
  readonly isXfail?: boolean
  /** A known failure that was tried and passed. */
  readonly isUnexpectedPass?: boolean
  /** Why it was skipped. */
  readonly skipped?: string
}

export class Timings {
  isXfail = false
  isUnexpectedPass = false
  skipped: string | undefined
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
    return {
      timings: Object.fromEntries(this.#steps),
      ...(this.isXfail ? { isXfail: true } : {}),
      ...(this.isUnexpectedPass ? { isUnexpectedPass: true } : {}),
      ...(this.skipped === undefined ? {} : { skipped: this.skipped }),
    }
  }
}
