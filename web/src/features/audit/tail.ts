import { useCallback, useEffect, useRef, useState } from 'react'
import type { LogEntry } from '../../api/admin'
import { urlOf } from '../../api/client'
import type { LogFilter } from './filter'

/** What a live tail has: entries newest first, how many wait while it is held, how many the server left out. */
export interface Tail { rows: readonly LogEntry[]; waiting: number; skipped: number; state: 'off' | 'connecting' | 'live' | 'ended'; isFresh: (id: string) => boolean; release: () => void }

const most = 500
const freshFor = 2000

/** useTail listens while on is set. Held, it keeps what comes apart, so that rows do not move under the reader. */
export function useTail(on: boolean, filter: LogFilter, held: boolean): Tail {
  const [rows, setRows] = useState<readonly LogEntry[]>([])
  const [apart, setApart] = useState<readonly LogEntry[]>([])
  const [skipped, setSkipped] = useState(0)
  const [state, setState] = useState<Tail['state']>('off')
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set())
  const holding = useRef(held)
  useEffect(() => { holding.current = held })
  const key = JSON.stringify(filter)
  useEffect(() => {
    setRows([]); setApart([]); setSkipped(0)
    if (!on) { setState('off'); return }
    let source: EventSource | undefined
    let last: string | undefined
    let again: ReturnType<typeof setTimeout> | undefined
    const timers = new Set<ReturnType<typeof setTimeout>>()
    const seen = new Set<string>()
    const open = () => {
      setState('connecting')
      source = new EventSource(urlOf('GET audit/tail', undefined, { ...(JSON.parse(key) as LogFilter), after: last }))
      source.onopen = () => { setState('live') }
      source.onerror = () => {
        if (source?.readyState !== EventSource.CLOSED) { setState('connecting'); return }
        setState('connecting')
        again = setTimeout(open, 3000)
      }
      source.addEventListener('entry', (event) => {
        const entry = JSON.parse((event as MessageEvent<string>).data) as LogEntry
        last = entry.id
        if (seen.has(entry.id)) return
        seen.add(entry.id)
        if (holding.current) { setApart((was) => [entry, ...was].slice(0, most)); return }
        setRows((was) => [entry, ...was].slice(0, most))
        setFresh((was) => new Set([...was, entry.id]))
        const timer = setTimeout(() => { timers.delete(timer); setFresh((was) => { const next = new Set(was); next.delete(entry.id); return next }) }, freshFor)
        timers.add(timer)
      })
      source.addEventListener('skipped', (event) => { const { count } = JSON.parse((event as MessageEvent<string>).data) as { count: number }; setSkipped((was) => was + count) })
      source.addEventListener('again', () => { source?.close(); open() })
      source.addEventListener('ended', () => { source?.close(); setState('ended') })
    }
    open()
    return () => { source?.close(); clearTimeout(again); for (const timer of timers) clearTimeout(timer) }
  }, [on, key])
  const release = useCallback(() => { setRows((was) => [...apart, ...was].slice(0, most)); setApart([]) }, [apart])
  return { rows, waiting: apart.length, skipped, state, isFresh: (id) => fresh.has(id), release }
}
