import { useMutation } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { ask, type Gives } from '../../api/client'
import { asError } from '../../api/error'
import { codeBody } from '../../app/sign-in-form'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { IdChip } from '../../ui/copy'
import { PasswordField, TextField } from '../../ui/field'

export type Recovery = Gives<'POST account/factor/confirm'>

/** useEnrolment is the way to a second factor: password, picture, first code. withPassword is off at the door, where it was just typed. */
export function Enrol({ withPassword, onDone, big, cancel }: { withPassword: boolean; onDone: (recovery: Recovery) => void; big?: boolean; cancel?: ReactNode }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const start = useMutation({ mutationFn: () => ask('POST account/factor', { body: withPassword ? { currentPassword: password } : {} }), onSuccess: () => { setPassword('') } })
  const confirm = useMutation({ mutationFn: () => ask('POST account/factor/confirm', { body: codeBody(code) }), onSuccess: onDone })
  const failed = start.error ?? confirm.error
  const error = failed ? asError(failed) : undefined
  const button = big ? 'big' : ''
  if (!start.data) {
    return (
      <form noValidate onSubmit={(event) => { event.preventDefault(); if (!start.isPending) start.mutate() }}>
        {withPassword && <PasswordField label="Your password" name="password" autoComplete="current-password" required value={password} onChange={setPassword} error={error?.fields['currentPassword']} />}
        {error && Object.keys(error.fields).length === 0 && <ActionError error={error} />}
        <div className="row wrap"><Button type="submit" kind={big ? 'main' : 'plain'} className={button} busy={start.isPending}>Set up a second factor</Button>{cancel}</div>
      </form>
    )
  }
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); if (!confirm.isPending) confirm.mutate() }}>
      <ol className="enrol">
        <li><b className="med">Scan this with an authenticator app</b>
          <div className="qr"><img src={start.data.qr} alt="The key as a QR code; it stands beside it as text" width={168} height={168} /></div>
          <p className="help">Or type the key: <IdChip id={start.data.secret} label="key" /></p></li>
        <li><TextField label="Type the code that it shows" name="code" autoComplete="one-time-code" inputMode="numeric" mono required autoFocus value={code} onChange={setCode} error={confirm.error ? error?.fields['code'] ?? error?.message : undefined} /></li>
      </ol>
      <div className="row wrap"><Button type="submit" kind="main" className={button} busy={confirm.isPending}>Check the code and turn it on</Button>{cancel}</div>
    </form>
  )
}
