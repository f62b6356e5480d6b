import { useQuery } from '@tanstack/react-query'
import { askPage, type Gives } from '../../api/client'
import { asError } from '../../api/error'
import { Drawer, useDrawer } from '../../ui/drawer'
import { FilterBar } from '../../ui/filters'
import { KeyValues, Section } from '../../ui/list'
import { CodeDiff } from '../../ui/diff'
import { IdChip } from '../../ui/copy'
import { Page } from '../../ui/page'
import { Op } from '../../ui/plan'
import { usePaged } from '../../ui/paged'
import { Empty, ErrorState } from '../../ui/states'
import { DataTable, Pager } from '../../ui/table'
import { Time } from '../../ui/time'
import { useUrl } from '../../ui/url'
import { historyKinds, kindWords } from './kinds'
import { itemOf } from './plan-items'

type Entry = Gives<'GET history'>[number]

/** History lists every change of the configuration: who, when, what, before and after. */
export default function History() {
  const [url] = useUrl()
  const one = (name: string) => { const value = url[name]; return Array.isArray(value) ? value[0] : value }
  const filter = { kind: one('kind'), name: one('name'), who: one('who') }
  const drawer = useDrawer()
  const paged = usePaged<Entry>({
    key: ['history', filter],
    load: async (cursor, signal) => { const page = await askPage('GET history', { query: { ...filter, cursor, limit: 50 }, signal }); return { rows: page.rows, meta: { ...page.meta } } },
  })
  const rows = paged.rows
  const at = rows?.findIndex((row) => row.id === drawer.key) ?? -1
  const open = at >= 0 ? rows?.[at] : undefined
  return (
    <Page title="Change history" flush hint="Every change of the configuration, by the console, a command or the API. Secrets are left out.">
      <div className="pad">
        <FilterBar defs={[
          { name: 'kind', label: 'Kind', always: true, options: historyKinds.map((kind) => ({ value: kind, label: kindWords(kind) })) },
          { name: 'name', label: 'Name', placeholder: 'Exact name' },
          { name: 'who', label: 'Who', placeholder: 'E-mail address, or operator' },
        ]} />
      </div>
      <DataTable<Entry> label="Changes" rows={rows} rowKey={(row) => row.id} selected={drawer.key} onOpen={(row) => { drawer.open(row.id) }} loading={paged.loading} error={paged.error} onRetry={() => { void paged.query.refetch() }}
        empty={<Empty title="No change is like this">{filter.kind || filter.name || filter.who ? 'Drop a filter to see more.' : 'The first change of the configuration will be here.'}</Empty>}
        footer={<Pager {...paged.pager} newer />}
        columns={[
          { key: 'at', head: 'When', width: 130, narrow: 'end', cell: (row) => <Time at={row.at} /> },
          { key: 'op', head: 'What', narrow: 'title', cell: (row) => <span className="row"><Op op={itemOf(row, row.id).op} /><span className="second">{kindWords(row.kind)}</span><b className="mono trunc">{row.name}</b></span> },
          { key: 'text', head: 'Difference', narrow: 'subend', cell: (row) => <span className="second">{itemOf(row, row.id).what}</span> },
          { key: 'who', head: 'Who', width: 260, narrow: 'sub', cell: (row) => <>{row.actor}{row.actedAs && <span className="second"> as {row.actedAs}</span>}</> },
        ]} />
      {drawer.key !== undefined && (open ? <Detail entry={open} onClose={drawer.close} onStep={(by) => { const next = rows?.[at + by]; if (next) drawer.open(next.id) }} /> : rows && <Elsewhere id={drawer.key} onClose={drawer.close} />)}
    </Page>
  )
}

function Detail({ entry, onClose, onStep }: { entry: Entry; onClose: () => void; onStep?: (by: 1 | -1) => void }) {
  const item = itemOf(entry, entry.id)
  return (
    <Drawer wide label={`Change of ${kindWords(entry.kind)} ${entry.name}`} title={<span className="row"><Op op={item.op} />{kindWords(entry.kind)} <span className="mono">{entry.name}</span></span>} sub={<IdChip id={entry.id} label="change id" />} onClose={onClose} onStep={onStep}>
      <KeyValues items={[
        { name: 'When', value: <Time at={entry.at} form="full" /> },
        { name: 'Who', value: <>{entry.actor}{entry.actedAs && <> as {entry.actedAs}</>}</> },
      ]} />
      <div className="top6" /><Section title="Before and after"><CodeDiff before={item.before ?? ''} after={item.after ?? ''} all={entry.action !== 'update'} /></Section>
    </Drawer>
  )
}

/** Elsewhere is a change of another page of the list: a link leads to it. */
function Elsewhere({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useQuery({
    queryKey: ['history', 'one', id],
    queryFn: async ({ signal }) => {
      let cursor: string | undefined
      for (let page = 0; page < 20; page++) {
        const { rows, meta } = await askPage('GET history', { query: { cursor, limit: 200 }, signal })
        const found = rows.find((row) => row.id === id)
        if (found) return found
        cursor = meta.nextCursor ?? undefined
        if (cursor === undefined) break
      }
      return null
    },
  })
  if (query.data) return <Detail entry={query.data} onClose={onClose} />
  return (
    <Drawer wide label="Change" title="Change" onClose={onClose}>
      {query.error ? <ErrorState what="The change could not be loaded." error={asError(query.error)} /> : query.data === null ? <Empty title="This change was not found" arch="shut">It is older than what is looked through here, or of a kind that is not open to you.</Empty> : <p className="second">Looking for it</p>}
    </Drawer>
  )
}
