/** Real processes that run `worker.ts`; starting one takes long, so they serve one test after the other. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answer, Request } from './worker.ts'

export class Workers {
  readonly #idle: ChildProcess[] = []
  readonly #all = new Set<ChildProcess>()

  async start(count: number): Promise<void> {
    this.#idle.push(...(await Promise.all(Array.from({ length: count }, () => this.#fork()))))
  }

  stop(): void {
    for (const child of this.#all) child.kill('SIGKILL')
  }

  /** Every request in a process of its own, all at once. */
  async race(requests: readonly Request[]): Promise<Answer[]> {
    await this.start(Math.max(0, requests.length - this.#idle.length))
    return Promise.all(requests.map((request) => this.run(request).answer))
  }

  /** Needs an idle process. */
  run(request: Request): Running {
    const child = this.#idle.pop()!
    const making = message<'making'>(child, (value) => value === 'making')
    const answer = message<Answer>(child, (value) => typeof value === 'object')
    child.send(request)
    return {
      making,
      answer: answer.then((value) => {
        this.#idle.push(child)
        return value
      }),
      async kill() {
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
      },
    }
  }

  async #fork(): Promise<ChildProcess> {
    const child = fork(fileURLToPath(new URL('worker.ts', import.meta.url)), {
      execArgv: ['--import', 'tsx'],
    })
    this.#all.add(child)
    await message(child, (value) => value === 'ready')
    return child
  }
}

export interface Running {
  /** When half of the entry is written. */
  readonly making: Promise<unknown>
  readonly answer: Promise<Answer>
  kill(): Promise<void>
}

function message<T>(child: ChildProcess, isIt: (value: unknown) => boolean): Promise<T> {
  return new Promise((resolve) => {
    child.on('message', function listener(value) {
      if (!isIt(value)) return
      child.off('message', listener)
      resolve(value as T)
    })
  })
}
