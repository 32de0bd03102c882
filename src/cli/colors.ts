/** Colours on terminals only: the library itself also paints whenever the variable CI is set. */
import pc from 'picocolors'

type Colors = ReturnType<typeof pc.createColors>

export const colors: Colors = pc.createColors(paints(process.stdout))
export const errorColors: Colors = pc.createColors(paints(process.stderr))

function paints({ isTTY }: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, FORCE_COLOR } = process.env
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '0') return true
  return isTTY === true
}
