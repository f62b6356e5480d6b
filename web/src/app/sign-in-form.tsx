import { useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ask } from '../api/client'
import type { Session } from '../api/admin'
import { asError } from '../api/error'
import { Button } from '../ui/button'
import { PasswordField, TextField } from '../ui/field'
import { Link } from '../ui/link'

/** signInWords says in words why a sign-in failed. */
export function signInWords(thrown: unknown): string {
  const error = asError(thrown)
  if (error.isOffline) return 'The server did not answer. Try again.'
  if (error.status === 429) return `Too many tries. Wait${error.retryAfter ? ` ${error.retryAfter} s` : ''} and try again.`
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`
}

/**
 * SignInForm asks for the address, the password and, if there is one, the code of the second factor.
 * fixed keeps the address: the dialog over a page is for the same user.
 */
export function SignInForm({ email: given = '', fixed, big, onOpen, onCancel }: { email?: string; fixed?: boolean; big?: boolean; onOpen: (session: Session) => void; onCancel?: () => void }) {
  const [email, setEmail] = useState(given)
  const [password, setPassword] = useState('')
  const [due, setDue] = useState(false)
  const passwordRef = useRef<HTMLFormElement>(null)
  const next = (session: Session) => { if (session.stage === 'code') setDue(true); else onOpen(session) }
  const signIn = useMutation({
    mutationFn: () => ask('POST session', { body: { email: email.trim(), password } }),
    onSuccess: next,
    onError: () => { passwordRef.current?.querySelector<HTMLInputElement>('input[name=password]')?.select() },
  })
  const error = signIn.error ? asError(signIn.error) : undefined
  if (due) return <CodeForm big={big} onOpen={onOpen} onBack={() => { setDue(false); setPassword(''); signIn.reset() }} />
  return (
    <form ref={passwordRef} noValidate onSubmit={(event) => { event.preventDefault(); if (!signIn.isPending) signIn.mutate() }}>
      {fixed
        ? <><div className="kv"><span className="muted">As</span>{email}</div><input type="hidden" name="username" autoComplete="username" value={email} readOnly /></>
        : <TextField label="E-mail" input="email" name="username" autoComplete="username" big={big} required value={email} onChange={setEmail} error={error?.fields['email']} autoFocus={!given} />}
      <PasswordField label="Password" name="password" autoComplete="current-password" big={big} required value={password} onChange={setPassword}
        type={fixed ? undefined : <Link to="/forgot">Forgot it?</Link>} error={error?.fields['password']} autoFocus={!!given} />
      {error && Object.keys(error.fields).length === 0 && <p className="help bad" role="alert">{signInWords(error)}</p>}
      <div className={big ? '' : 'dialogacts'}>
        {onCancel && <Button small kind="quiet" onClick={onCancel}>Not now</Button>}
        <Button type="submit" kind="main" small={!big} className={big ? 'big' : ''} busy={signIn.isPending}>{signIn.isPending ? 'Signing in' : 'Sign in'}</Button>
      </div>
    </form>
  )
}

/** codeBody takes six figures for a code of the app, and anything else for a recovery code. */
export function codeBody(text: string): { code: string } | { recoveryCode: string } {
  const bare = text.replace(/\s/g, '')
  return /^\d{6}$/.test(bare) ? { code: bare } : { recoveryCode: text.trim() }
}

/** CodeForm asks for the six figures of the second factor, or one of the recovery codes. */
export function CodeForm({ big, onOpen, onBack }: { big?: boolean | undefined; onOpen: (session: Session) => void; onBack: () => void }) {
  const [code, setCode] = useState('')
  const check = useMutation({ mutationFn: () => ask('POST session/code', { body: codeBody(code) }), onSuccess: onOpen })
  const error = check.error ? asError(check.error) : undefined
  return (
    <form noValidate onSubmit={(event) => { event.preventDefault(); if (!check.isPending) check.mutate() }}>
      <TextField label="Code" name="code" autoComplete="one-time-code" inputMode="numeric" mono big={big} required autoFocus value={code} onChange={setCode}
        help="The six figures your authenticator shows, or a recovery code." error={error ? error.fields['code'] ?? error.fields['recoveryCode'] ?? signInWords(error) : undefined} />
      <div className={big ? '' : 'dialogacts'}>
        <Button type="submit" kind="main" small={!big} className={big ? 'big' : ''} busy={check.isPending}>Check the code</Button>
        <Button kind="quiet" small onClick={onBack}>Start again</Button>
      </div>
    </form>
  )
}
