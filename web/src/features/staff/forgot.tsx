import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { signInWords } from '../../app/sign-in-form'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { TextField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Gate } from './gate'

export default function ForgotPage() {
  const [email, setEmail] = useState('')
  const send = useMutation({ mutationFn: () => ask('POST password/forgot', { body: { email: email.trim() } }) })
  const error = send.error ? asError(send.error) : undefined
  if (send.isSuccess) {
    return (
      <Gate title="Look into your mail" lead={<>If <b>{email.trim()}</b> is on the staff, a link to set a new password is on its way.</>}>
        <Link className="btn big" to={paths.signIn()}>Back to sign in</Link>
      </Gate>
    )
  }
  return (
    <Gate title="Forgotten password" lead="A link to set a new one comes by mail.">
      <form noValidate onSubmit={(event) => { event.preventDefault(); if (!send.isPending) send.mutate() }}>
        <TextField label="E-mail" input="email" name="username" autoComplete="username" big required autoFocus value={email} onChange={setEmail} error={error?.fields['email']} />
        {error && !error.fields['email'] && <p className="help bad" role="alert">{signInWords(error)}</p>}
        <Button type="submit" kind="main" className="big" busy={send.isPending}>Send the link</Button>
        <p className="help"><Link to={paths.signIn()}>Back to sign in</Link></p>
      </form>
    </Gate>
  )
}
