import { Suspense, type ReactNode } from 'react'
import { Forbidden, Waiting } from '../ui/states'
import { Page } from '../ui/page'
import { may, type Page as PageOf } from './feature'
import { useSession } from './session'

/** PageGate keeps a page shut to those who lack its permission. The server decides; this spares the question. */
export function PageGate({ page, children }: { page: PageOf; children: ReactNode }) {
  const session = useSession()
  if (!may(session, page.needs)) return <Page title={page.title}><Forbidden needs={page.needs ?? []} /></Page>
  return <Suspense fallback={<Waiting />}>{children}</Suspense>
}
