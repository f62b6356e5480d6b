import { IconTrash } from '@tabler/icons-react'
import { useState } from 'react'
import type { KeyInfo } from '../../api/admin'
import { asError } from '../../api/error'
import { paths } from '../../app/paths'
import { useMay, useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { IdChip } from '../../ui/copy'
import { useDraft } from '../../ui/drafts'
import { Drawer, type DrawerTab } from '../../ui/drawer'
import { Link } from '../../ui/link'
import { Status } from '../../ui/list'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { Ago, durationWords, Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { UseIt } from '../../ui/useit'
import { KeyFields } from './fields'
import { changesOf, formOf } from './form'
import { useChangeKey, useDeleteKey, useLastRequests, useSampleEntity } from './queries'

/** KeyDrawer is one key: its settings, its last requests, a sample, and its end. */
export function KeyDrawer({ info, onStep, onClose }: { info: KeyInfo; onStep: (by: 1 | -1) => void; onClose: () => void }) {
  const [deleting, setDeleting] = useState(false)
  const seesLog = useMay(['manage_endpoints'])
  const { tenant } = useSession()
  const entity = useSampleEntity()
  const tabs: DrawerTab[] = [
    { key: 'settings', label: 'Settings', content: () => <Settings info={info} /> },
    ...(seesLog ? [{ key: 'requests', label: 'Last requests', content: () => <LastRequests id={info.id} /> }] : []),
    { key: 'use', label: 'Use it', content: () => <UseIt request={{ method: 'GET', url: `${tenant.baseUrl}/public/v1/${entity ? `data/${entity}?limit=5` : 'me'}` }} /> },
  ]
  return (
    <>
      <Drawer title={info.name} label={`API key ${info.name}`} onStep={onStep} onClose={onClose} tabs={tabs}
        acts={info.mayChange && <Button small kind="danger" icon={<IconTrash size={14} stroke={1.7} aria-hidden />} onClick={() => { setDeleting(true) }}>Delete</Button>}
        sub={<><span className="mono">{info.prefix}…</span><IdChip id={info.id} short label="key id" /><span>made <Time at={info.createdAt} form="day" /></span><span>last used <Ago at={info.lastUsedAt} /></span></>} />
      {deleting && <DeleteKey info={info} onClose={() => { setDeleting(false) }} onDone={onClose} />}
    </>
  )
}

function Settings({ info }: { info: KeyInfo }) {
  const stored = formOf(info)
  const draft = useDraft(`api-key/${info.id}`, stored, info.version)
  const change = useChangeKey(info.id)
  const error = change.error ? asError(change.error) : undefined
  const [over, setOver] = useState<KeyInfo>()
  const save = (version: string) => {
    change.mutate({ version, ...changesOf(stored, draft.value) }, {
      onSuccess: (now) => { draft.discard(); setOver(undefined); toast.show({ text: <>“{now.name}” is changed, at once</> }) },
      onError: (thrown) => { setOver(asError(thrown).conflict?.stored as KeyInfo | undefined) },
    })
  }
  return (
    <form className="keyform" onSubmit={(event) => { event.preventDefault(); if (draft.dirty && !change.isPending) save(draft.against) }}>
      {!info.mayChange && <Note>It acts for another user: its user and the tenant’s owner may change it.</Note>}
      {over && (
        <ConflictView what={<>“{over.name}”</>} theirs={formOf(over)} yours={draft.value} busy={change.isPending}
          onTakeTheirs={() => { draft.discard(); setOver(undefined); change.reset() }} onMerge={() => { draft.rebase(over.version); setOver(undefined); change.reset() }} onSaveMine={() => { save(over.version) }} />
      )}
      <KeyFields form={draft.value} set={(patch) => { draft.set((was) => ({ ...was, ...patch })) }} errors={error?.fields ?? {}} disabled={!info.mayChange} />
      {error && !over && Object.keys(error.fields).length === 0 && <ActionError error={error} />}
      {info.mayChange && <div className="dialogacts"><Button disabled={!draft.dirty} onClick={() => { draft.discard(); change.reset() }}>Discard</Button><Button type="submit" kind="main" disabled={!draft.dirty} busy={change.isPending}>Save changes</Button></div>}
    </form>
  )
}

function LastRequests({ id }: { id: string }) {
  const { rows, error, loading } = useLastRequests(id, true)
  if (error) return <ErrorState what="The last requests could not be loaded." error={error} />
  if (loading || !rows) return <Skeleton rows={5} />
  if (rows.length === 0) return <Empty title="No requests yet">What is called with this key is listed here, and in the audit log.</Empty>
  return (
    <>
      <ul className="plainlist">
        {rows.map((e) => (
          <li key={e.id}><Link to={paths.audit(e.id)} className="row"><Time at={e.time} form="clock" /><Status code={e.status} /><span className="mono trunc grow">{e.method} {e.path}</span><span className="muted">{durationWords(e.durationMs)}</span></Link></li>
        ))}
      </ul>
      <p className="top6"><Link to={paths.auditWhere({ key: id })}>All in the audit log</Link></p>
    </>
  )
}

function DeleteKey({ info, onClose, onDone }: { info: KeyInfo; onClose: () => void; onDone: () => void }) {
  const remove = useDeleteKey()
  const live = info.lastUsedAt !== null
  return (
    <ConfirmDestroy title={`Delete the key “${info.name}”`} action="Delete the key" busy={remove.isPending} error={remove.error ? asError(remove.error) : undefined}
      {...(live ? { typeName: info.name } : {})} onClose={onClose}
      onConfirm={() => { remove.mutate(info.id, { onSuccess: (_, stayed) => { toast.show({ text: <>The key “{info.name}” is deleted</> }); if (stayed) onDone() } }) }}>
      {live ? <>What calls with it gets 401 from this moment on. It was last used <Ago at={info.lastUsedAt} />.</> : <>Nothing has used it yet.</>} Its entries stay in the audit log.
    </ConfirmDestroy>
  )
}
