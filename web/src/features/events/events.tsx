import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { RunStatus } from '../../app/build/runs'
import { ErrorLine, usWords } from '../../app/build/outcome'
import { paths } from '../../app/paths'
import { ask, askPage, type Gives } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { JsonView } from '../../ui/code'
import { ActionError } from '../../ui/confirm'
import { IdChip } from '../../ui/copy'
import { Drawer, useDrawer } from '../../ui/drawer'
import { FilterBar } from '../../ui/filters'
import { KeyValues } from '../../ui/list'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { usePaged } from '../../ui/paged'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { DataTable, Null, Pager } from '../../ui/table'
import { bytesWords, Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { useUrl } from '../../ui/url'
import { Links } from './links'
import '../../app/build/build.css'

type Event = Gives<'GET events'>[number]

const filters = ['endpoint', 'kind', 'status', 'key', 'since', 'until'] as const

/** The deliveries of webhooks: what came, whether it was processed, and what to do with what was not. */
export default function Events() {
  const [url] = useUrl()
  const where = Object.fromEntries(filters.flatMap((f) => (typeof url[f] === 'string' ? [[f, url[f]]] : [])))
  const endpoints = useQuery({ queryKey: ['endpoints'], queryFn: ({ signal }) => ask('GET endpoints', { signal }) })
  const list = usePaged<Event>({ key: ['events', where], load: async (cursor, signal) => { const page = await askPage('GET events', { query: { ...where, cursor, limit: 50 }, signal }); return { rows: page.rows, meta: { ...page.meta } } } })
  const drawer = useDrawer()
  const hooks = endpoints.data?.filter((e) => e.auth !== 'api_key') ?? []
  const filtered = Object.keys(where).length > 0
  return (
    <Page title="Webhook events" flush hint="What providers and other programs sent to your webhooks. A delivery takes effect once, however often it comes.">
      <Links at="events" />
      <FilterBar defs={[
        { name: 'endpoint', label: 'Endpoint', always: true, options: hooks.map((e) => ({ value: e.slug, label: e.slug })) },
        { name: 'status', label: 'Outcome', always: true, options: [{ value: 'processed', label: 'processed' }, { value: 'failed', label: 'failed' }] },
        { name: 'kind', label: 'Kind', placeholder: 'invoice.paid' },
        { name: 'key', label: 'Provider’s id', placeholder: 'evt_… or an Idempotency-Key' },
        { name: 'since', label: 'Since', placeholder: '2026-11-21T14:00:00Z' },
        { name: 'until', label: 'Until', placeholder: '2026-11-21T15:00:00Z' },
      ]} />
      <DataTable<Event> label="Events" rows={list.rows} rowKey={(e) => e.id} loading={list.loading} error={list.error} onRetry={() => void list.query.refetch()} onOpen={(e) => { drawer.open(e.id) }} selected={drawer.key}
        columns={[
          { key: 'time', head: 'Received', width: 150, narrow: 'sub', cell: (e) => <Time at={e.receivedAt} /> },
          { key: 'endpoint', head: 'Endpoint', width: 190, narrow: 'title', cell: (e) => <span className="mono">{e.endpoint}</span> },
          { key: 'kind', head: 'Kind', width: 200, narrow: 'subend', cell: (e) => e.kind ?? <Null /> },
          { key: 'outcome', head: 'Outcome', narrow: 'end', cell: (e) => <Outcome event={e} /> },
          { key: 'repeats', head: 'Came again', width: 110, num: true, cell: (e) => (e.repeats > 0 ? `${e.repeats.toLocaleString('en')} ×` : <Null />) },
          { key: 'took', head: 'Took', width: 90, num: true, cell: (e) => (e.run ? usWords(e.run.tookUs) : <Null />) },
        ]}
        empty={filtered ? <Empty title="Nothing matches">{list.pager.hasMore ? 'Nothing among the rows looked at: go on to older ones.' : 'No delivery has these properties.'}</Empty>
          : <Empty title="No deliveries yet" action={<Link className="btn" to={`${paths.endpoints()}?new=1`}>Publish a webhook</Link>}>A webhook is an endpoint that is called with a secret token or a provider’s signature.</Empty>}
        footer={<Pager {...list.pager} newer />} />
      {drawer.key && <Detail id={drawer.key} onClose={drawer.close} />}
    </Page>
  )
}

function Outcome({ event }: { event: Event }) {
  if (event.status === 'processed') return <span className="row"><Arch state="open" />processed</span>
  return <span className="row bad"><Arch state="shut" /><span className="trunc">{event.run?.error ? `${event.run.error.code}: ${event.run.error.message}` : 'failed'}</span></span>
}

function Detail({ id, onClose }: { id: string; onClose: () => void }) {
  const client = useQueryClient()
  const event = useQuery({ queryKey: ['event', id], queryFn: ({ signal }) => ask('GET events/{id}', { params: { id }, signal }) })
  const retry = useMutation<Gives<'POST events/{id}/retry'>, ApiError>({
    mutationFn: async () => { try { return await ask('POST events/{id}/retry', { params: { id } }) } catch (thrown) { throw asError(thrown) } },
    onSuccess: async (done) => {
      const words = { processed: 'The delivery is processed', failed: 'The delivery failed again', duplicate: 'It had been processed since: nothing ran' }
      toast.show({ text: words[done.status as keyof typeof words], arch: done.status === 'failed' ? 'shut' : 'open' })
      await Promise.all([client.invalidateQueries({ queryKey: ['events'] }), client.invalidateQueries({ queryKey: ['event', id] }), client.invalidateQueries({ queryKey: ['runs'] })])
    },
  })
  const e = event.data
  return (
    <Drawer label={`Event ${id}`} title={e ? e.kind ?? `Delivery to ${e.endpoint}` : 'Event'} sub={<IdChip id={id} label="event id" />} onClose={onClose}
      footer={e && e.status === 'failed' ? <><Button kind="main" disabled={!e.retriable} busy={retry.isPending} onClick={() => { retry.mutate() }}>Run it again</Button><span className="muted">{e.retriable ? 'as if the provider had sent it again' : e.whyNot}</span></> : undefined}>
      {event.error && <ErrorState what="The event could not be loaded." error={asError(event.error)} onRetry={() => void event.refetch()} />}
      {!e && !event.error && <Skeleton rows={5} label="Loading the event" />}
      {e && <>
        <ActionError error={retry.error ?? undefined} />
        {retry.data?.error && <Note kind="bad"><ErrorLine error={retry.data.error} /></Note>}
        <KeyValues label="The event" items={[
          { name: 'Outcome', value: <Outcome event={e} /> },
          { name: 'Endpoint', value: <Link to={paths.endpoints(e.endpoint)} className="mono">{e.endpoint}</Link> },
          { name: 'Received', value: <Time at={e.receivedAt} form="full" /> },
          { name: 'Came by', value: e.auth === 'signed' ? 'a provider’s signature' : 'the webhook token' },
          { name: 'Came again', value: e.repeats === 0 ? 'not since' : <>{e.repeats.toLocaleString('en')} × in 30 days, last <Time at={e.lastRepeatAt} /></> },
          ...(e.delivery?.providerId ? [{ name: 'Provider’s id', value: <IdChip id={e.delivery.providerId} label="provider’s id" /> }] : []),
        ]} />
        {e.delivery && <div className="top6">{e.delivery.inputs === null ? <p className="help">What was delivered has {bytesWords(e.delivery.bytes)} and is not shown.</p> : <JsonView title="What was delivered" value={e.delivery.inputs} />}</div>}
        <section className="sec top6"><h2>Runs<span className="muted s12">{e.runs.length === 0 ? 'none is kept: runs are kept for 30 days' : e.runs.length}</span></h2>
          <table className="tbl flat"><tbody>{e.runs.map((run) => <tr key={run.id}><td><Link to={paths.runs(run.id)}><Time at={run.startedAt} form="full" /></Link></td><td><RunStatus run={run} /></td><td className="num">{usWords(run.tookUs)}</td></tr>)}</tbody></table>
        </section>
      </>}
    </Drawer>
  )
}
