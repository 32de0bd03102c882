/**
 * Names with `*` for any run of characters, none included; every other character is itself.
 */
export function isPattern(text: string): boolean {
  return text.includes('*')
}

export function matchesPattern(pattern: string, name: string): boolean {
  const [start = '', ...rest] = pattern.split('*')
  const end = rest.pop()
  if (end === undefined) return name === pattern
  if (!name.startsWith(start)) return false
  let at = start.length
  for (const piece of rest) {
    const found = name.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return name.length - at >= end.length && name.endsWith(end)
}
