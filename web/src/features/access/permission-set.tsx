import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState, type KeyboardEvent } from 'react'
import { askPage } from '../../api/client'
import { asError } from '../../api/error'
import { useChange } from '../../app/change'
import { useObject, useObjects } from '../../app/objects'
import { paths } from '../../app/paths'
import { useSession } from '../../app/session'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { ConfirmDestroy } from '../../ui/confirm'
import { useDraft } from '../../ui/drafts'
import { CheckField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Section } from '../../ui/list'
import { Page } from '../../ui/page'
import { SaveBar } from '../../ui/savebar'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo, useParam, useUrl } from '../../ui/url'
import { cellState, changedRights, editsField, grantWords, readsField, setField, setVerb, verbs, type EntityGrant, type SetValue, type Verb } from './matrix'

interface FieldValue { name: string; type: string }
interface EntityValue { name: string; label?: string; fields?: FieldValue[] }

const systems = ['manage_users', 'manage_permissions', 'manage_entities', 'manage_endpoints', 'tenant_settings', 'login_as', 'can_manage_external_users'] as const
/** The columns of Users that a set may name; declared fields come after them. */
const userColumns: readonly FieldValue[] = ['email', 'name', 'locale', 'userType', 'isOwner', 'active'].map((name) => ({ name, type: 'column' }))

/** One permission set: a matrix of entities and verbs, fields open in place. */
export default function PermissionSet() {
  const name = useParam('name')
  const stored = useObject<SetValue>('permission_set', name)
  const error = stored.error ? asError(stored.error) : undefined
  if (error) return <Page title={name}><ErrorState what="The permission set could not be loaded." error={error} onRetry={() => void stored.refetch()} /></Page>
  if (stored.data === undefined) return <Page title={name}><Skeleton label="Loading the permission set" /></Page>
  if (stored.data === null) return <Page title={name}><Empty title={`There is no permission set ${name}`} action={<Link className="btn" to={paths.permissionSets()}>All permission sets</Link>}>It was removed, or never made.</Empty></Page>
  return <Editor key={name} name={name} version={stored.data.version} value={stored.data.value} />
}

function Editor({ name, version, value }: { name: string; version: string; value: SetValue }) {
  const session = useSession()
  const go = useGo()
  const entities = useObjects<EntityValue>('entity')
  const userFields = useObjects<FieldValue[]>('user_fields')
  const users = useQuery({ queryKey: ['users', 'of set', name], queryFn: ({ signal }) => askPage('GET users', { query: { limit: 200 }, signal }), enabled: session.owner || session.system.includes('manage_users') })
  const draft = useDraft<SetValue>(`permission_set/${name}`, value, version)
  const change = useChange(`permission set ${name}`, `Permission set ${name} saved`)
  const [removing, setRemoving] = useState(false)
  const changed = changedRights(value, draft.value)
  const having = (users.data?.rows ?? []).filter((u) => u.permissionSets.includes(name))
  const list: EntityValue[] = [...(entities.data ?? []).map((e) => e.value), { name: 'user', label: 'Users', fields: [...userColumns, ...(Array.isArray(userFields.data?.[0]?.value) ? userFields.data[0].value : [])] }]
  const setGrant = (entity: string, grant: EntityGrant | undefined) => {
    draft.set((was) => {
      const all = { ...was.entities }
      if (grant) all[entity] = grant
      else delete all[entity]
      const next = { ...was, entities: all }
      if (Object.keys(all).length === 0) delete (next as SetValue).entities
      return next
    })
  }
  const setSystem = (permission: string, on: boolean) => {
    draft.set((was) => {
      const system = systems.filter((s) => (s === permission ? on : was.system?.includes(s)))
      const next = { ...was, system: [...system] }
      if (system.length === 0) delete (next as SetValue).system
      return next
    })
  }
  return (
    <Page title={name} count={users.data && `a permission set of ${having.length}${users.data.meta.hasMore ? ' of the newest 200' : ''} ${having.length === 1 ? 'user' : 'users'}`} hint="Says what may be done with an entity and its fields. Which records, sharing decides."
      acts={<Button kind="danger" onClick={() => { setRemoving(true) }}>Remove set</Button>}>
      <LeaveGuard dirty={draft.dirty} what={`The changes of ${name} are not saved.`} onDiscard={draft.discard} />
      {draft.restored && <Note>Your unsaved changes are here again.</Note>}
      {draft.stale && !change.busy && <Note kind="warn">Somebody saved this set after you began. Saving shows both sides.</Note>}
      <div className="aside2">
        <div>
          {draft.value.all_entity_access && <Note kind="warn">all_entity_access is given: its holders read and change every record and field, whatever stands below.</Note>}
          {!entities.data ? <Skeleton label="Loading entities" /> : <Matrix entities={list} value={draft.value} changed={changed} onChange={setGrant} />}
        </div>
        <aside>
          <Section title="System permissions" right={`${draft.value.system?.length ?? 0} of ${systems.length}`}>
            {systems.map((s) => <CheckField key={s} label={<code>{s}</code>} checked={draft.value.system?.includes(s) ?? false} onChange={(on) => { setSystem(s, on) }} />)}
            <CheckField label={<><code>all_entity_access</code> <span className="warn">every record</span></>} checked={draft.value.all_entity_access ?? false} onChange={(on) => { draft.set((was) => { const next = { ...was, all_entity_access: on }; if (!on) delete (next as SetValue).all_entity_access; return next }) }} help="External users never have system permissions or all_entity_access." />
          </Section>
          {users.data && <Section title="Users with this set" right={<Link to={paths.users()}>All users</Link>}>
            {having.length === 0 ? <p className="second">Nobody has it.</p> : <ul className="plainlist">{having.slice(0, 8).map((u) => <li key={u.id}><Link to={u.type === 'external' ? paths.externalUsers(u.email) : paths.users(u.email)}>{u.name || u.email}</Link> <span className="muted">{u.role}</span></li>)}{having.length > 8 && <li className="muted">and {having.length - 8} more</li>}</ul>}
          </Section>}
        </aside>
      </div>
      {change.problems.map((p) => <p className="help bad" key={p.path + p.message}>{p.path && <code>{p.path}</code>} {p.message}</p>)}
      <SaveBar count={changed.length} what={<span className="mono">{changed.slice(0, 4).join(' · ')}{changed.length > 4 ? ` and ${changed.length - 4} more` : ''}</span>} effect="Works within 1 s." busy={change.busy} error={change.problems.length ? undefined : change.error}
        onDiscard={() => { draft.discard(); change.clear() }} onSave={() => { change.start([{ kind: 'permission_set', name, value: draft.value, against: draft.against }], draft.discard) }} />
      {removing && <ConfirmDestroy title={`Remove permission set ${name}`} action="Remove set" busy={change.busy} error={change.error} onClose={() => { setRemoving(false) }}
        onConfirm={() => { change.confirmed([{ kind: 'permission_set', name, value: null, against: version }], () => { draft.discard(); go(paths.permissionSets()) }) }}>
        <p>A set that users have, or that External Identity gives at registration, cannot be removed.</p>
      </ConfirmDestroy>}
      {change.dialog}
    </Page>
  )
}

/** Matrix is a table of arches: Space changes a cell, → opens the fields of an entity. */
function Matrix({ entities, value, changed, onChange }: { entities: readonly EntityValue[]; value: SetValue; changed: readonly string[]; onChange: (entity: string, grant: EntityGrant | undefined) => void }) {
  const [url, setUrl] = useUrl()
  const open = typeof url['open'] === 'string' ? url['open'] : undefined
  return (
    <>
      <table className="tbl flat matrix" aria-label="Entities and fields">
        <thead><tr><th scope="col">Entity and fields</th>{verbs.map((v) => <th scope="col" key={v} className="mid">{v[0]?.toUpperCase()}{v.slice(1)}</th>)}<th scope="col">In words</th></tr></thead>
        {entities.map((e) => {
          const grant = value.entities?.[e.name]
          const fields = e.fields ?? []
          const names = fields.map((f) => f.name)
          const on = open === e.name
          const toggle = () => { setUrl({ open: on ? undefined : e.name }) }
          const keys = (event: KeyboardEvent) => { if ((event.key === 'ArrowRight' && !on) || (event.key === 'ArrowLeft' && on)) { event.preventDefault(); toggle() } }
          return (
            // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the arrows open and shut the fields from any cell of the entity
            <tbody key={e.name} onKeyDown={keys}>
              <tr className={changed.some((c) => c.startsWith(`${e.name}.`)) ? 'changed' : ''}>
                <th scope="row"><button type="button" className="linkish plain row" aria-expanded={on} onClick={toggle}>{on ? <IconChevronDown size={14} stroke={1.7} aria-hidden /> : <IconChevronRight size={14} stroke={1.7} aria-hidden />}<b className="med mono">{e.name}</b></button></th>
                {verbs.map((v) => <Cell key={v} label={`${v} ${e.name}`} state={cellState(grant, v, names)} off={e.name === 'user' && (v === 'create' || v === 'delete')} onToggle={() => { onChange(e.name, setVerb(grant, v, !grant?.[v])) }} />)}
                <td className="second">{grantWords(grant, names)}</td>
              </tr>
              {on && e.name !== 'user' && <tr className="sub"><th scope="row" className="in">may name the owner</th><td /><td /><Cell label={`assign_owner ${e.name}`} state={grant?.assign_owner ? 'open' : 'none'} onToggle={() => { onChange(e.name, setVerb(grant, 'assign_owner', !grant?.assign_owner)) }} /><td /><td className="muted">owner_id may name users whom a sharing rule names</td></tr>}
              {on && fields.map((f) => (
                <tr key={f.name} className={`sub ${changed.includes(`${e.name}.${f.name}`) ? 'changed' : ''}`}>
                  <th scope="row" className="in"><span className="mono">{f.name}</span> <span className="muted">{f.type}</span></th><td />
                  <Cell label={`read ${e.name}.${f.name}`} state={readsField(grant ?? {}, f.name) ? 'open' : 'none'} onToggle={() => { onChange(e.name, setField(grant, f.name, 'read', !readsField(grant ?? {}, f.name))) }} />
                  <Cell label={`edit ${e.name}.${f.name}`} state={editsField(grant ?? {}, f.name) ? 'open' : 'none'} onToggle={() => { onChange(e.name, setField(grant, f.name, 'edit', !editsField(grant ?? {}, f.name))) }} />
                  <td /><td className="muted">{fieldWords(grant, f.name)}</td>
                </tr>
              ))}
            </tbody>
          )
        })}
      </table>
      <p className="archlegend second s12"><span className="row"><Arch state="open" />allowed</span><span className="row"><Arch state="part" />some fields</span><span className="row"><Arch state="none" />not allowed</span><span className="grow" /><span className="muted"><kbd>Space</kbd> changes a cell, <kbd>→</kbd> opens fields</span></p>
    </>
  )
}

function Cell({ label, state, off, onToggle }: { label: string; state: ReturnType<typeof cellState>; off?: boolean; onToggle: () => void }) {
  if (off) return <td className="mid"><span className="muted" aria-label={`${label}: never`}>–</span></td>
  return <td className="mid"><button type="button" className="archbtn" role="checkbox" aria-checked={state === 'part' ? 'mixed' : state === 'open'} aria-label={label} onClick={onToggle}><Arch state={state} size={16} /></button></td>
}

function fieldWords(grant: EntityGrant | undefined, field: string): string {
  const g = grant ?? {}
  if (!readsField(g, field)) return 'hidden: neither read nor edit'
  const edits: readonly Verb[] = ['create', 'update']
  if (!editsField(g, field)) return 'read only'
  return edits.some((v) => g[v]) ? '' : 'edit counts with Create or Update'
}
