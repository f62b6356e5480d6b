import { IconPlus } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { useObjects, type AutomationValue, type ComponentValue, type EndpointValue, type Stored } from '../../app/build/objects'
import { RunStatus, useRuns } from '../../app/build/runs'
import { usesOf } from '../../app/build/uses'
import { paths } from '../../app/paths'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { SearchField } from '../../ui/filters'
import { NewName } from '../../app/build/new-name'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, Null } from '../../ui/table'
import { Time } from '../../ui/time'
import { useGo, useUrlValue } from '../../ui/url'

/** The logic components of the tenant. */
export default function Components() {
  const list = useObjects<ComponentValue>('logic_component')
  const automations = useObjects<AutomationValue>('automation')
  const endpoints = useObjects<EndpointValue>('custom_endpoint')
  const runs = useRuns({ limit: 200 })
  const [asked, setAsked] = useUrlValue('new')
  const [search, setSearch] = useUrlValue('search')
  const [typed, setTyped] = useState('')
  const go = useGo()
  const uses = useMemo(() => usesOf(automations.data ?? [], endpoints.data ?? []), [automations.data, endpoints.data])
  const last = useMemo(() => new Map([...(runs.data?.rows ?? [])].reverse().filter((r) => r.target.kind === 'component').map((r) => [r.target.name, r])), [runs.data])
  const rows = list.data?.filter((c) => c.name.includes((search ?? '').toLowerCase()))
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAsked('1') }}>New component</Button>
  return (
    <Page title="Logic components" flush count={list.data ? `${list.data.length}` : undefined} acts={add}
      hint="JavaScript functions in a sandbox: called by an endpoint, a step of an automation, or a webhook’s verifier.">
      {asked && <NewName what="component" taken={list.data?.map((c) => c.name) ?? []} name={typed} onName={setTyped} onClose={() => { setAsked(undefined) }} onMade={(name) => { go(`${paths.components(name)}?new=1`) }} />}
      <div className="filters"><span className="grow" /><SearchField label="Find a component" value={search ?? ''} onChange={(s) => { setSearch(s || undefined) }} /></div>
      <DataTable<Stored<ComponentValue>> label="Logic components" rows={rows} rowKey={(c) => c.name} loading={list.isFetching} error={list.error ? asError(list.error) : undefined} onRetry={() => void list.refetch()}
        onOpen={(c) => { go(paths.components(c.name)) }}
        columns={[
          { key: 'name', head: 'Name', narrow: 'title', cell: (c) => <Link to={paths.components(c.name)} className="med mono">{c.name}</Link> },
          { key: 'as', head: 'Runs as', width: 170, narrow: 'sub', cell: (c) => contextWords(c.value.execution_context) },
          { key: 'inputs', head: 'Inputs', width: 80, num: true, cell: (c) => c.value.inputs?.length ?? 0 },
          { key: 'uses', head: 'Used by', width: 200, cell: (c) => usesWords(uses.get(c.name)) },
          { key: 'time', head: 'Last run', width: 130, narrow: 'subend', cell: (c) => <Time at={last.get(c.name)?.startedAt} /> },
          { key: 'outcome', head: 'Outcome', width: 220, narrow: 'end', cell: (c) => { const run = last.get(c.name); return run ? <RunStatus run={run} /> : <Null /> } },
        ]}
        empty={search ? <Empty title="No component has that in its name" /> : <Empty title="No logic components yet" action={add}>Write a function that reads and writes records, and call it from an endpoint of your own.</Empty>} />
    </Page>
  )
}

function contextWords(context: ComponentValue['execution_context']) {
  if (context === undefined || context === 'caller') return 'the caller'
  return context === 'system' ? 'the system' : context.specific_user
}

function usesWords(uses: readonly { label: string }[] | undefined) {
  if (!uses || uses.length === 0) return <Null />
  return uses.length === 1 ? uses[0]?.label : `${uses[0]?.label ?? ''} and ${uses.length - 1} more`
}
