import { useSyncExternalStore } from 'react'
import { Null } from './table'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const pad = (n: number, width = 2) => String(n).padStart(width, '0')

/** How a time is written, in UTC: clock 14:02:17.403, minute 20 Nov 11:05, day 20 Nov 2026, full 2026-11-20 14:02:17.403 UTC. */
export type TimeForm = 'clock' | 'minute' | 'day' | 'full'

/** timeWords writes a time; an invalid one is given back as it came. */
export function timeWords(at: string | Date, form: TimeForm = 'minute'): string {
  const d = typeof at === 'string' ? new Date(at) : at
  if (Number.isNaN(d.getTime())) return String(at)
  const clock = `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}.${pad(d.getUTCMilliseconds(), 3)}`
  const day = `${d.getUTCDate()} ${months[d.getUTCMonth()] ?? ''}`
  switch (form) {
    case 'clock': return clock
    case 'minute': return `${day}${d.getUTCFullYear() === new Date().getUTCFullYear() ? '' : ` ${d.getUTCFullYear()}`} ${clock.slice(0, 5)}`
    case 'day': return `${day} ${d.getUTCFullYear()}`
    case 'full': return `${d.toISOString().slice(0, 10)} ${clock} UTC`
  }
}

/** Time shows a time in UTC, in full on hover. */
export function Time({ at, form = 'minute' }: { at: string | Date | null | undefined; form?: TimeForm }) {
  if (!at) return <Null />
  const iso = typeof at === 'string' ? at : at.toISOString()
  return <time dateTime={iso} title={timeWords(at, 'full')} className={form === 'clock' ? 'mono' : 'nowrap'}>{timeWords(at, form)}</time>
}

let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined
const subscribe = (listener: () => void) => {
  listeners.add(listener)
  timer ??= setInterval(() => { now = Date.now(); for (const one of listeners) one() }, 1000)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) { clearInterval(timer); timer = undefined }
  }
}

/** agoWords says how long ago: for liveness only (last used, last sent). */
export function agoWords(at: string | Date, from: number): string {
  const seconds = Math.max(0, Math.round((from - new Date(at).getTime()) / 1000))
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  const days = Math.floor(seconds / 86_400)
  return days === 1 ? '1 day ago' : `${days} days ago`
}

/** Ago counts on while it is shown. never stands for no time at all. */
export function Ago({ at, never = 'not yet' }: { at: string | Date | null | undefined; never?: string }) {
  const from = useSyncExternalStore(subscribe, () => now)
  if (!at) return <span className="second">{never}</span>
  return <time dateTime={typeof at === 'string' ? at : at.toISOString()} title={timeWords(at, 'full')} className="nowrap">{agoWords(at, Math.max(from, Date.now()))}</time>
}

/** duration writes milliseconds with their unit: 3.1 ms, 1.9 s. */
export function durationWords(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
}

/** countWords writes a count that may have stopped at its bound: "over 10,000". */
export function countWords(count: number, more?: boolean): string { return `${more ? 'over ' : ''}${count.toLocaleString('en')}` }

/** bytesWords writes a size: 142 B, 2.9 MiB. */
export function bytesWords(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}
