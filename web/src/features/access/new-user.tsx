import { useState } from 'react'
import { useChange } from '../../app/change'
import { absent, problemAt } from '../../app/objects'
import { paths } from '../../app/paths'
import { useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { useDraft } from '../../ui/drafts'
import { Drawer } from '../../ui/drawer'
import { PasswordField, TextField } from '../../ui/field'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo } from '../../ui/url'
import { RightsFields } from './rights-fields'
import { withRights, type UserValue } from './user-value'

/** NewUser adds a user of the staff, or an external user. The password is never kept in the draft. */
export function NewUser({ type, onClose }: { type: 'internal' | 'external'; onClose: () => void }) {
  const session = useSession()
  const go = useGo()
  const draft = useDraft<UserValue>(`user/new/${type}`, { email: '', type }, absent)
  const [password, setPassword] = useState('')
  const value = draft.value
  const change = useChange(`user ${value.email}`, `${value.email} added`)
  const set = (patch: Partial<UserValue>) => { draft.set((was) => withRights(was, patch)) }
  const save = () => {
    const email = value.email.trim()
    const made = { ...withRights(value, { email, name: value.name?.trim() ?? '' }), ...(password ? { password } : {}) }
    if (!made.name) delete made.name
    change.start([{ kind: 'user', name: email, value: made, against: absent }], () => {
      draft.discard()
      setPassword('')
      go(type === 'external' ? paths.externalUsers(email) : paths.users(email))
    })
  }
  return (
    <Drawer title={type === 'external' ? 'Add external user' : 'Add user'} label={type === 'external' ? 'Add external user' : 'Add user'} onClose={onClose}
      footer={<><ActionError error={change.problems.length ? undefined : change.error} /><span className="grow" /><Button onClick={() => { draft.discard(); onClose() }}>Discard</Button><Button kind="main" busy={change.busy} disabled={!value.email.trim()} onClick={save}>Add user</Button></>}>
      <LeaveGuard dirty={draft.dirty || password !== ''} what="The new user is not added yet." onDiscard={draft.discard} />
      <form className="stack" onSubmit={(event) => { event.preventDefault(); if (value.email.trim()) save() }}>
        <TextField label="E-mail" required input="email" value={value.email} onChange={(email) => { set({ email }) }} error={problemAt(change.problems, 'email')} autoComplete="off" help="It names the user and cannot be changed." />
        <TextField label="Name" value={value.name ?? ''} onChange={(name) => { set({ name }) }} error={problemAt(change.problems, 'name')} autoComplete="off" />
        <RightsFields value={value} onChange={set} problems={change.problems} mayOwn={session.owner} />
        <PasswordField label="Password" value={password} onChange={setPassword} error={problemAt(change.problems, 'password')} autoComplete="new-password"
          help={type === 'internal' ? 'For the sign-in to this console; 8 to 128 characters. Without one they use “Forgot it?” at the sign-in.' : '8 to 128 characters. Without one they use your app’s “forgot password”.'} />
        {change.problems.filter((p) => !['email', 'name', 'role', 'permission_sets', 'owner', 'password'].includes(p.path)).map((p) => <p className="help bad" key={p.path + p.message}>{p.message}</p>)}
        <button type="submit" hidden />
      </form>
      {change.dialog}
    </Drawer>
  )
}
