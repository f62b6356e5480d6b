import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet } from '@tanstack/react-router'
import { features } from './features'
import type { Page } from './feature'
import { queryOf, searchOf } from '../ui/link'
import { asError } from '../api/error'
import { Button } from '../ui/button'
import { Empty, ErrorState, Waiting } from '../ui/states'
import { Missing } from './missing'
import { PageGate } from './page-gate'
import { Shell } from './shell'

declare module '@tanstack/react-router' {
  interface StaticDataRouteOption { page?: Page }
}

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing })
const bare = createRoute({ getParentRoute: () => root, id: 'bare', component: Outlet })
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell })

/** The pages that show the parts of ui, in development only. */
const kit: readonly Page[] = import.meta.env.DEV || import.meta.env.MODE === 'kit'
  ? [{ path: '/kit', title: 'Kit', load: () => import('../kit/kit'), bare: true }]
  : []

const all = [...features.flatMap((feature) => feature.pages), ...kit]

function routeOf(page: Page, parent: typeof shell | typeof bare) {
  const Lazy = lazyRouteComponent(page.load)
  return createRoute({
    getParentRoute: () => parent as typeof shell,
    path: page.path,
    staticData: { page },
    component: page.bare ? Lazy : () => <PageGate page={page}><Lazy /></PageGate>,
    pendingComponent: Waiting,
    errorComponent: Stopped,
  })
}

/** What a browser says when a file of the console is not there: it was updated meanwhile, or the connection broke. */
const notLoaded = /dynamically imported module|importing a module script|unable to preload/i

/** Stopped stands in place of a page that failed. */
function Stopped({ error, reset }: { error: unknown; reset: () => void }) {
  return (
    <div className="body">
      {error instanceof Error && notLoaded.test(error.message)
        ? <Empty title="A part of the console could not be loaded" arch="hold" action={<Button kind="main" onClick={() => { window.location.reload() }}>Load the console again</Button>}>It was updated meanwhile, or the connection broke. What you were editing is kept in this browser.</Empty>
        : <ErrorState what="This page stopped." error={asError(error)} onRetry={reset} />}
    </div>
  )
}

const missing = createRoute({ getParentRoute: () => shell, path: '$', component: Missing })

export const router = createRouter({
  routeTree: root.addChildren([
    bare.addChildren(all.filter((p) => p.bare).map((p) => routeOf(p, bare))),
    shell.addChildren([...all.filter((p) => !p.bare).map((p) => routeOf(p, shell)), missing]),
  ]),
  basepath: '/admin',
  // Addresses are plain: ?entity=contact&tab=fields, never JSON.
  parseSearch: (text) => searchOf(text.startsWith('?') ? text.slice(1) : text),
  stringifySearch: queryOf,
  defaultPreload: 'intent',
  defaultErrorComponent: Stopped,
  defaultPendingMs: 150,
  scrollRestoration: false,
})
