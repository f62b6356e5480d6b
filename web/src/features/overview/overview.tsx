import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { IconRefresh } from '@tabler/icons-react'
import { useMemo } from 'react'
import type { Overview, OverviewNotice, OverviewUsage, UsageRow } from '../../api/admin'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { paths } from '../../app/paths'
import { Arch } from '../../ui/arch'
import { IconButton } from '../../ui/button'
import { Chart, Legend, Spark } from '../../ui/chart'
import { Segmented } from '../../ui/field'
import { Link } from '../../ui/link'
import { Section, Stats } from '../../ui/list'
import { Page } from '../../ui/page'
import { ErrorState, Note, Skeleton } from '../../ui/states'
import { Null } from '../../ui/table'
import { agoWords, countWords, durationWords } from '../../ui/time'
import { useUrlValue } from '../../ui/url'
import { FirstSteps } from './first-steps'
import { changeWords, errorsWords, noticeWords, shareWords, slowerWords } from './words'
import './overview.css'

const spans = [{ value: '1h', label: '1 h' }, { value: '24h', label: '24 h' }, { value: '7d', label: '7 days' }, { value: '30d', label: '30 days' }] as const

/** Overview: what the API did, what needs a look, and on a new tenant what to do first. */
export default function OverviewPage() {
  const [chosen, choose] = useUrlValue('range')
  const range = spans.find((s) => s.value === chosen)?.value ?? '24h'
  const query = useQuery({ queryKey: ['overview', range], refetchInterval: 15_000, placeholderData: keepPreviousData, queryFn: ({ signal }) => ask('GET overview', { query: { range }, signal }) })
  const data = query.data
  const acts = (
    <>
      <Segmented label="Time" value={range} options={spans} onChange={(next) => { choose(next === '24h' ? undefined : next) }} />
      <IconButton kind="plain" label="Reload" onClick={() => { void query.refetch() }}><IconRefresh size={16} stroke={1.7} aria-hidden /></IconButton>
    </>
  )
  return (
    <Page title="Overview" acts={acts}>
      {query.error && <ErrorState what="The overview could not be loaded." error={asError(query.error)} onRetry={() => { void query.refetch() }} />}
      {!data && !query.error && <Skeleton rows={8} label="Loading the overview" />}
      {data && <Body data={data} />}
    </Page>
  )
}

function Body({ data }: { data: Overview }) {
  const fresh = !data.begun.called
  return (
    <>
      {fresh && <FirstSteps begun={data.begun} />}
      {data.requests ? <Figures data={data} usage={data.requests} /> : <Note>Requests and events are shown to holders of <code>manage_endpoints</code>.</Note>}
      <div className="overcols">
        <div>{data.requests && <Charts data={data} usage={data.requests} />}</div>
        <Attention list={data.attention} />
      </div>
      {data.requests && <Endpoints usage={data.requests} range={data.range} />}
    </>
  )
}

function Figures({ data, usage }: { data: Overview; usage: OverviewUsage }) {
  const { now, before } = usage
  const p95 = slowerWords(now.p95Ms, before.p95Ms)
  const time = (ms: number) => { if (now.requests === 0) return { value: '–' }; const [value = '0', unit = 'ms'] = durationWords(ms).split(' '); return { value, unit } }
  const { events, mails } = data
  return (
    <Stats items={[
      { label: 'Requests', value: countWords(now.requests), note: changeWords(now.requests, before.requests) },
      { label: 'Errors', value: shareWords(now.errors, now.requests), unit: '%', note: errorsWords(now) },
      { label: 'p50', ...time(now.p50Ms), note: slowerWords(now.p50Ms, before.p50Ms).words },
      { label: 'p95', ...time(now.p95Ms), note: <span className={p95.slow ? 'warn' : ''}>{p95.words}</span> },
      { label: 'Limits hit', value: countWords(now.limited), note: usage.keysHit === 1 ? '1 key' : `${usage.keysHit} keys` },
      ...(events ? [{ label: 'Events', value: countWords(events.accepted.count, events.accepted.more), note: events.failed.count > 0 ? <span className="bad">{countWords(events.failed.count, events.failed.more)} runs failed</span> : 'no run failed' }] : []),
      ...(mails ? [{ label: 'Mails waiting', value: countWords(mails.waiting.count, mails.waiting.more), note: mails.oldest ? `oldest ${agoWords(mails.oldest, Date.now()).replace(' ago', '')}` : 'none' }] : []),
    ]} />
  )
}

function Charts({ data, usage }: { data: Overview; usage: OverviewUsage }) {
  const { series, widthMs } = usage
  const times = useMemo(() => series.map((_, i) => Math.round((Date.parse(data.from) + i * widthMs) / 1000)), [series, data.from, widthMs])
  const counts = useMemo(() => [
    { label: 'answered', values: series.map((c) => c.requests - c.errors), colour: 'chart-1' as const },
    { label: 'errors', values: series.map((c) => c.errors), colour: 'chart-2' as const },
  ], [series])
  const took = useMemo(() => [
    { label: 'p50', values: series.map((c) => (c.requests > 0 ? c.p50Ms : null)), colour: 'chart-4' as const },
    { label: 'p95', values: series.map((c) => (c.requests > 0 ? c.p95Ms : null)), colour: 'chart-3' as const },
  ], [series])
  const width = widthMs < 3_600_000 ? `${widthMs / 60_000} min` : `${widthMs / 3_600_000} hours`
  return (
    <>
      <Section title="Requests" right={<Legend items={[{ label: 'answered', colour: 'chart-1' }, { label: 'errors', colour: 'chart-2' }]} />}>
        <Chart title="Requests" text={`${usage.now.requests} requests, ${usage.now.errors} of them errors, in bars of ${width}`} kind="bars" times={times} series={counts} topLabel={(v) => `${v.toLocaleString('en')} in ${width}`} />
      </Section>
      <Section title="Time to answer" right={<Legend lines items={[{ label: 'p50', colour: 'chart-4' }, { label: 'p95', colour: 'chart-3' }]} />}>
        <Chart title="Time to answer" text={`p50 ${durationWords(usage.now.p50Ms)}, p95 ${durationWords(usage.now.p95Ms)}`} kind="lines" times={times} series={took} height={110} format={(v) => durationWords(v)} />
      </Section>
    </>
  )
}

function Attention({ list }: { list: readonly OverviewNotice[] }) {
  return (
    <Section title="Needs a look" right={<span className="muted">{list.length}</span>}>
      {list.length === 0 ? <p className="row second calm"><Arch state="open" />Nothing does.</p> : (
        <ul className="att">{list.map((n, i) => {
          const { head, text, bad } = noticeWords(n, Date.now())
          const [to, words] = placeOf(n)
          return <li key={i}><Arch state={bad ? 'shut' : 'hold'} /><div><b className="med">{head}</b><div className="muted">{text}</div></div><Link to={to} className="btn s">{words}</Link></li>
        })}</ul>
      )}
    </Section>
  )
}

/** placeOf is where a notice leads, and the words for it. */
function placeOf(n: OverviewNotice): [string, string] {
  switch (n.kind) {
    case 'failed_runs': return [paths.eventsOf(n.name), 'Open events']
    case 'failing': return [paths.auditWhere({ endpoint: n.name, status: '5xx' }), 'Open requests']
    case 'slow': return [paths.auditWhere({ endpoint: n.name }), 'Open requests']
    case 'limit': return [paths.apiKeys(n.id), 'Open key']
    case 'mails': return [paths.templates(), 'Open mails']
  }
}

function Endpoints({ usage, range }: { usage: OverviewUsage; range: string }) {
  if (usage.endpoints.length === 0) return null
  return (
    <Section title={<>Endpoints <span className="muted normal">slow or failing first</span></>} right={<Link to={paths.audit()}>All in the audit log</Link>}>
      <div className="scrollx">
        <table className="tbl flat"><thead><tr><th scope="col">Endpoint</th><th scope="col" className="hide-s">{spans.find((s) => s.value === range)?.label}</th><th scope="col" className="num">Requests</th><th scope="col" className="num">Errors</th><th scope="col" className="num hide-s">p50</th><th scope="col" className="num">p95</th><th scope="col" className="hide-s">What stands out</th></tr></thead>
          <tbody>{usage.endpoints.map((r) => <EndpointRow key={r.name} row={r} />)}</tbody></table>
      </div>
      {usage.moreNames && <p className="muted top6">Of the others there are more in the audit log.</p>}
    </Section>
  )
}

function EndpointRow({ row }: { row: UsageRow }) {
  const t = row.total
  const slow = t.requests >= 10 && t.p95Ms >= 1000
  const known = row.name.startsWith('/')
  return (
    <tr>
      <td className="mono">{known ? <Link to={paths.auditWhere({ endpoint: row.name })}>{row.name}</Link> : <span className="muted">{row.name === 'other' ? 'unknown paths' : row.name}</span>}</td>
      <td className="hide-s"><Spark values={row.requests} bad={row.errors} label={`${t.requests} requests, ${t.errors} errors`} /></td>
      <td className="num">{countWords(t.requests)}</td>
      <td className={`num ${t.failed > 0 ? 'bad' : ''}`}>{shareWords(t.errors, t.requests)} %</td>
      <td className="num hide-s">{durationWords(t.p50Ms)}</td>
      <td className={`num ${slow ? 'warn' : ''}`}>{durationWords(t.p95Ms)}</td>
      <td className="hide-s">{t.failed > 0 ? <span className="bad">5xx × {countWords(t.failed)}</span> : slow ? <span className="warn">p95 over 1 s</span> : t.limited > 0 ? <span className="warn">429 × {countWords(t.limited)}</span> : <Null />}</td>
    </tr>
  )
}
