import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { IconX } from '@tabler/icons-react'
import { useState } from 'react'
import { ask } from '../../api/client'
import type { DataEntity, RecordShare, ShareWith } from '../../api/admin'
import { asError, type ApiError } from '../../api/error'
import { Button, IconButton } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Segmented } from '../../ui/field'
import { Section } from '../../ui/list'
import { LookupField, SelectField } from '../../ui/select'
import { ErrorState, Skeleton } from '../../ui/states'
import { Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { findLabels, useLabels } from './queries'

/** Shares lists whom a record is shared with; who may delete it may change that. */
export function Shares({ entity, roles, id, mayShare }: { entity: DataEntity; roles: readonly string[]; id: string; mayShare: boolean }) {
  const client = useQueryClient()
  const [adding, setAdding] = useState(false)
  const list = useQuery({ queryKey: ['data', 'shares', entity.name, id], queryFn: ({ signal }) => ask('GET data/{entity}/{id}/shares', { params: { entity: entity.name, id }, signal }) })
  const shares = list.data ?? []
  const labelOf = useLabels('user', shares.flatMap((s) => (s.user ? [s.user] : [])))
  const changed = () => {
    for (const what of ['shares', 'why', 'seers']) void client.invalidateQueries({ queryKey: ['data', what, entity.name, id] })
  }
  const drop = useMutation<unknown, ApiError, RecordShare>({
    mutationFn: (s) => ask('DELETE data/{entity}/{id}/shares', { params: { entity: entity.name, id }, body: s.user ? { user: s.user } : { role: s.role ?? '' } }),
    onSuccess: () => { changed(); toast.show({ text: 'Took the share back' }) },
  })
  const nameOf = (s: RecordShare) => (s.user ? labelOf(s.user) ?? s.user : `role ${s.role ?? ''}`)
  return (
    <Section title="Shares" right={list.data && String(shares.length)}>
      {list.error && <ErrorState what="The shares could not be loaded." error={asError(list.error)} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={2} label="Loading shares" />}
      {list.data && shares.length === 0 && <p className="second">Shared with nobody{mayShare ? '' : ' whom you may name'}.</p>}
      {shares.length > 0 && (
        <table className="tbl flat seers">
          <thead><tr><th scope="col">With</th><th scope="col">Access</th><th scope="col" className="num">Since</th><th scope="col"><span className="hidden-words">Take back</span></th></tr></thead>
          <tbody>
            {shares.map((s) => (
              <tr key={s.user ?? `role ${s.role ?? ''}`}>
                <td className="trunc">{nameOf(s)}</td><td className="second">{s.access}</td><td className="num second"><Time at={s.created_at} /></td>
                <td className="num">{mayShare && <IconButton small label={`Take back the share with ${nameOf(s)}`} disabled={drop.isPending} onClick={() => { drop.mutate(s) }}><IconX size={14} stroke={1.7} aria-hidden /></IconButton>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {drop.error && <ActionError error={asError(drop.error)} />}
      {mayShare && !adding && <div className="top6"><Button small onClick={() => { setAdding(true) }}>Share…</Button></div>}
      {mayShare && adding && <ShareForm entity={entity} roles={roles} id={id} onClose={() => { setAdding(false) }} onShared={() => { setAdding(false); changed() }} />}
    </Section>
  )
}

function ShareForm({ entity, roles, id, onClose, onShared }: { entity: DataEntity; roles: readonly string[]; id: string; onClose: () => void; onShared: () => void }) {
  const [kind, setKind] = useState<'user' | 'role'>('user')
  const [user, setUser] = useState<string | null>(null)
  const [role, setRole] = useState<string | null>(null)
  const [access, setAccess] = useState<'read' | 'edit'>('read')
  const share = useMutation<unknown, ApiError, ShareWith>({
    mutationFn: (body) => ask('POST data/{entity}/{id}/shares', { params: { entity: entity.name, id }, body }),
    onSuccess: () => { onShared(); toast.show({ text: 'Shared' }) },
  })
  const error = share.error ?? undefined
  const chosen = kind === 'user' ? user : role
  return (
    <form className="shareform" noValidate onSubmit={(event) => { event.preventDefault(); if (chosen && !share.isPending) share.mutate(kind === 'user' ? { user: chosen, access } : { role: chosen, access }) }}>
      <Segmented small label="Share with" value={kind} options={[{ value: 'user', label: 'A user' }, ...(roles.length > 0 ? [{ value: 'role' as const, label: 'A role' }] : [])]} onChange={setKind} />
      {kind === 'user'
        ? <LookupField label="User" value={user} clearable find={(text, signal) => findLabels('user', text, signal)} onChange={(next) => { setUser(next) }} error={error?.fields['user']} placeholder="Find a user" />
        : <SelectField label="Role" help="Its users, and users with a role above it." value={role} options={roles.map((r) => ({ value: r, label: r }))} onChange={setRole} error={error?.fields['role']} />}
      <Segmented small label="Access" value={access} options={[{ value: 'read', label: 'Read' }, { value: 'edit', label: 'Read and change' }]} onChange={setAccess} />
      <ActionError error={error} />
      <div className="row formacts"><Button small kind="main" type="submit" disabled={!chosen} busy={share.isPending}>Share {entity.name}</Button><Button small kind="quiet" onClick={onClose}>Cancel</Button></div>
    </form>
  )
}
