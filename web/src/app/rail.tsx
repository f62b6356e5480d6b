import { FocusTrap, Tooltip } from '@mantine/core'
import { IconApi, IconChevronDown, IconChevronRight, IconLayoutSidebarLeftCollapse, IconLayoutSidebarLeftExpand, IconSearch, IconShieldLock, IconX } from '@tabler/icons-react'
import { useRouterState } from '@tanstack/react-router'
import { useMediaQuery } from '@mantine/hooks'
import { Fragment, useState, type ReactElement } from 'react'
import { Mark } from '../ui/arch'
import { IconButton } from '../ui/button'
import { Link } from '../ui/link'
import { comboWords } from '../ui/shortcuts'
import { may, type Icon, type RailEntry, type RailGroup, type RailPart } from './feature'
import { features } from './features'
import { openPalette } from './overlays'
import { useSession } from './session'
import { UserMenu } from './user-menu'

const groups: readonly { group: RailGroup; title: string }[] = [
  { group: 'top', title: '' },
  { group: 'data', title: 'Data' },
  { group: 'build', title: 'Build' },
  { group: 'users', title: '' },
  { group: 'settings', title: 'Settings' },
]

/** The lines that only hold others, as the specification names them. */
const parents: Record<string, { icon: Icon; order: number }> = {
  'Integrations and API': { icon: IconApi, order: 10 },
  'Access and security': { icon: IconShieldLock, order: 20 },
}

/** Rail: five groups. Shut it is 52 wide with icons; under 640 it opens over the page. */
export function Rail({ shut, open, onClose, onToggle }: { shut: boolean; open: boolean; onClose: () => void; onToggle: () => void }) {
  const session = useSession()
  const narrow = useMediaQuery('(max-width: 1100px)', window.matchMedia('(max-width: 1100px)').matches, { getInitialValueInEffect: false })
  const over = useMediaQuery('(max-width: 640px)', window.matchMedia('(max-width: 640px)').matches, { getInitialValueInEffect: false })
  const icons = !over && (shut || narrow)
  const rail = (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Escape closes it, as any overlay
    <aside className={`rail ${open ? 'over' : ''} ${icons ? 'icons' : ''}`} aria-label="Console" onKeyDown={open ? (e) => { if (e.key === 'Escape') onClose() } : undefined}>
      <div className="tenant">
        <Mark />
        <span className="grow words"><b className="trunc">{session.tenant.displayName}</b><span className="mono trunc">{window.location.host}</span></span>
        {open && <IconButton label="Close navigation" small onClick={onClose}><IconX size={16} stroke={1.7} aria-hidden /></IconButton>}
      </div>
      <Tip label="Find or go to" on={icons}>
        <button type="button" className="find" onClick={openPalette} aria-label={icons ? 'Find or go to' : undefined}>
          <IconSearch size={14} stroke={1.7} aria-hidden /><span className="grow words">Find or go to</span><kbd className="words" aria-hidden="true">{comboWords('mod+k')}</kbd>
        </button>
      </Tip>
      <nav className="nav" aria-label="Main">
        {groups.map(({ group, title }) => <Group key={group} group={group} title={title} icons={icons} />)}
      </nav>
      {!narrow && !over && (
        <button type="button" className="fold" onClick={onToggle} aria-label={shut ? 'Open the rail' : 'Shut the rail'} title={`${shut ? 'Open' : 'Shut'} the rail ( [ )`}>
          {shut ? <IconLayoutSidebarLeftExpand size={16} stroke={1.7} aria-hidden /> : <IconLayoutSidebarLeftCollapse size={16} stroke={1.7} aria-hidden />}
        </button>
      )}
      <UserMenu icons={icons} />
    </aside>
  )
  if (!open) return rail
  return <><button type="button" className="scrim" aria-label="Close navigation" tabIndex={-1} onClick={onClose} /><FocusTrap active>{rail}</FocusTrap></>
}

function Tip({ label, on, children }: { label: string; on: boolean; children: ReactElement }) {
  return <Tooltip label={label} position="right" disabled={!on}>{children}</Tooltip>
}

function Group({ group, title, icons }: { group: RailGroup; title: string; icons: boolean }) {
  const session = useSession()
  const entries = features.flatMap((f) => f.rail ?? []).filter((e) => e.group === group && may(session, e.needs))
  const parts = features.flatMap((f) => f.railParts ?? []).filter((p) => p.group === group)
  const tops: ({ order: number } & ({ entry: RailEntry } | { part: RailPart } | { parent: string; kids: RailEntry[] }))[] = [
    ...entries.filter((e) => !e.under).map((entry) => ({ order: entry.order, entry })),
    ...parts.map((part) => ({ order: part.order, part })),
    ...Object.entries(parents).map(([parent, p]) => ({ order: p.order, parent, kids: entries.filter((e) => e.under === parent).sort((a, b) => a.order - b.order) })).filter((p) => p.kids.length > 0),
  ]
  if (tops.length === 0) return null
  tops.sort((a, b) => a.order - b.order)
  return (
    <>
      <h2 className={title ? 'words' : 'gap'}>{title}</h2>
      {tops.map((top) => (
        <Fragment key={'entry' in top ? top.entry.to : 'part' in top ? `part ${top.order}` : top.parent}>
          {'entry' in top ? <Line entry={top.entry} icons={icons} /> : 'part' in top ? <top.part.Part shut={icons} /> : <Parent label={top.parent} kids={top.kids} icons={icons} />}
        </Fragment>
      ))}
    </>
  )
}

/** useIsOn says whether the open page is at the address or under it. */
function useIsOn(to: string): boolean {
  const path = useRouterState({ select: (s) => s.location.pathname.replace(/^\/admin(?=\/|$)/, '') || '/' })
  return to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`)
}

/** RailLine is one line; features that draw a part of the rail use it too. */
export function RailLine({ to, label, icon: Icon, count, sub, icons }: { to: string; label: string; icon?: Icon; count?: React.ReactNode; sub?: boolean; icons: boolean }) {
  const on = useIsOn(to)
  return (
    <Tip label={label} on={icons}>
      <Link to={to} className={`${on ? 'on' : ''} ${sub ? 'sub' : ''}`} aria-current={on ? 'page' : undefined} aria-label={icons ? label : undefined}>
        {Icon && <Icon size={16} stroke={1.7} aria-hidden />}<span className="trunc words">{label}</span>{!icons && count}
      </Link>
    </Tip>
  )
}

function Line({ entry, icons, sub }: { entry: RailEntry; icons: boolean; sub?: boolean }) {
  const { Count } = entry
  return <RailLine to={entry.to} label={entry.label} icon={sub ? undefined : entry.icon} sub={sub ?? false} icons={icons} count={Count && <Count />} />
}

function Parent({ label, kids, icons }: { label: string; kids: RailEntry[]; icons: boolean }) {
  const path = useRouterState({ select: (s) => s.location.pathname.replace(/^\/admin(?=\/|$)/, '') })
  const within = kids.some((k) => path === k.to || path.startsWith(`${k.to}/`))
  const [open, setOpen] = useState<boolean>()
  const shown = open ?? within
  const icon = parents[label]
  const Icon = icon?.icon ?? IconApi
  const first = kids[0]
  if (icons && first) {
    return <Tip label={label} on><Link to={first.to} className={within ? 'on' : ''} aria-label={label} aria-current={within ? 'true' : undefined}><Icon size={16} stroke={1.7} aria-hidden /></Link></Tip>
  }
  return (
    <>
      <button type="button" className="line" aria-expanded={shown} onClick={() => { setOpen(!shown) }}>
        <Icon size={16} stroke={1.7} aria-hidden /><span className="words">{label}</span>
        {shown ? <IconChevronDown className="n" size={14} stroke={1.7} aria-hidden /> : <IconChevronRight className="n" size={14} stroke={1.7} aria-hidden />}
      </button>
      {shown && kids.map((kid) => <Line key={kid.to} entry={kid} icons={false} sub />)}
    </>
  )
}

