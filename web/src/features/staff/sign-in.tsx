import { useQueryClient } from '@tanstack/react-query'
import type { Session } from '../../api/admin'
import { SignInForm } from '../../app/sign-in-form'
import { sessionKey } from '../../app/session'
import { useGo, useUrlValue } from '../../ui/url'
import { Gate } from './gate'
import { safeNext } from './next'

export default function SignInPage() {
  const [next] = useUrlValue('next')
  const client = useQueryClient()
  const go = useGo()
  const open = (session: Session) => {
    client.clear()
    client.setQueryData(sessionKey, session)
    go(session.stage === 'enrolment' ? '/enrol' : safeNext(next), { replace: true })
  }
  return (
    <Gate title="Sign in" lead={<>to the console on <span className="mono">{window.location.host}</span></>}
      foot="No account? An admin of this tenant can make one under Settings, Access and security, Users.">
      <SignInForm big onOpen={open} />
      <p className="help">For staff. Customers sign in to your app, not here.</p>
    </Gate>
  )
}
