import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import type { LogBucket, LogEntry, LogMeta } from '../../api/admin'
import { ask, askPage, type Page } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { usePaged } from '../../ui/paged'
import { ranges, type LogFilter, type Range } from './filter'

const pageSize = 50
/** How long one page is looked for: the server searches a moment at a time, and says how far it came. */
const patience = 4000

export interface Span { from: string; to: string | undefined; fromMs: number; toMs: number }

/** useSpan is the time that is looked at. The last hours stay the same hours until something is asked anew. */
export function useSpan(range: Range, zoom: { from: string; to: string } | undefined, nonce: number): Span {
  const zoomFrom = zoom?.from; const zoomTo = zoom?.to
  return useMemo(() => {
    void nonce
    if (zoomFrom && zoomTo) return { from: zoomFrom, to: zoomTo, fromMs: Date.parse(zoomFrom), toMs: Date.parse(zoomTo) }
    const end = Math.ceil((Date.now() + 1) / 60_000) * 60_000
    const begin = end - ranges[range].seconds * 1000
    return { from: new Date(begin).toISOString(), to: undefined, fromMs: begin, toMs: end }
  }, [range, zoomFrom, zoomTo, nonce])
}

/** useLog is one page of the log. A search that comes to nothing goes on for some seconds; meta says where it stopped. */
export function useLog(filter: LogFilter, span: Span) {
  return usePaged<LogEntry, LogMeta>({
    key: ['audit', filter, span.from, span.to],
    load: async (cursor, signal) => {
      const end = Date.now() + patience
      let page: Page<LogEntry[], LogMeta> = await askPage('GET audit', { query: { ...filter, from: span.from, to: span.to, limit: pageSize, cursor }, signal })
      while (page.rows.length < pageSize && page.meta.nextCursor && Date.now() < end) {
        const next = await askPage('GET audit', { query: { ...filter, from: span.from, to: span.to, limit: pageSize - page.rows.length, cursor: page.meta.nextCursor }, signal })
        page = { rows: [...page.rows, ...next.rows], meta: next.meta }
      }
      return page
    },
  })
}

/** useEntry is one entry with its request and answer. */
export function useEntry(id: string | undefined) {
  const query = useQuery({ queryKey: ['audit', 'entry', id], enabled: id !== undefined, staleTime: Infinity, queryFn: ({ signal }) => ask('GET audit/{id}', { params: { id: id ?? '' }, signal }) })
  return { entry: query.data, error: query.error ? asError(query.error) : undefined, retry: () => { void query.refetch() } }
}

export interface Counted { buckets: LogBucket[]; countedTo: number; complete: boolean; error: ApiError | undefined }

const parts = 12

/** useHistogram counts the log part by part, the newest first, and shows what it has meanwhile; more goes on after a stop. */
export function useHistogram(filter: LogFilter, span: Span, buckets: number): Counted & { more: () => void; waiting: boolean } {
  const empty = useMemo<Counted>(() => ({ buckets: Array.from({ length: buckets }, () => ({ answered: 0, refused: 0, failed: 0 })), countedTo: span.toMs, complete: false, error: undefined }), [buckets, span])
  const key = JSON.stringify([filter, span.from, span.to, buckets])
  const [state, setState] = useState<{ key: string; counted: Counted; cursor: string | undefined }>({ key, counted: empty, cursor: undefined })
  const [rounds, setRounds] = useState(1)
  const [busy, setBusy] = useState(true)
  useEffect(() => {
    const stop = new AbortController()
    const run = async () => {
      setBusy(true)
      let { counted, cursor } = state.key === key ? state : { counted: empty, cursor: undefined }
      if (state.key === key && counted.complete) { setBusy(false); return }
      try {
        for (let i = 0; i < parts && !stop.signal.aborted; i++) {
          const page = await askPage('GET audit/histogram', { query: { ...filter, from: span.from, to: new Date(span.toMs).toISOString(), buckets, cursor }, signal: stop.signal })
          const sums = counted.buckets.map((b, j) => {
            const add = page.rows.buckets[j]
            return add ? { answered: b.answered + add.answered, refused: b.refused + add.refused, failed: b.failed + add.failed } : b
          })
          counted = { buckets: sums, countedTo: Date.parse(page.meta.countedTo), complete: page.meta.complete, error: undefined }
          cursor = page.meta.nextCursor ?? undefined
          setState({ key, counted, cursor })
          if (counted.complete) break
        }
      } catch (thrown) {
        if (!stop.signal.aborted) setState({ key, counted: { ...counted, error: asError(thrown) }, cursor })
      }
      if (!stop.signal.aborted) setBusy(false)
    }
    void run()
    return () => { stop.abort() }
  }, [key, rounds]) // eslint-disable-line react-hooks/exhaustive-deps -- key stands for the filter and the span; state is where the last round stopped
  const shown = state.key === key ? state.counted : empty
  return { ...shown, waiting: busy, more: () => { setRounds((n) => n + 1) } }
}
