/** What the commands print: tables, sizes, progress; colours and live lines only on a terminal. */
import { colors, errorColors } from './colors.ts'

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown, replacer?: (key: string, value: unknown) => unknown): void {
  print(JSON.stringify(value, replacer, 2))
}

/** A remark that is no result: goes to stderr, so that stdout can be piped. */
export function note(text: string): void {
  process.stderr.write(`${errorColors.dim('note:')} ${text}\n`)
}

export function heading(text: string): string {
  return colors.bold(text)
}

/** Columns as wide as their widest cell; numbers to the right. */
export function table(rows: readonly (readonly (string | number)[])[], indent = '  '): string {
  const widths = rows.reduce<number[]>((all, row) => {
    for (const [at, cell] of row.entries()) all[at] = Math.max(all[at] ?? 0, shown(cell).length)
    return all
  }, [])
  const line = (row: readonly (string | number)[]): string =>
    row
      .map((cell, at) =>
        typeof cell === 'number' ? shown(cell).padStart(widths[at]!) : shown(cell).padEnd(widths[at]!),
      )
      .join('  ')
      .trimEnd()
  return rows.map((row) => `${indent}${line(row)}`).join('\n')
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let [size, unit] = [bytes, 0]
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 2 : 1)} ${units[unit]}`
}

/** Control characters in a model's names must not reach the terminal. */
export function safe(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

export interface Progress {
  update(text: string): void
  done(): void
}

/** A line on stderr that is rewritten; shown once the work has taken a second, and only on a terminal. */
export function startProgress(what: string): Progress {
  const started = performance.now()
  let shownAt = 0
  const isLive = process.stderr.isTTY
  return {
    update(text) {
      const now = performance.now()
      if (!isLive || now - started < 1000 || now - shownAt < 100) return
      shownAt = now
      process.stderr.write(`\r\u001b[2K${what}: ${text}`)
    },
    done() {
      if (shownAt > 0) process.stderr.write('\r\u001b[2K')
    },
  }
}

function shown(cell: string | number): string {
  return typeof cell === 'number' ? cell.toLocaleString('en-US') : safe(cell)
}
