import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, lazy, Suspense, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { ask, onSignedOut } from '../api/client'
import type { Session } from '../api/admin'
import { asError } from '../api/error'
import { ErrorState, Waiting } from '../ui/states'
import { useGo } from '../ui/url'
import { paths } from './paths'
import { may, type Needs } from './feature'
import { useLocation } from '@tanstack/react-router'

const Reopen = lazy(() => import('./reopen'))

const SessionContext = createContext<Session | undefined>(undefined)

/** useSession gives who is signed in; it is there on every page with the shell around it. */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('useSession outside of a page that needs a session')
  return session
}

/** useMay says whether the viewer has one of the permissions. */
export function useMay(needs: Needs): boolean { return may(useSession(), needs) }

export const sessionKey = ['session'] as const

/**
 * SessionProvider asks who is signed in. Nobody: it goes to the sign-in page and comes back after.
 * A session that ends later, on any call, opens a dialog over the page: the page and its edits stay mounted,
 * and each call that met the 401 is repeated once somebody signed in.
 */
export function SessionProvider({ children }: { children: ReactNode }) {
  const go = useGo()
  const client = useQueryClient()
  const here = useLocation({ select: (l) => l.href })
  const query = useQuery({ queryKey: sessionKey, queryFn: ({ signal }) => ask('GET session', { signal }), staleTime: 60_000, retry: (n, e) => n < 2 && asError(e).isOffline })
  const [ended, setEnded] = useState(false)
  const waiting = useRef<((again: boolean) => void)[]>([])
  const held = useRef<Session | undefined>(undefined)
  if (query.data?.stage === 'full') held.current = query.data
  const session = held.current

  useEffect(() => {
    onSignedOut(() => new Promise((resolve) => { waiting.current.push(resolve); setEnded(true) }))
    return () => { onSignedOut(() => Promise.resolve(false)) }
  }, [])

  const error = query.error ? asError(query.error) : undefined
  const nobody = !session && (error?.isSignedOut || (query.data && query.data.stage !== 'full'))
  const first = useRef(here)
  // Once: while the sign-in page loads, this part is still here and the address has changed already.
  useEffect(() => { if (nobody) go(paths.signIn(first.current), { replace: true }) }, [nobody, go])
  // The session's own query ended with 401 while a page is open: the same dialog.
  const lapsed = session !== undefined && error?.isSignedOut === true

  const close = useMemo(() => (again: boolean, opened?: Session) => {
    if (opened) client.setQueryData(sessionKey, opened)
    setEnded(false)
    for (const resolve of waiting.current.splice(0)) resolve(again)
    if (again) void client.invalidateQueries({ predicate: (q) => q.state.status === 'error' })
  }, [client])

  if (!session) return error && !error.isSignedOut ? <main className="alone"><ErrorState what="The console could not be opened." error={error} onRetry={() => void query.refetch()} /></main> : <Waiting />
  return (
    <SessionContext.Provider value={session}>
      {children}
      {(ended || lapsed) && <Suspense fallback={null}><Reopen session={session} onClose={close} /></Suspense>}
    </SessionContext.Provider>
  )
}
