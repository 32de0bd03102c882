/**
 * A regular expression of the config -> a pattern that turns a log line into labelled values.
 *
 * Pure. Configs written for Python's `re` work: its named groups, inline flags at the start and
 * `\A`, `\Z` are translated, because JavaScript would read `\Z` as the letter Z and match nothing.
 */
export interface LogPattern {
  readonly regex: RegExp
  readonly groups: number
  /** One name per group: the config's labels, or "0", "1", … where they do not fit the groups. */
  readonly labels: readonly string[]
}

/** Throws a SyntaxError for a text that is no regular expression. */
export function compileLogPattern(text: string, labels: readonly string[] = []): LogPattern {
  const { source, flags } = fromPython(text)
  const regex = new RegExp(source, flags)
  const groups = countGroups(source, flags)
  return { regex, groups, labels: labels.length === groups ? labels : indices(groups) }
}

/** The groups of the first match by label; undefined where the line does not match. */
export function matchLine(pattern: LogPattern, line: string): Map<string, string> | undefined {
  const match = pattern.regex.exec(line)
  if (match === null) return undefined

  const values = new Map<string, string>()
  for (const [index, label] of pattern.labels.entries()) {
    const value = match[index + 1]
    if (value !== undefined) values.set(label, value.trim())
  }
  return values
}

/** The text of the only group. */
export function matchOne(pattern: LogPattern, line: string): string | undefined {
  return pattern.regex.exec(line)?.[1]
}

function fromPython(text: string): { source: string; flags: string } {
  const inline = /^\(\?([aimsu]+)\)/.exec(text)
  const flags = [...(inline?.[1] ?? '')].filter((flag) => 'ims'.includes(flag)).join('')
  const body = inline === null ? text : text.slice(inline[0].length)
  return { source: body.replace(PYTHON_ONLY, translate), flags }
}

// Escapes and character classes are matched so that they are passed over whole.
const PYTHON_ONLY = /\[(?:\\.|[^\]\\])+\]|\\.|\(\?P<|\(\?P=(\w+)\)/gs

function translate(token: string, backReference: string | undefined): string {
  if (token === '\\A') return '^'
  if (token === '\\Z') return '$'
  if (token === '(?P<') return '(?<'
  return backReference === undefined ? token : `\\k<${backReference}>`
}

/** With an empty alternative the expression always matches, and a match tells all groups. */
function countGroups(source: string, flags: string): number {
  const match = new RegExp(`${source}|`, flags).exec('')
  return match === null ? 0 : match.length - 1
}

function indices(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index))
}
