import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { sessionKey, useSession } from '../../app/session'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { PasswordField } from '../../ui/field'
import { KeyValues, Section } from '../../ui/list'
import { Page } from '../../ui/page'
import { ErrorState, Note, Skeleton } from '../../ui/states'
import { toast } from '../../ui/toast'
import { Enrol, type Recovery } from './factor'
import { RecoveryCodes } from './recovery'
import { SessionTable } from './session-table'

export default function AccountPage() {
  const session = useSession()
  const account = useQuery({ queryKey: ['account'], queryFn: ({ signal }) => ask('GET account', { signal }) })
  const sessions = useQuery({ queryKey: ['account', 'sessions'], queryFn: ({ signal }) => ask('GET account/sessions', { signal }) })
  return (
    <Page title="Account" count={session.user.email}>
      {session.actingAs && <Note kind="warn">You act as {session.actingAs.name}. This page is about your own account, {session.user.name}.</Note>}
      <div className="twocols">
        <div>
          <Section title="Who you are">
            <KeyValues items={[{ name: 'Name', value: session.user.name }, { name: 'E-mail', value: session.user.email }, { name: 'Rights', value: session.owner && !session.actingAs ? 'owner of the tenant: all of them' : session.system.length ? <span className="row wrap">{session.system.map((s) => <code key={s}>{s}</code>)}</span> : 'no system permissions' }]} />
          </Section>
          <Section title="Password"><PasswordForm /></Section>
        </div>
        <Section title="Second factor">
          {account.error ? <ErrorState what="The second factor could not be looked up." error={asError(account.error)} onRetry={() => void account.refetch()} />
            : account.data ? <Factor enrolled={account.data.secondFactor.enrolled} required={account.data.secondFactor.required} codes={account.data.secondFactor.recoveryCodes} /> : <Skeleton rows={2} />}
        </Section>
      </div>
      <Section title="Where you are signed in">
        <SessionTable own rows={sessions.data} error={sessions.error ? asError(sessions.error) : undefined} loading={sessions.isFetching} onRetry={() => void sessions.refetch()} />
      </Section>
    </Page>
  )
}

function PasswordForm() {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const client = useQueryClient()
  const change = useMutation({
    mutationFn: () => ask('POST account/password', { body: { currentPassword: current, newPassword: next } }),
    onSuccess: () => { setCurrent(''); setNext(''); toast.show({ text: 'The password is changed. Your other sessions have ended.' }); void client.invalidateQueries({ queryKey: ['account'] }) },
  })
  const error = change.error ? asError(change.error) : undefined
  return (
    <form className="narrowform" noValidate onSubmit={(event) => { event.preventDefault(); if (!change.isPending) change.mutate() }}>
      <PasswordField label="Current password" name="current-password" autoComplete="current-password" required value={current} onChange={setCurrent} error={error?.fields['currentPassword']} />
      <PasswordField label="New password" name="new-password" autoComplete="new-password" required value={next} onChange={setNext} error={error?.fields['newPassword']} help="Your other sessions end." />
      {error && Object.keys(error.fields).length === 0 && <ActionError error={error} />}
      <Button type="submit" busy={change.isPending} disabled={!current || !next}>Change the password</Button>
    </form>
  )
}

function Factor({ enrolled, required, codes }: { enrolled: boolean; required: boolean; codes: number }) {
  const client = useQueryClient()
  const [recovery, setRecovery] = useState<Recovery>()
  const [dropping, setDropping] = useState(false)
  if (recovery) {
    return (
      <>
        <p className="second">Each of these signs you in once, when the app is not at hand. They are shown this once.</p>
        <RecoveryCodes codes={recovery.recoveryCodes} onDone={() => { client.setQueryData(sessionKey, recovery.session); setRecovery(undefined); void client.invalidateQueries({ queryKey: ['account'] }) }} />
      </>
    )
  }
  if (!enrolled) {
    return (
      <div className="narrowform">
        <p className="row says"><Arch state="none" />Off. A code of an app on your phone would be asked for after the password.</p>
        <Enrol withPassword onDone={setRecovery} />
      </div>
    )
  }
  return (
    <>
      <p className="row says"><Arch state="open" />On, with {codes === 1 ? '1 recovery code' : `${codes} recovery codes`} left.</p>
      <div className="row wrap">
        <Button kind="danger" disabled={required} onClick={() => { setDropping(true) }}>Turn it off</Button>
        {required && <span className="muted">This tenant asks its staff for one.</span>}
      </div>
      {dropping && <DropFactor onClose={() => { setDropping(false) }} />}
    </>
  )
}

function DropFactor({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const [password, setPassword] = useState('')
  const drop = useMutation({
    mutationFn: () => ask('DELETE account/factor', { body: { currentPassword: password } }),
    onSuccess: () => { onClose(); toast.show({ text: 'The second factor is off.' }); void client.invalidateQueries({ queryKey: ['account'] }) },
  })
  const error = drop.error ? asError(drop.error) : undefined
  return (
    <ConfirmDestroy title="Turn the second factor off?" action="Turn it off" keep="Keep it on" busy={drop.isPending} error={error && Object.keys(error.fields).length === 0 ? error : undefined} onConfirm={() => { drop.mutate() }} onClose={onClose}>
      The password alone signs you in then. The recovery codes stop working.
      <PasswordField label="Your password" name="password" autoComplete="current-password" required value={password} onChange={setPassword} error={error?.fields['currentPassword']} />
    </ConfirmDestroy>
  )
}
