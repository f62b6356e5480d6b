import { IconChevronRight, IconHelpCircle, IconMenu2, IconRotateClockwise } from '@tabler/icons-react'
import { useEffect, useState } from 'react'
import { IconButton } from '../ui/button'
import { Link } from '../ui/link'
import type { Page } from './feature'
import { features } from './features'
import { openHelp } from './overlays'

/** Header: where you are, what holds for the whole tenant, and help. */
export function Header({ page, title, onMenu }: { page: Page | undefined; title: string; onMenu: () => void }) {
  const crumbs = page?.crumbs ?? []
  return (
    <header className="top">
      <IconButton label="Open navigation" className="menu" onClick={onMenu}><IconMenu2 size={16} stroke={1.7} aria-hidden /></IconButton>
      <nav className="crumbs" aria-label="Where you are">
        {crumbs.map((c) => (
          <span className="crumb" key={c.label}>{c.to ? <Link to={c.to}>{c.label}</Link> : <span>{c.label}</span>}<IconChevronRight size={12} stroke={1.7} aria-hidden /></span>
        ))}
        <b className="trunc" aria-current="page">{title}</b>
      </nav>
      <span className="grow" />
      <Offline />
      {features.map(({ name, Status }) => Status && <span className="state" key={name}><Status /></span>)}
      <IconButton label="Help and keyboard shortcuts" onClick={openHelp}><IconHelpCircle size={16} stroke={1.7} aria-hidden /></IconButton>
    </header>
  )
}

/** Offline says since when the browser has no network. */
function Offline() {
  const [since, setSince] = useState<Date | undefined>(() => (navigator.onLine ? undefined : new Date()))
  useEffect(() => {
    const off = () => { setSince(new Date()) }
    const on = () => { setSince(undefined) }
    window.addEventListener('offline', off)
    window.addEventListener('online', on)
    return () => { window.removeEventListener('offline', off); window.removeEventListener('online', on) }
  }, [])
  return (
    <span className="state warn" role="status">
      {since && <><IconRotateClockwise size={14} stroke={1.7} aria-hidden />Offline since {since.toISOString().slice(11, 16)}, trying again</>}
    </span>
  )
}
