/**
 * Who works on a file: a process that others can find dead.
 *
 * A number alone is not enough: numbers are given again, and other hosts that share the folder
 * have their own.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

export interface ProcessOwner {
  readonly pid: number
  readonly host: string
  /** When the process began, in the kernel's own units; '0' where the system does not say. */
  readonly started: string
}

let self: ProcessOwner | undefined

export function thisProcess(): ProcessOwner {
  self ??= { pid: process.pid, host: hostMark(), started: stateOf(process.pid)?.started ?? '0' }
  return self
}

/** 'unknown' for a process of another host. */
export function processState(owner: ProcessOwner): 'alive' | 'dead' | 'unknown' {
  const me = thisProcess()
  if (owner.host !== me.host) return 'unknown'
  if (owner.pid === me.pid) return owner.started === me.started ? 'alive' : 'dead'
  if (!answers(owner.pid)) return 'dead'
  const state = stateOf(owner.pid)
  if (state === undefined || owner.started === '0') return 'alive'
  return state.isZombie || state.started !== owner.started ? 'dead' : 'alive'
}

/** Short and safe in a file name. */
function hostMark(): string {
  return createHash('sha256').update(hostname()).digest('hex').slice(0, 8)
}

function answers(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: there is such a process, of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Linux only. The name of the program, in parentheses, may hold anything; what follows it is plain. */
function stateOf(pid: number): { readonly started: string; readonly isZombie: boolean } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const started = fields[STARTED_FIELD]
    return started === undefined ? undefined : { started, isZombie: fields[0] === 'Z' }
  } catch {
    return undefined
  }
}

/** Field 22 of proc(5), counted from the state, which is field 3. */
const STARTED_FIELD = 22 - 3
