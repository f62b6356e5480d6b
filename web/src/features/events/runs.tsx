import { useObjects, type AutomationValue, type ComponentValue } from '../../app/build/objects'
import { RunBody, usWords } from '../../app/build/outcome'
import type { RunLine } from '../../app/build/run'
import { RunStatus, useRun } from '../../app/build/runs'
import { paths } from '../../app/paths'
import { askPage } from '../../api/client'
import { asError } from '../../api/error'
import { IdChip } from '../../ui/copy'
import { Drawer, useDrawer } from '../../ui/drawer'
import { FilterBar } from '../../ui/filters'
import { KeyValues } from '../../ui/list'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { usePaged } from '../../ui/paged'
import { Empty, ErrorState, Skeleton } from '../../ui/states'
import { DataTable, Null, Pager } from '../../ui/table'
import { Time } from '../../ui/time'
import { useUrl } from '../../ui/url'
import { Links } from './links'
import '../../app/build/build.css'

/** The address holds target as kind:name, because the two go together. */
function queryOf(url: Readonly<Record<string, unknown>>): Record<string, string> {
  const text = (name: string) => (typeof url[name] === 'string' ? url[name] : undefined)
  const [kind, target] = text('target')?.split(':') ?? []
  const query = { kind: target ? kind : undefined, target, status: text('status'), endpoint: text('endpoint'), event: text('event'), since: text('since'), until: text('until') }
  return Object.fromEntries(Object.entries(query).flatMap(([k, v]) => (v ? [[k, v]] : [])))
}

/** Every execution of a component or an automation, for 30 days. */
export default function Runs() {
  const [url] = useUrl()
  const where = queryOf(url)
  const components = useObjects<ComponentValue>('logic_component')
  const automations = useObjects<AutomationValue>('automation')
  const list = usePaged<RunLine>({ key: ['runs', 'page', where], load: async (cursor, signal) => { const page = await askPage('GET runs', { query: { ...where, cursor, limit: 50 }, signal }); return { rows: page.rows, meta: { ...page.meta } } } })
  const drawer = useDrawer()
  return (
    <Page title="Runs" flush hint="Each execution with its trace, what it printed and what it used of the limits. Kept for 30 days.">
      <Links at="runs" />
      <FilterBar defs={[
        { name: 'target', label: 'Ran', always: true, options: [...(components.data ?? []).map((c) => ({ value: `component:${c.name}`, label: c.name })), ...(automations.data ?? []).map((a) => ({ value: `automation:${a.name}`, label: a.name }))] },
        { name: 'status', label: 'Outcome', always: true, options: [{ value: 'succeeded', label: 'succeeded' }, { value: 'failed', label: 'failed' }, { value: 'duplicate', label: 'duplicate' }] },
        { name: 'endpoint', label: 'Endpoint' },
        { name: 'event', label: 'Event', placeholder: 'Event id' },
        { name: 'since', label: 'Since', placeholder: '2026-11-21T14:00:00Z' },
        { name: 'until', label: 'Until', placeholder: '2026-11-21T15:00:00Z' },
      ]} />
      <DataTable<RunLine> label="Runs" rows={list.rows} rowKey={(r) => r.id} loading={list.loading} error={list.error} onRetry={() => void list.query.refetch()} onOpen={(r) => { drawer.open(r.id) }} selected={drawer.key}
        columns={[
          { key: 'time', head: 'Time', width: 150, narrow: 'sub', cell: (r) => <Time at={r.startedAt} /> },
          { key: 'target', head: 'Ran', width: 200, narrow: 'title', cell: (r) => <span className="mono">{r.target.name}</span> },
          { key: 'outcome', head: 'Outcome', width: 200, narrow: 'end', cell: (r) => <RunStatus run={r} /> },
          { key: 'endpoint', head: 'Endpoint', width: 170, narrow: 'subend', cell: (r) => r.endpoint ?? <Null /> },
          { key: 'user', head: 'As', cell: (r) => r.user?.email ?? <Null /> },
          { key: 'took', head: 'Took', width: 90, num: true, cell: (r) => usWords(r.tookUs) },
        ]}
        empty={<Empty title={Object.keys(where).length > 0 ? 'Nothing matches' : 'No runs yet'}>{Object.keys(where).length > 0 ? (list.pager.hasMore ? 'Nothing among the rows looked at: go on to older ones.' : 'No run has these properties.') : 'A run is kept when an endpoint is called. Tries on the pages of components and automations are not kept.'}</Empty>}
        footer={<Pager {...list.pager} newer />} />
      {drawer.key && <Detail id={drawer.key} onClose={drawer.close} />}
    </Page>
  )
}

function Detail({ id, onClose }: { id: string; onClose: () => void }) {
  const run = useRun(id)
  const r = run.data
  return (
    <Drawer wide label={`Run ${id}`} title={r ? r.target.name : 'Run'} sub={<><IdChip id={id} label="run id" />{r && <RunStatus run={r} />}</>} onClose={onClose}>
      {run.error && <ErrorState what="The run could not be loaded." error={asError(run.error)} onRetry={() => void run.refetch()} />}
      {!r && !run.error && <Skeleton rows={5} label="Loading the run" />}
      {r && <>
        <KeyValues label="The run" items={[
          { name: 'Ran', value: <Link className="mono" to={r.target.kind === 'component' ? paths.components(r.target.name) : paths.automations(r.target.name)}>{r.target.name}</Link> },
          { name: 'Began', value: <Time at={r.startedAt} form="full" /> },
          { name: 'Took', value: `${usWords(r.tookUs)}, ${usWords(r.cpuUs)} of a processor${r.tries > 1 ? `, ${r.tries} tries` : ''}` },
          { name: 'Endpoint', value: r.endpoint ? <Link className="mono" to={paths.endpoints(r.endpoint)}>{r.endpoint}</Link> : <Null /> },
          { name: 'As', value: r.user ? r.user.email : <span className="muted">a user who is gone</span> },
          { name: 'Request', value: <><IdChip id={r.requestId} label="request id" /><Link to={paths.auditWhere({ request: r.requestId })}>Audit log</Link></> },
          ...(r.eventId ? [{ name: 'Event', value: <Link to={paths.events(r.eventId)} className="mono">{r.eventId}</Link> }] : []),
        ]} />
        <div className="top6"><RunBody run={r} /></div>
      </>}
    </Drawer>
  )
}
