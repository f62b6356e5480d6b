import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ask, askPage } from '../../api/client'
import type { DataEntity, Seer, SeersMeta } from '../../api/admin'
import { asError } from '../../api/error'
import { useMay } from '../../app/session'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { Face } from '../../ui/face'
import { Segmented } from '../../ui/field'
import { Section } from '../../ui/list'
import { LookupField, SelectField } from '../../ui/select'
import { ErrorState, Skeleton } from '../../ui/states'
import { useUrlValue } from '../../ui/url'
import { findLabels, useLabels, type Look } from './queries'
import { Shares } from './shares'
import { WhyAnswer } from './why'

const verbs = [{ value: 'read', label: 'read' }, { value: 'update', label: 'update' }, { value: 'delete', label: 'delete' }]

/** WhoTab: may this user do that with the record, and why; who sees it; its shares. */
export function WhoTab({ entity, roles, id, look, asks }: { entity: DataEntity; roles: readonly string[]; id: string; look: Look; asks: boolean }) {
  return (
    <>
      {asks && <Ask entity={entity} id={id} />}
      {asks && <Seers entity={entity} id={id} />}
      <Shares entity={entity} roles={roles} id={id} mayShare={look.meta.may.delete} />
    </>
  )
}

/** Who manages users finds any of them; others those whom they may read as records. */
async function findManaged(text: string, signal: AbortSignal): Promise<{ value: string; label: string }[]> {
  const list = await ask('GET users', { query: { search: text || undefined, limit: 20 }, signal })
  return list.map((u) => ({ value: u.id, label: u.name || u.email }))
}
const findReadable = (text: string, signal: AbortSignal) => findLabels('user', text, signal)

function Ask({ entity, id }: { entity: DataEntity; id: string }) {
  const [user, setUser] = useUrlValue('user')
  const [verb, setVerb] = useUrlValue('verb')
  const [field, setField] = useUrlValue('field')
  const [label, setLabel] = useState<string>()
  const find = useMay(['manage_users']) ? findManaged : findReadable
  const labelOf = useLabels('user', user ? [user] : [])
  const asked = verb ?? 'read'
  const why = useQuery({
    queryKey: ['data', 'why', entity.name, id, user, asked], enabled: user !== undefined, retry: false,
    queryFn: ({ signal }) => ask('GET why', { query: { user: user ?? '', entity: entity.name, id, verb: asked }, signal }),
  })
  return (
    <section className="sec" aria-label="Why can or can’t a user see this">
      <div className="ask">
        <LookupField label="Can" value={user ?? null} shown={why.data?.user.name ?? label ?? (user ? labelOf(user) : undefined)} find={find} clearable placeholder="Find a user"
          onChange={(next, option) => { setLabel(option?.label); setUser(next ?? undefined) }} />
        <SelectField label="do this" value={asked} options={verbs} onChange={(v) => { setVerb(v === 'read' || v === null ? undefined : v) }} />
        <SelectField label={`with this ${entity.name}, field`} value={field ?? null} clearable placeholder="any" options={entity.fields.map((f) => ({ value: f.name, label: f.name }))} onChange={(v) => { setField(v ?? undefined) }} />
      </div>
      {user === undefined && <p className="second">Choose a user to see what they may do with this {entity.name}, and what decides it.</p>}
      {why.error && <ErrorState what="The question could not be answered." error={asError(why.error)} onRetry={() => void why.refetch()} />}
      {user !== undefined && why.isPending && <Skeleton rows={4} label="Asking" />}
      {why.data && <WhyAnswer answer={why.data} entity={entity} id={id} verb={asked} field={field} />}
    </section>
  )
}

const said: Record<string, string> = { read: 'read', update: 'edit', delete: 'delete' }

function Seers({ entity, id }: { entity: DataEntity; id: string }) {
  const [kind, setKind] = useState<'internal' | 'external'>('internal')
  const [pages, setPages] = useState(1)
  const query = useQuery({
    queryKey: ['data', 'seers', entity.name, id, kind, pages], retry: false,
    queryFn: async ({ signal }) => {
      const list: Seer[] = []
      let looked = 0
      let meta: SeersMeta | undefined
      for (let n = 0; n < pages && (meta === undefined || meta.nextCursor !== null); n++) {
        const page = await askPage('GET data/{entity}/{id}/viewers', { params: { entity: entity.name, id }, query: { type: kind, cursor: meta?.nextCursor ?? undefined }, signal })
        list.push(...page.rows)
        looked += page.meta.looked
        meta = page.meta
      }
      return { list, looked, more: meta?.hasMore ?? false }
    },
  })
  const data = query.data
  return (
    <Section title="Who sees it" right={data && `${data.list.length} of ${data.looked}${data.more ? ' looked at' : ''}`}>
      <Segmented small label="Users" value={kind} options={[{ value: 'internal', label: 'Staff' }, { value: 'external', label: 'External users' }]} onChange={(next) => { setKind(next); setPages(1) }} />
      {query.error && <ErrorState what="Who sees it could not be found out." error={asError(query.error)} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton rows={3} label="Looking who sees it" />}
      {data && (
        <table className="tbl flat seers top6">
          <thead><tr><th scope="col">User</th><th scope="col">By</th><th scope="col">May</th></tr></thead>
          <tbody>
            {data.list.map((s) => (
              <tr key={s.id}>
                <td><span className="row"><Arch state="open" /><Face name={s.name || s.email} small /><span className="trunc" title={s.email}>{s.name || s.email}</span></span></td>
                <td className="second wrapok">{s.text}{s.more > 0 && <span className="muted"> and {s.more} more</span>}</td>
                <td className="num second">{s.verbs.map((v) => said[v] ?? v).join(', ')}</td>
              </tr>
            ))}
            {data.list.length === 0 && <tr><td colSpan={3} className="second">None of the {data.looked} {kind === 'internal' ? 'staff' : 'external users'} sees it.</td></tr>}
          </tbody>
        </table>
      )}
      {data?.more && <div className="top6"><Button small busy={query.isFetching} onClick={() => { setPages(pages + 1) }}>Look at more users</Button></div>}
    </Section>
  )
}
