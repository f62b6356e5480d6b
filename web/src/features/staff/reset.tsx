import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { paths } from '../../app/paths'
import { signInWords } from '../../app/sign-in-form'
import { Button } from '../../ui/button'
import { PasswordField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Empty } from '../../ui/states'
import { Gate } from './gate'

/** The token of the link. It is taken out of the address at once, so that it is in no history and no picture of the screen. */
function takeToken(): string {
  return new URLSearchParams(window.location.search).get('token') ?? ''
}

export default function ResetPage() {
  const [token] = useState(takeToken)
  const [password, setPassword] = useState('')
  useEffect(() => { if (token) window.history.replaceState(window.history.state, '', window.location.pathname) }, [token])
  const set = useMutation({ mutationFn: () => ask('POST password/reset', { body: { token, newPassword: password } }) })
  const error = set.error ? asError(set.error) : undefined
  if (!token) {
    return <Gate title="New password" lead="This page is opened by the link in the mail."><Empty title="The link is cut short" action={<Link className="btn" to="/forgot">Send a new link</Link>}>It ends before its token. Copy all of it, or ask for a new one.</Empty></Gate>
  }
  if (set.isSuccess) {
    return <Gate title="The password is set" lead="All other sessions of yours have ended."><Link className="btn main1 big" to={paths.signIn()}>Sign in</Link></Gate>
  }
  return (
    <Gate title="New password" lead="It ends all your sessions.">
      <form noValidate onSubmit={(event) => { event.preventDefault(); if (!set.isPending) set.mutate() }}>
        <PasswordField label="New password" name="new-password" autoComplete="new-password" big required autoFocus value={password} onChange={setPassword} help="At least 10 characters." error={error?.fields['newPassword']} />
        {error && Object.keys(error.fields).length === 0 && <p className="help bad" role="alert">{signInWords(error)}</p>}
        <Button type="submit" kind="main" className="big" busy={set.isPending}>Set the password</Button>
      </form>
    </Gate>
  )
}
