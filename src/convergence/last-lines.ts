/**
 * The last lines of a stream, each cut to a length that is fit to show.
 */
export class LastLines {
  readonly #lines: string[] = []

  add(line: string): void {
    this.#lines.push(line)
    if (this.#lines.length > MAX_LINES) this.#lines.shift()
  }

  all(): string[] {
    return this.#lines.map((line) => (line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}…` : line))
  }
}

const MAX_LINES = 15
const MAX_SHOWN = 300
