import { IconPlus } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { NewName } from '../../app/build/new-name'
import { useObjects, type AutomationValue, type Stored } from '../../app/build/objects'
import { RunStatus, useRuns } from '../../app/build/runs'
import { nodesOf } from '../../app/build/uses'
import { paths } from '../../app/paths'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { SearchField } from '../../ui/filters'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, Null } from '../../ui/table'
import { Time } from '../../ui/time'
import { useGo, useUrlValue } from '../../ui/url'
import '../../app/build/build.css'

/** The automations of the tenant. */
export default function Automations() {
  const list = useObjects<AutomationValue>('automation')
  const runs = useRuns({ limit: 200 })
  const [asked, setAsked] = useUrlValue('new')
  const [search, setSearch] = useUrlValue('search')
  const [typed, setTyped] = useState('')
  const go = useGo()
  const last = useMemo(() => new Map([...(runs.data?.rows ?? [])].reverse().filter((r) => r.target.kind === 'automation').map((r) => [r.target.name, r])), [runs.data])
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAsked('1') }}>New automation</Button>
  return (
    <Page title="Automations" flush count={list.data ? `${list.data.length}` : undefined} acts={add} hint="Flows of steps over your records, drawn instead of written. All that one changes takes effect together, or nothing does.">
      {asked && <NewName what="automation" taken={list.data?.map((a) => a.name) ?? []} name={typed} onName={setTyped} onClose={() => { setAsked(undefined) }} onMade={(name) => { go(`${paths.automations(name)}?new=1`) }} />}
      <div className="filters"><span className="grow" /><SearchField label="Find an automation" value={search ?? ''} onChange={(s) => { setSearch(s || undefined) }} /></div>
      <DataTable<Stored<AutomationValue>> label="Automations" rows={list.data?.filter((a) => a.name.includes((search ?? '').toLowerCase()))} rowKey={(a) => a.name} loading={list.isFetching} error={list.error ? asError(list.error) : undefined} onRetry={() => void list.refetch()} onOpen={(a) => { go(paths.automations(a.name)) }}
        columns={[
          { key: 'name', head: 'Name', narrow: 'title', cell: (a) => <Link to={paths.automations(a.name)} className="med mono">{a.name}</Link> },
          { key: 'steps', head: 'Steps', width: 80, num: true, cell: (a) => nodesOf(a.value.nodes).length },
          { key: 'inputs', head: 'Inputs', width: 80, num: true, cell: (a) => a.value.input_schema?.length ?? 0 },
          { key: 'time', head: 'Last run', width: 140, narrow: 'sub', cell: (a) => <Time at={last.get(a.name)?.startedAt} /> },
          { key: 'outcome', head: 'Outcome', width: 200, narrow: 'end', cell: (a) => { const run = last.get(a.name); return run ? <RunStatus run={run} /> : <Null /> } },
        ]}
        empty={search ? <Empty title="No automation has that in its name" /> : <Empty title="No automations yet" action={add}>Put steps together: find a record, decide, create or change one, call a component, answer.</Empty>} />
    </Page>
  )
}
