import { IconPlus } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { NewName } from '../../app/build/new-name'
import { useObjects, type ComponentValue, type ModuleValue, type Stored } from '../../app/build/objects'
import { paths } from '../../app/paths'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { SearchField } from '../../ui/filters'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, Null } from '../../ui/table'
import { useGo, useUrlValue } from '../../ui/url'
import { importersOf } from './imports'

/** The modules of the tenant. */
export default function Modules() {
  const list = useObjects<ModuleValue>('module')
  const components = useObjects<ComponentValue>('logic_component')
  const [asked, setAsked] = useUrlValue('new')
  const [search, setSearch] = useUrlValue('search')
  const [typed, setTyped] = useState('')
  const go = useGo()
  const importers = useMemo(() => importersOf(components.data ?? [], list.data ?? []), [components.data, list.data])
  const rows = list.data?.filter((m) => m.name.includes((search ?? '').toLowerCase()))
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAsked('1') }}>New module</Button>
  return (
    <Page title="Modules" flush count={list.data ? `${list.data.length}` : undefined} acts={add} hint="JavaScript that several components share: import {total} from &quot;pricing&quot;.">
      {asked && <NewName what="module" taken={list.data?.map((m) => m.name) ?? []} name={typed} onName={setTyped} onClose={() => { setAsked(undefined) }} onMade={(name) => { go(`${paths.modules(name)}?new=1`) }} />}
      <div className="filters"><span className="grow" /><SearchField label="Find a module" value={search ?? ''} onChange={(s) => { setSearch(s || undefined) }} /></div>
      <DataTable<Stored<ModuleValue>> label="Modules" rows={rows} rowKey={(m) => m.name} loading={list.isFetching} error={list.error ? asError(list.error) : undefined} onRetry={() => void list.refetch()}
        onOpen={(m) => { go(paths.modules(m.name)) }}
        columns={[
          { key: 'name', head: 'Name', narrow: 'title', cell: (m) => <Link to={paths.modules(m.name)} className="med mono">{m.name}</Link> },
          { key: 'lines', head: 'Lines', width: 90, num: true, narrow: 'end', cell: (m) => m.value.source.split('\n').length },
          { key: 'uses', head: 'Imported by', width: 320, narrow: 'sub', cell: (m) => importers.get(m.name)?.map((one) => one.label).join(', ') ?? <Null /> },
        ]}
        empty={search ? <Empty title="No module has that in its name" /> : <Empty title="No modules yet" action={add}>What two components need stands in a module, which both import by its name.</Empty>} />
    </Page>
  )
}
