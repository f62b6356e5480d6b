import { IconChevronRight, IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import type { LogEntry } from '../../api/admin'
import { ask } from '../../api/client'
import { useMay } from '../../app/session'
import { Button } from '../../ui/button'
import { Chart, Legend } from '../../ui/chart'
import { Person } from '../../ui/face'
import { Segmented } from '../../ui/field'
import { FilterBar, type FilterDef } from '../../ui/filters'
import { Chip, Status } from '../../ui/list'
import { Page } from '../../ui/page'
import { clearPage } from '../../ui/paged'
import { Empty, Note } from '../../ui/states'
import { DataTable, Null, Pager, type Column } from '../../ui/table'
import { countWords, durationWords, Time, timeWords } from '../../ui/time'
import { useUrl, useUrlValue } from '../../ui/url'
import { EntryDetail } from './detail'
import { filterOf, isFiltered, rangeOf, ranges, zoomOf, type Range } from './filter'
import { credentialWords, whoOf } from './gates'
import { useEntry, useHistogram, useLog, useSpan } from './queries'
import { useTail, type Tail } from './tail'
import './audit.css'

const columns: readonly Column<LogEntry>[] = [
  { key: 'time', head: 'Time', width: 152, narrow: 'sub', cell: (e) => <span className="row"><IconChevronRight className="chev hide-s" size={14} stroke={1.7} aria-hidden /><Time at={e.time} form="clock" /></span> },
  { key: 'status', head: 'Status', width: 62, cell: (e) => <Status code={e.status} /> },
  { key: 'request', head: 'Request', narrow: 'title', mono: true, cell: (e) => <span className="row"><span className="onlynarrow"><Status code={e.status} /></span><span className="muted method">{e.method}</span><span className="trunc">{shortPath(e.path)}</span>{e.code && <span className="muted s12 trunc">{e.code}</span>}</span> },
  { key: 'user', head: 'User', width: 190, narrow: 'subend', cell: (e) => { const who = whoOf(e.user); return who ? <Person name={who} /> : <Chip kind="line">{e.credential ?? 'none'}</Chip> } },
  { key: 'key', head: 'Key', width: 150, cell: (e) => <span className="second trunc">{e.key?.name ?? (e.key ? `${e.key.prefix}…` : credentialWords(e.credential))}</span> },
  { key: 'ip', head: 'Address', width: 130, mono: true, cell: (e) => (e.ip ? <span className="muted">{e.ip}</span> : <Null />) },
  { key: 'took', head: 'Took', width: 90, num: true, narrow: 'end', cell: (e) => durationWords(e.durationMs) },
]

function shortPath(path: string): string { return path.replace(/^\/(public|admin)\/v1/, (_, surface: string) => (surface === 'admin' ? '/admin' : '')) || path }

const credentials = ['KEY', 'JWT', 'TOKEN', 'SIGNED', 'SESSION', 'none'].map((value) => ({ value, label: value === 'none' ? 'none' : credentialWords(value) }))
const statuses = ['errors', '2xx', '4xx', '5xx', '400', '401', '403', '404', '409', '422', '429', '500', '503', '504'].map((value) => ({ value, label: value }))

async function findUsers(text: string, signal: AbortSignal) {
  const found = await ask('GET users', { query: { search: text || undefined, limit: 20 }, signal })
  return found.map((u) => ({ value: u.id, label: u.name ? `${u.name} · ${u.email}` : u.email }))
}

async function findKeys(text: string, signal: AbortSignal) {
  const found = await ask('GET keys', { query: { limit: 200 }, signal })
  return found.filter((k) => k.name.toLowerCase().includes(text.toLowerCase())).map((k) => ({ value: k.id, label: k.name }))
}

async function findEndpoints(text: string, signal: AbortSignal) {
  const [entities, custom] = await Promise.all([ask('GET data', { signal }), ask('GET endpoints', { signal })])
  const all = ['/data/*', '/me', '/custom/*', '/auth/*', '/admin/*', ...entities.map((e) => `/data/${e.name}`), ...custom.map((e) => `/custom/${e.slug}`)]
  const typed = text.trim()
  return [...new Set([...(typed.includes(',') ? [typed] : []), ...all])].filter((e) => e.includes(typed)).map((value) => ({ value, label: value }))
}

const short = (id: string) => (id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id)

/** Audit log: every request that is kept, what came of it, and at which gate it stopped. */
export default function AuditPage() {
  const [url, setUrl] = useUrl()
  const [row, setRow] = useUrlValue('row')
  const [live, setLive] = useUrlValue('live')
  const [nonce, setNonce] = useState(0)
  const [scrolled, setScrolled] = useState(false)
  const seesUsers = useMay(['manage_users', 'can_manage_external_users'])
  const range = rangeOf(url); const zoom = zoomOf(url); const filter = filterOf(url)
  const span = useSpan(range, zoom, nonce)
  const list = useLog(filter, span)
  const histogram = useHistogram(filter, span, buckets)
  const { entry } = useEntry(row)
  const tail = useTail(live === '1', filter, scrolled)
  const rows = useMemo(() => merge(tail.rows, list.rows, entry), [tail.rows, list.rows, entry])
  const defs = useMemo<readonly FilterDef[]>(() => [
    { name: 'endpoint', label: 'Endpoint', always: true, load: findEndpoints },
    { name: 'user', label: 'User', always: true, show: short, ...(seesUsers ? { load: findUsers } : { placeholder: 'id or your own address' }) },
    { name: 'key', label: 'Key', always: true, load: findKeys, show: short },
    { name: 'status', label: 'Status', options: statuses },
    { name: 'credential', label: 'Credential', options: credentials },
    { name: 'method', label: 'Method', options: ['GET', 'POST', 'PATCH', 'DELETE'].map((value) => ({ value, label: value })) },
    { name: 'ip', label: 'Address', placeholder: '203.0.113.7' },
  ], [seesUsers])
  const choose = (next: Range) => { setUrl({ range: next === '24h' ? undefined : next, from: undefined, to: undefined, ...clearPage }); setNonce((n) => n + 1) }
  return (
    <Page title="Audit log" flush count={<Total counted={histogram} range={range} zoomed={zoom !== undefined} />}
      acts={<LiveButton tail={tail} on={live === '1'} toggle={() => { setLive(live === '1' ? undefined : '1'); if (live !== '1') setUrl(clearPage) }} />}>
      <FilterBar defs={defs} search="q" searchLabel="Request id, path or IP">
        <Segmented label="Time" value={zoom ? ('' as Range) : range} options={(Object.keys(ranges) as Range[]).map((value) => ({ value, label: ranges[value].label }))} onChange={choose} />
        {zoom && <span className="fchip"><span className="fvalue"><b>{timeWords(zoom.from)} to {timeWords(zoom.to).slice(-5)}</b></span><button type="button" className="x" aria-label="Remove the zoom" onClick={() => { setUrl({ from: undefined, to: undefined, ...clearPage }) }}>×</button></span>}
        <Segmented label="Status" value={filter.status === 'errors' ? 'errors' : 'all'} options={[{ value: 'all', label: 'All' }, { value: 'errors', label: 'Errors only' }]} onChange={(next) => { setUrl({ status: next === 'errors' ? next : undefined, ...clearPage }) }} />
      </FilterBar>
      <Histogram counted={histogram} span={span} onZoom={(from, to) => { setUrl({ from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString(), ...clearPage }) }} />
      <LiveNote tail={tail} />
      <DataTable label="Audit log" columns={columns} rows={rows} rowKey={(e) => e.id} loading={list.loading} error={list.error} onRetry={() => { void list.query.refetch() }}
        what="The audit log could not be loaded." onOpen={(e) => { setRow(row === e.id ? undefined : e.id, { push: true }) }} expanded={row} detail={(e) => <EntryDetail id={e.id} />}
        fresh={(e) => tail.isFresh(e.id)} onScroll={(top) => { setScrolled(top > 40) }}
        empty={<Nothing searchedTo={list.meta?.searchedTo} filtered={isFiltered(filter)} onMore={list.pager.hasMore ? list.pager.onNext : undefined} />}
        footer={<Pager {...list.pager} newer><span className="muted">times are UTC</span></Pager>} />
    </Page>
  )
}

/** merge puts what came live before the page, and an entry that was linked to where it belongs, each once. */
function merge(tail: readonly LogEntry[], page: readonly LogEntry[] | undefined, linked: LogEntry | undefined): readonly LogEntry[] | undefined {
  if (!page) return linked ? [linked] : undefined
  const seen = new Set<string>()
  const all = [...tail, ...page].filter((e) => { const had = seen.has(e.id); seen.add(e.id); return !had })
  if (!linked || seen.has(linked.id)) return all
  const at = all.findIndex((e) => e.id < linked.id)
  return at < 0 ? [...all, linked] : [...all.slice(0, at), linked, ...all.slice(at)]
}

type Counting = ReturnType<typeof useHistogram>

function Total({ counted: h, range, zoomed }: { counted: Counting; range: Range; zoomed: boolean }) {
  const sum = h.buckets.reduce((n, b) => n + b.answered + b.refused + b.failed, 0)
  return <>{countWords(sum, !h.complete)} {sum === 1 ? 'request' : 'requests'} {zoomed ? 'in this span' : `in ${ranges[range].words}`} · kept 30 days</>
}

const buckets = 96

function Histogram({ counted: h, span, onZoom }: { counted: Counting; span: ReturnType<typeof useSpan>; onZoom: (from: number, to: number) => void }) {
  const width = (span.toMs - span.fromMs) / buckets / 1000
  const times = useMemo(() => Array.from({ length: buckets }, (_, i) => Math.round(span.fromMs / 1000 + i * width)), [span, width])
  const series = useMemo(() => [
    { label: '2xx', values: h.buckets.map((b) => b.answered), colour: 'chart-mute' as const },
    { label: '4xx', values: h.buckets.map((b) => b.refused), colour: 'chart-3' as const },
    { label: '5xx', values: h.buckets.map((b) => b.failed), colour: 'chart-2' as const },
  ], [h.buckets])
  const sums = series.map((s) => s.values.reduce((n, v) => n + v, 0))
  return (
    <div className="pad loghist">
      <div className="row s12"><Legend items={series.map((s, i) => ({ label: <>{s.label} <b className="med">{countWords(sums[i] ?? 0)}</b></>, colour: s.colour }))} /><span className="grow" />
        {!h.complete && <span className="muted">{h.waiting ? 'Counting' : <>Counted back to {timeWords(new Date(h.countedTo))} <button type="button" className="linkish" onClick={h.more}>Count the rest</button></>}</span>}
        {h.error && <span className="bad">{h.error.message}</span>}
        <span className="muted hide-s">{durationOf(width)} a bar · drag to zoom</span></div>
      <Chart title="Requests over time" text={`${sums[0] ?? 0} answered, ${sums[1] ?? 0} refused and ${sums[2] ?? 0} failed`} kind="bars" times={times} series={series} height={92} onZoom={onZoom} />
    </div>
  )
}

function durationOf(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return `${(seconds / 3600).toFixed(1).replace(/\.0$/, '')} h`
}

function LiveButton({ tail, on, toggle }: { tail: Tail; on: boolean; toggle: () => void }) {
  return (
    <button type="button" role="switch" aria-checked={on} className={`btn ${on ? 'on' : ''}`} onClick={toggle}>
      {on ? <IconPlayerPause size={16} stroke={1.7} aria-hidden /> : <IconPlayerPlay size={16} stroke={1.7} aria-hidden />}
      Live tail{on && tail.state === 'connecting' && <span className="muted"> connecting</span>}
    </button>
  )
}

function LiveNote({ tail }: { tail: Tail }) {
  return (
    <div role="status" className="livenote">
      {tail.waiting > 0 && <Button small onClick={tail.release}>{tail.waiting} new</Button>}
      {tail.skipped > 0 && <span className="muted s12">{countWords(tail.skipped)} or more were left out: narrow the filter to see all</span>}
      {tail.state === 'ended' && <Note kind="warn">The live tail ended with its session.</Note>}
    </div>
  )
}

function Nothing({ searchedTo, filtered, onMore }: { searchedTo: string | null | undefined; filtered: boolean; onMore: (() => void) | undefined }) {
  if (searchedTo && onMore) return <Empty title="Nothing so far" action={<Button onClick={onMore}>Search on</Button>}>Everything back to {timeWords(searchedTo, 'full')} was searched.</Empty>
  if (filtered) return <Empty title="No request matches">Remove a filter, or look at a longer time.</Empty>
  return <Empty title="No requests yet">Each call of the API is kept here for 30 days, with its request, its answer and the gate at which it stopped.</Empty>
}
