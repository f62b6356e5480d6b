import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { askPage } from '../../api/client'
import { asError } from '../../api/error'
import { useChange } from '../../app/change'
import { absent, problemAt, useObjects, type Stored } from '../../app/objects'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { useDraft } from '../../ui/drafts'
import { Drawer, useDrawer } from '../../ui/drawer'
import { TextField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { SelectField } from '../../ui/select'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { LeaveGuard } from '../../ui/unsaved'
import { useUrlValue } from '../../ui/url'
import { useState } from 'react'
import { treeOf, type RoleNode, type RoleValue } from './roletree'

/** The role tree: users of a role above have what users of the roles below own. */
export default function Roles() {
  const roles = useObjects<RoleValue>('role')
  const drawer = useDrawer('row')
  const [adding, setAdding] = useUrlValue('new')
  const error = roles.error ? asError(roles.error) : undefined
  const tree = treeOf((roles.data ?? []).map((r) => r.value))
  const open = roles.data?.find((r) => r.name === drawer.key)
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAdding('top', { push: true }) }}>Add role</Button>
  return (
    <Page title="Roles" count={roles.data && String(roles.data.length)} hint="Who stands above sees and may change what those below own. Peers of one role have nothing of each other." acts={add}>
      {error && <ErrorState what="The roles could not be loaded." error={error} onRetry={() => void roles.refetch()} />}
      {!error && !roles.data && <Skeleton label="Loading roles" />}
      {roles.data?.length === 0 && <Empty title="No roles yet" action={add}>A role is a place in your organisation: a manager’s role above a seller’s lets the manager see what sellers own.</Empty>}
      {tree.length > 0 && <ul className="roletree" aria-label="Roles">{tree.map((node) => <Branch key={node.name} node={node} onOpen={drawer.open} open={drawer.key} />)}</ul>}
      {adding !== undefined && roles.data && <RoleDrawer key={`new/${adding}`} all={roles.data} parent={roles.data.some((r) => r.name === adding) ? adding : ''} onClose={() => { setAdding(undefined) }} />}
      {adding === undefined && drawer.key !== undefined && roles.data && !open && <Drawer title={drawer.key} label={`Role ${drawer.key}`} onClose={drawer.close}><Empty title={`There is no role ${drawer.key}`}>It was removed, or never made.</Empty></Drawer>}
      {adding === undefined && open && <RoleDrawer key={open.name} role={open} all={roles.data ?? []} parent={open.value.parent ?? ''} onAdd={() => { drawer.close(); setAdding(open.name, { push: true }) }} onClose={drawer.close} />}
    </Page>
  )
}

function Branch({ node, onOpen, open }: { node: RoleNode; onOpen: (name: string) => void; open: string | undefined }) {
  return (
    <li>
      <button type="button" className={`rolebtn ${open === node.name ? 'on' : ''}`} aria-expanded={open === node.name} onClick={() => { onOpen(node.name) }}>{node.name}</button>
      {node.children.length > 0 && <ul>{node.children.map((child) => <Branch key={child.name} node={child} onOpen={onOpen} open={open} />)}</ul>}
    </li>
  )
}

function RoleDrawer({ role, all, parent, onAdd, onClose }: { role?: Stored<RoleValue>; all: readonly Stored<RoleValue>[]; parent: string; onAdd?: () => void; onClose: () => void }) {
  const draft = useDraft<RoleValue>(`role/${role?.name ?? 'new'}`, role?.value ?? { name: '', ...(parent ? { parent } : {}) }, role?.version ?? absent)
  const value = draft.value
  const name = value.name.trim()
  const change = useChange(`role ${name}`, role ? `Role ${name} saved` : `Role ${name} added`)
  const [removing, setRemoving] = useState(false)
  const users = useQuery({ queryKey: ['users', 'of role', role?.name], enabled: role !== undefined, queryFn: ({ signal }) => askPage('GET users', { query: { limit: 200 }, signal }) })
  const having = (users.data?.rows ?? []).filter((u) => u.role === role?.name)
  const save = () => {
    const edit: RoleValue = { name, ...(value.parent ? { parent: value.parent } : {}) }
    change.start([{ kind: 'role', name, value: edit, against: draft.against }], () => { draft.discard(); if (!role) onClose() })
  }
  const others = all.filter((r) => r.name !== role?.name).map((r) => ({ value: r.name, label: r.name }))
  return (
    <Drawer title={role ? role.name : 'Add role'} label={role ? `Role ${role.name}` : 'Add role'} onClose={onClose}>
      <LeaveGuard dirty={draft.dirty && (role !== undefined || name !== '')} what="The role is not saved." onDiscard={draft.discard} />
      {draft.restored && <Note>Your unsaved changes are here again.</Note>}
      <form className="stack" onSubmit={(event) => { event.preventDefault(); if (name) save() }}>
        {!role && <TextField label="Name" required value={value.name} onChange={(next) => { draft.set((was) => ({ ...was, name: next })) }} error={problemAt(change.problems, 'name')} autoComplete="off" help="At most 63 characters. It cannot be changed later." />}
        <SelectField label="Under" clearable placeholder="Nobody: it stands at the top" value={value.parent ?? null} options={others} onChange={(next) => { draft.set((was) => ({ name: was.name, ...(next ? { parent: next } : {}) })) }} error={problemAt(change.problems, 'parent')} help="Users of the role above, and of all above that, have what users of this role own." />
        <ActionError error={change.problems.length ? undefined : change.error} />
        {change.problems.filter((p) => p.path !== 'name' && p.path !== 'parent').map((p) => <p className="help bad" key={p.path + p.message}>{p.message}</p>)}
        <div className="row wrap">
          {(draft.dirty || !role) && <Button kind="main" type="submit" busy={change.busy} disabled={!name}>{role ? 'Save role' : 'Add role'}</Button>}
          {onAdd && <Button onClick={onAdd}>Add a role under it</Button>}
          {role && <Button kind="danger" onClick={() => { setRemoving(true) }}>Remove role</Button>}
        </div>
      </form>
      {role && <section className="sec"><h2>Users with this role<span className="r"><Link to={paths.users()}>All users</Link></span></h2>
        {having.length === 0 ? <p className="second">{users.data ? (users.data.meta.hasMore ? 'None among the newest 200 users.' : 'Nobody has it.') : 'Loading'}</p>
          : <ul className="plainlist">{having.map((u) => <li key={u.id}><Link to={u.type === 'external' ? paths.externalUsers(u.email) : paths.users(u.email)}>{u.name || u.email}</Link> <span className="muted">{u.email}</span></li>)}</ul>}
      </section>}
      {removing && role && <ConfirmDestroy title={`Remove role ${role.name}`} action="Remove role" busy={change.busy} error={change.error} onClose={() => { setRemoving(false) }}
        onConfirm={() => { change.confirmed([{ kind: 'role', name: role.name, value: null, against: role.version }], () => { setRemoving(false); onClose() }) }}>
        <p>Shares with the role end. A role that users have, or that a rule or another role names, cannot be removed.</p>
      </ConfirmDestroy>}
      {change.dialog}
    </Drawer>
  )
}
