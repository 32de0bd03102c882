/**
 * Chunks of bytes -> lines, in bounded memory.
 *
 * Pure. A line ends at \n, \r\n or \r, so that progress bars that redraw one line are read too.
 * Empty lines are passed over, so a \r\n that two chunks share is one end, not two. Of a line
 * longer than MAX_LINE_LENGTH the beginning is given, the rest is passed over.
 */
import { stripVTControlCharacters } from 'node:util'

/** In characters. Log lines are a few hundred; at this length a slow regex still ends in time. */
export const MAX_LINE_LENGTH = 16_384

export class LineSplitter {
  readonly #decoder = new TextDecoder()
  readonly #onLine: (line: string) => void
  #rest = ''
  #overlong = false

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  write(chunk: Uint8Array): void {
    this.#split(this.#decoder.decode(chunk, { stream: true }))
  }

  end(): void {
    this.#split(this.#decoder.decode())
    if (this.#rest !== '') this.#endLine('')
  }

  #split(text: string): void {
    const parts = text.split(/\r\n|\n|\r/)
    const last = parts.pop() ?? ''
    for (const part of parts) this.#endLine(part)
    this.#keep(last)
  }

  #endLine(part: string): void {
    this.#keep(part)
    const line = this.#rest
    this.#rest = ''
    this.#overlong = false
    if (line !== '') this.#onLine(CONTROL.test(line) ? withoutControls(line) : line)
  }

  #keep(part: string): void {
    if (this.#overlong || part === '') return
    this.#rest += part.slice(0, MAX_LINE_LENGTH - this.#rest.length)
    this.#overlong = this.#rest.length >= MAX_LINE_LENGTH
  }
}

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F]/

/** Colours hide values from a regex, and a bell or a cursor movement is not for whoever reads an error. */
function withoutControls(line: string): string {
  return stripVTControlCharacters(line).replaceAll(new RegExp(CONTROL, 'g'), '')
}
