/**
 * Rows of cells -> lines with columns of one width; columns named in `right` are flush right.
 *
 * Lines never end in spaces, so that what is printed can be compared in tests and diffs.
 */
export function textTable(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths = rows.reduce<number[]>((known, row) => widen(known, row), [])
  return rows.map((row) =>
    row
      .map((cell, i) => pad(cell, widths[i]!, right.includes(i)))
      .join('  ')
      .trimEnd(),
  )
}

function widen(widths: readonly number[], row: readonly string[]): number[] {
  const columns = Math.max(widths.length, row.length)
  return Array.from({ length: columns }, (_, i) => Math.max(widths[i] ?? 0, row[i]?.length ?? 0))
}

function pad(cell: string, width: number, isRight: boolean): string {
  return isRight ? cell.padStart(width) : cell.padEnd(width)
}
