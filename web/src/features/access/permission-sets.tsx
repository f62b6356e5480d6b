import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { asError } from '../../api/error'
import { useChange } from '../../app/change'
import { absent, problemAt, useObjects, type Stored } from '../../app/objects'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Drawer } from '../../ui/drawer'
import { TextField } from '../../ui/field'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, type Column } from '../../ui/table'
import { useGo, useUrlValue } from '../../ui/url'
import type { SetValue } from './matrix'

const columns: readonly Column<Stored<SetValue>>[] = [
  { key: 'name', head: 'Name', cell: (s) => <b className="med">{s.name}</b>, width: 240, narrow: 'title' },
  { key: 'entities', head: 'Entities', cell: (s) => (s.value.all_entity_access ? <b>every record of every entity</b> : <span className="trunc">{Object.keys(s.value.entities ?? {}).join(', ') || <span className="muted">none</span>}</span>), narrow: 'sub' },
  { key: 'system', head: 'System permissions', cell: (s) => <span className="trunc mono">{s.value.system?.join(', ') || <span className="muted">none</span>}</span>, narrow: 'subend' },
]

/** Permission sets: what may be done with entities, fields and the system. */
export default function PermissionSets() {
  const sets = useObjects<SetValue>('permission_set')
  const go = useGo()
  const [adding, setAdding] = useUrlValue('new')
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAdding('set', { push: true }) }}>Add permission set</Button>
  return (
    <Page title="Permission sets" flush count={sets.data && String(sets.data.length)} hint="What may be done with an entity and its fields. Which records, sharing decides." acts={add}>
      <DataTable label="Permission sets" columns={columns} rows={sets.data} rowKey={(s) => s.name} onOpen={(s) => { go(paths.permissionSets(s.name)) }} loading={sets.isFetching}
        error={sets.error ? asError(sets.error) : undefined} what="The permission sets could not be loaded." onRetry={() => void sets.refetch()}
        empty={<Empty title="No permission sets yet" action={add}>A user without a set may do nothing. Make one for each kind of work, and give users several.</Empty>} />
      {adding !== undefined && <NewSet onClose={() => { setAdding(undefined) }} />}
    </Page>
  )
}

function NewSet({ onClose }: { onClose: () => void }) {
  const go = useGo()
  const [name, setName] = useState('')
  const change = useChange(`permission set ${name}`, `Permission set ${name.trim()} added`)
  const save = () => { change.start([{ kind: 'permission_set', name: name.trim(), value: { name: name.trim() }, against: absent }], () => { go(paths.permissionSets(name.trim())) }) }
  return (
    <Drawer title="Add permission set" label="Add permission set" onClose={onClose}>
      <form className="stack" onSubmit={(event) => { event.preventDefault(); if (name.trim()) save() }}>
        <TextField label="Name" required value={name} onChange={setName} error={problemAt(change.problems, 'name')} autoComplete="off" help="At most 63 characters. It cannot be changed later." />
        <ActionError error={change.problems.length ? undefined : change.error} />
        <div className="row"><Button kind="main" type="submit" busy={change.busy} disabled={!name.trim()}>Add and choose rights</Button></div>
      </form>
      {change.dialog}
    </Drawer>
  )
}
