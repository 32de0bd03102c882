/** Text -> the same text inside HTML or SVG. */
export function escapeMarkup(text: string): string {
  return text
    .replace(NOT_ALLOWED, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

// Control characters and lone surrogates make an SVG that no browser opens.
// oxlint-disable-next-line no-control-regex
const NOT_ALLOWED = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Surrogate}/gu
