import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ask } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { useChange } from '../../app/change'
import { problemAt, useObject } from '../../app/objects'
import { paths } from '../../app/paths'
import { useMay, useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { IdChip } from '../../ui/copy'
import { useDraft } from '../../ui/drafts'
import { Drawer } from '../../ui/drawer'
import { PasswordField, TextField } from '../../ui/field'
import { Link } from '../../ui/link'
import { KeyValues } from '../../ui/list'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'
import { UserState, type UserLine } from './people'
import { RightsFields } from './rights-fields'
import { withRights, type UserValue } from './user-value'

interface Props { email: string; line: UserLine | undefined; type: 'internal' | 'external'; self: boolean; onStep: (by: 1 | -1) => void; onClose: () => void }

/** UserDrawer shows one user: their rights to edit, and what may be done about them. */
export function UserDrawer({ email, line, type, self, onStep, onClose }: Props) {
  const stored = useObject<UserValue>('user', email)
  const error = stored.error ? asError(stored.error) : undefined
  const name = line?.name || stored.data?.value.name || email
  const sub = <>{line && <IdChip id={line.id} short label="user id" />}<span>{email}</span>{line && <UserState user={line} />}</>
  return (
    <Drawer title={name} label={`User ${name}`} sub={sub} onStep={onStep} onClose={onClose}>
      {error && <ErrorState what="The user could not be loaded." error={error} onRetry={() => void stored.refetch()} />}
      {!error && stored.data === undefined && <Skeleton rows={5} label="Loading the user" />}
      {stored.data === null && <Empty title="There is no such user">The address {email} belongs to nobody here.</Empty>}
      {stored.data && <>
        <Rights stored={stored.data} line={line} />
        <Facts line={line} />
        <Deeds email={email} line={line} type={type} self={self} version={stored.data.version} />
      </>}
    </Drawer>
  )
}

function Rights({ stored, line }: { stored: { name: string; version: string; value: UserValue }; line: UserLine | undefined }) {
  const session = useSession()
  const may = useMay(['manage_users'])
  const draft = useDraft<UserValue>(`user/${stored.name}`, stored.value, stored.version)
  const change = useChange(`user ${stored.name}`, `${draft.value.name ?? stored.name} saved`)
  const set = (patch: Partial<UserValue>) => { draft.set((was) => withRights(was, patch)) }
  const owner = stored.value.owner ?? false
  return (
    <section className="sec">
      <LeaveGuard dirty={draft.dirty} what="The user’s changes are not saved." onDiscard={draft.discard} />
      {draft.restored && <Note>Your unsaved changes are here again.</Note>}
      <form className="stack" onSubmit={(event) => { event.preventDefault(); if (draft.dirty) change.start([{ kind: 'user', name: stored.name, value: draft.value, against: draft.against }], draft.discard) }}>
        <TextField label="Name" value={draft.value.name ?? ''} onChange={(name) => { set({ name }) }} disabled={!may} error={problemAt(change.problems, 'name')} autoComplete="off" />
        <RightsFields value={draft.value} onChange={set} problems={change.problems} mayOwn={session.owner && may} />
        {owner && !session.owner && <p className="help">Only an owner changes an owner.</p>}
        <ActionError error={change.problems.length ? undefined : change.error} />
        {change.problems.filter((p) => !['name', 'role', 'permission_sets', 'owner'].includes(p.path)).map((p) => <p className="help bad" key={p.path + p.message}>{p.message}</p>)}
        {draft.dirty && <div className="row"><Button kind="main" type="submit" busy={change.busy}>Save {line?.name || stored.name}</Button><Button kind="quiet" onClick={draft.discard}>Discard</Button></div>}
      </form>
      {change.dialog}
    </section>
  )
}

function Facts({ line }: { line: UserLine | undefined }) {
  if (!line) return null
  return (
    <section className="sec">
      <h2>Facts</h2>
      <KeyValues label="Facts" items={[
        { name: 'Kind', value: line.type === 'external' ? 'external: an end-user of your app' : 'internal: your staff' },
        { name: 'E-mail', value: line.emailVerified ? 'verified' : 'not verified' },
        { name: 'Password', value: line.hasPassword ? 'set' : 'none: cannot sign in' },
        { name: 'Created', value: <Time at={line.createdAt} form="full" /> },
        { name: 'Changed', value: <Time at={line.updatedAt} form="full" /> },
        { name: 'Requests', value: <Link to={paths.auditWhere({ user: line.email })}>in the audit log</Link> },
        { name: 'Changes', value: <Link to={`${paths.history()}?kind=user&name=${encodeURIComponent(line.email)}`}>in the change history</Link> },
      ]} />
    </section>
  )
}

/** Deeds are what may be done about a user besides their rights. */
function Deeds({ email, line, type, self, version }: { email: string; line: UserLine | undefined; type: 'internal' | 'external'; self: boolean; version: string }) {
  const session = useSession()
  const manages = useMay(['manage_users'])
  const external = useMay(['manage_users', 'can_manage_external_users'])
  const actsAs = useMay(['login_as'])
  const client = useQueryClient()
  const [asking, setAsking] = useState(false)
  const change = useChange(`user ${email}`, `${email}: done`)
  const resend = useMutation<unknown, ApiError>({
    mutationFn: async () => { try { return await ask('POST users/{id}/resend', { params: { id: line?.id ?? '' } }) } catch (thrown) { throw asError(thrown) } },
    onSuccess: () => { toast.show({ text: `The verification mail to ${email} is on its way` }) },
  })
  const act = useMutation<unknown, ApiError>({
    mutationFn: async () => { try { return await ask('POST session/acting', { body: { userId: line?.id ?? '' } }) } catch (thrown) { throw asError(thrown) } },
    onSuccess: () => { client.clear(); window.location.assign('/admin') },
  })
  if (!line) return null
  return (
    <section className="sec">
      <h2>What can be done</h2>
      <div className="row wrap">
        {type === 'external' && line.pending && external && <Button busy={resend.isPending} onClick={() => { resend.mutate() }}>Send the verification mail again</Button>}
        {!line.active && external && <Button busy={change.busy} onClick={() => { change.start([{ kind: 'user', name: email, activate: true }], () => undefined) }}>{line.pending ? 'Activate without mail' : 'Reactivate'}</Button>}
        {type === 'internal' && line.active && actsAs && !self && !session.actingAs && <Button busy={act.isPending} onClick={() => { act.mutate() }}>Act as {line.name || email}</Button>}
        {line.active && !self && (type === 'external' ? external : manages) && <Button kind="danger" onClick={() => { setAsking(true) }}>Deactivate</Button>}
      </div>
      <ActionError error={change.error ?? resend.error ?? act.error ?? undefined} />
      {manages && <NewPassword email={email} version={version} />}
      {asking && <ConfirmDestroy title={`Deactivate ${line.name || email}`} action="Deactivate" keep="Keep active" busy={change.busy} error={change.error} onClose={() => { setAsking(false) }}
        onConfirm={() => { change.confirmed([{ kind: 'user', name: email, value: null }], () => { setAsking(false) }) }}>
        <p>{type === 'external' ? 'Every session ends; an access token works until its hour is over.' : 'Their sessions end, and keys that act as them stop at once.'} Their records stay. They can be reactivated.</p>
      </ConfirmDestroy>}
      {change.dialog}
    </section>
  )
}

/** NewPassword sets a password for somebody who cannot: it ends their sessions. It is never kept in a draft. */
function NewPassword({ email, version }: { email: string; version: string }) {
  const stored = useObject<UserValue>('user', email)
  const [open, setOpen] = useState(false)
  const [password, setPassword] = useState('')
  const change = useChange(`user ${email}`, `The password of ${email} is changed`)
  if (!open) return <p className="top6"><button type="button" className="linkish" onClick={() => { setOpen(true) }}>Set a password for them</button></p>
  return (
    <form className="stack top6" onSubmit={(event) => {
      event.preventDefault()
      change.start([{ kind: 'user', name: email, value: { ...stored.data?.value, password }, against: version }], () => { setPassword(''); setOpen(false) })
    }}>
      <LeaveGuard dirty={password !== ''} what="The new password is not set." />
      <PasswordField label="New password" required value={password} onChange={setPassword} autoComplete="new-password" error={problemAt(change.problems, 'password')} help="8 to 128 characters. Their sessions end." />
      <ActionError error={change.problems.length ? undefined : change.error} />
      <div className="row"><Button type="submit" busy={change.busy} disabled={password === ''}>Set password</Button><Button kind="quiet" onClick={() => { setPassword(''); setOpen(false) }}>Discard</Button></div>
      {change.dialog}
    </form>
  )
}
