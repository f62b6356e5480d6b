import { Suspense, type ReactNode } from 'react'
import { Forbidden, Waiting } from '../ui/states'
import { may, type Page } from './feature'
import { useSession } from './session'

/** PageGate keeps a page shut to those who lack its permission. The server decides; this spares the question. */
export function PageGate({ page, children }: { page: Page; children: ReactNode }) {
  const session = useSession()
  if (!may(session, page.needs)) return <div className="body"><Forbidden needs={page.needs ?? []} /></div>
  return <Suspense fallback={<Waiting />}>{children}</Suspense>
}
