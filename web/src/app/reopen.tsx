import { useQueryClient } from '@tanstack/react-query'
import type { Session } from '../api/admin'
import { Dialog } from '../ui/dialog'
import { dropDrafts } from '../ui/drafts'
import { SignInForm } from './sign-in-form'

/** Reopen asks to sign in again over the page; what is on the page stays as it is. */
export default function Reopen({ session, onClose }: { session: Session; onClose: (again: boolean, opened?: Session) => void }) {
  const client = useQueryClient()
  const opened = (next: Session) => {
    if (next.user.id !== session.user.id) {
      // Somebody else: nothing of the page is theirs.
      dropDrafts()
      client.clear()
      window.location.assign('/admin/')
      return
    }
    onClose(true, next)
  }
  return (
    <Dialog open onClose={() => { onClose(false) }} title="Sign in to go on" width={420} locked>
      <p className="second">Your session ended. What you were editing is still here.</p>
      <SignInForm email={session.user.email} fixed onOpen={opened} onCancel={() => { onClose(false) }} />
    </Dialog>
  )
}
