import { Outlet, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { FrameContext } from '../ui/page'
import { Toasts } from '../ui/toast'
import { ActingBanner } from './acting'
import { Header } from './header'
import { openHelp, openPalette, useOverlay } from './overlays'
import { Rail } from './rail'
import { SessionProvider } from './session'
import { useShortcut } from '../ui/shortcuts'

const Palette = lazy(() => import('./palette'))
const Help = lazy(() => import('./help'))

/** Shell is around every page of a session: rail, banner, header, the page, and what lies over it. */
export function Shell() {
  return <SessionProvider><Frame /></SessionProvider>
}

const shutKey = 'gatehouse.rail'

function Frame() {
  const page = useRouterState({ select: (s) => s.matches.at(-1)?.staticData.page })
  const path = useRouterState({ select: (s) => s.location.pathname })
  const [own, setOwn] = useState<string>()
  const [shut, setShut] = useState(() => localStorage.getItem(shutKey) === 'shut')
  const [menu, setMenu] = useState(false)
  const main = useRef<HTMLElement>(null)
  const overlay = useOverlay()
  const title = own ?? page?.title ?? 'Gatehouse'
  const frame = useMemo(() => ({ setTitle: setOwn }), [])
  useEffect(() => { document.title = title === 'Gatehouse' ? title : `${title} · Gatehouse` }, [title])

  const toggleRail = useCallback(() => {
    setShut((was) => { localStorage.setItem(shutKey, was ? 'open' : 'shut'); return !was })
  }, [])
  useShortcut('mod+k', 'Find or go to', openPalette)
  useShortcut('?', 'Keyboard shortcuts', openHelp)
  useShortcut('[', 'Open or shut the rail', toggleRail)
  useFocusOnNavigation(path, main)
  useEffect(() => { setMenu(false) }, [path])

  return (
    <FrameContext.Provider value={frame}>
      <a className="skip" href="#page" onClick={(event) => { event.preventDefault(); focusPage(main.current) }}>Skip to the page</a>
      <div className={`app ${shut ? 'shut' : ''}`}>
        <Rail shut={shut} open={menu} onClose={() => { setMenu(false) }} onToggle={toggleRail} />
        <div className="main">
          <ActingBanner />
          <Header page={page} title={title} onMenu={() => { setMenu(true) }} />
          <main className="stage" id="page" ref={main} tabIndex={-1}><Outlet /></main>
        </div>
      </div>
      <Suspense fallback={null}>
        {overlay === 'palette' && <Palette />}
        {overlay === 'help' && <Help />}
      </Suspense>
      <Toasts />
    </FrameContext.Provider>
  )
}

function focusPage(main: HTMLElement | null) {
  const head = main?.querySelector<HTMLElement>('h1')
  ;(head ?? main)?.focus({ preventScroll: true })
}

/** After a navigation to another page its head gets the focus, so that a screen reader says it and Tab goes on from there. */
function useFocusOnNavigation(path: string, main: React.RefObject<HTMLElement | null>) {
  const last = useRef(path)
  useEffect(() => {
    if (last.current === path) return
    last.current = path
    const stage = main.current
    if (!stage) return
    // The page may still be loading: its h1 is waited for, but not longer than until the user goes elsewhere.
    if (stage.querySelector('h1')) { focusPage(stage); return }
    const was = document.activeElement
    const watch = new MutationObserver(() => {
      if (document.activeElement !== was && document.activeElement !== document.body) { watch.disconnect(); return }
      if (stage.querySelector('h1')) { watch.disconnect(); focusPage(stage) }
    })
    watch.observe(stage, { childList: true, subtree: true })
    return () => { watch.disconnect() }
  }, [path, main])
}
