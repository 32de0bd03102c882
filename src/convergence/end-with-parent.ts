/**
 * Ends processes of a group of their own when this process ends, be it by a signal.
 *
 * Edge. Ctrl-C in a terminal reaches this process but not the groups it made; under Vitest it ends
 * the worker at once, and the training would go on alone.
 */
const running = new Set<() => void>()

/** `kill` is called when this process is about to end. Returns what takes it back. */
export function endWithParent(kill: () => void): () => void {
  if (running.size === 0) listen()
  running.add(kill)
  return () => {
    running.delete(kill)
    if (running.size === 0) unlisten()
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function listen(): void {
  process.on('exit', killAll)
  for (const signal of SIGNALS) process.on(signal, onSignal)
}

function unlisten(): void {
  process.off('exit', killAll)
  for (const signal of SIGNALS) process.off(signal, onSignal)
}

function killAll(): void {
  for (const kill of running) kill()
}

/** A program that listens too decides by itself; without one, the signal ends the process as ever. */
function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return
  killAll()
  unlisten()
  process.kill(process.pid, signal)
}
