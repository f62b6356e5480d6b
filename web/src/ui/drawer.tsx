import { IconArrowDown, IconArrowUp, IconX } from '@tabler/icons-react'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { IconButton } from './button'
import { useUrl, useUrlValue } from './url'

export interface DrawerTab { key: string; label: string; /** n stands small beside the label. */ n?: ReactNode; bad?: boolean; content: () => ReactNode }

export interface DrawerProps {
  title: ReactNode
  /** label names the drawer for a screen reader: "Contact Jonas Keller". */
  label: string
  /** sub stands under the title: id chip, owner, when changed. */
  sub?: ReactNode
  acts?: ReactNode
  tabs?: readonly DrawerTab[]
  /** the name of the tab in the address. */
  tabName?: string
  /** onStep goes to the neighbour in the list behind. */
  onStep?: (by: 1 | -1) => void
  onClose: () => void
  wide?: boolean
  footer?: ReactNode
  children?: ReactNode
}

/** Drawer lies over the right of the page, not modal: the list behind stays usable. Its tab is in the address. Esc closes it. */
export function Drawer({ title, label, sub, acts, tabs, tabName = 'tab', onStep, onClose, wide, footer, children }: DrawerProps) {
  const box = useRef<HTMLElement>(null)
  const latest = useRef(onClose)
  useEffect(() => { latest.current = onClose })
  const [opener] = useState(() => document.activeElement)
  useEffect(() => {
    // A field that asks for the focus has it: a form is typed into at once.
    if (!box.current?.contains(document.activeElement)) (box.current?.querySelector<HTMLElement>('[data-autofocus=true]') ?? box.current?.querySelector<HTMLElement>('h2'))?.focus({ preventScroll: true })
  }, [label])
  useEffect(() => () => { if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true }) }, [opener])
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Esc closes it from anywhere inside
    <aside className={`drawer ${wide ? 'wide' : ''}`} aria-label={label} ref={box} onKeyDown={(event) => { if (event.key === 'Escape' && !event.defaultPrevented && !opensList(event.target)) { event.preventDefault(); latest.current() } }}>
      <header>
        <div className="row">
          <h2 className="name trunc" tabIndex={-1}>{title}</h2>
          <span className="grow" />
          {onStep && <><IconButton small label="Previous in the list" onClick={() => { onStep(-1) }}><IconArrowUp size={16} stroke={1.7} aria-hidden /></IconButton><IconButton small label="Next in the list" onClick={() => { onStep(1) }}><IconArrowDown size={16} stroke={1.7} aria-hidden /></IconButton></>}
          {acts}
          <IconButton small label="Close" onClick={onClose}><IconX size={16} stroke={1.7} aria-hidden /></IconButton>
        </div>
        {sub && <div className="row wrap s12 second sub">{sub}</div>}
      </header>
      {tabs ? <Tabs tabs={tabs} name={tabName} label={label} inner="in" /> : <div className="in">{children}</div>}
      {footer && <footer>{footer}</footer>}
    </aside>
  )
}

/** opensList reports whether the element has a list open: Esc shuts that, and not the drawer. */
function opensList(element: EventTarget): boolean { return element instanceof HTMLElement && element.getAttribute('aria-expanded') === 'true' }

/** Tabs keep the open one in the address under name; arrows move, as the pattern of tabs asks. */
export function Tabs({ tabs, name = 'tab', label, inner = 'tabbody' }: { tabs: readonly DrawerTab[]; name?: string; label: string; inner?: string }) {
  const [value, setValue] = useUrlValue(name)
  const at = Math.max(0, tabs.findIndex((t) => t.key === value))
  const open = tabs[at]
  const go = (index: number, focus: HTMLElement | null) => {
    const next = tabs[(index + tabs.length) % tabs.length]
    if (!next) return
    setValue(next === tabs[0] ? undefined : next.key)
    focus?.querySelectorAll<HTMLElement>('[role=tab]')[(index + tabs.length) % tabs.length]?.focus()
  }
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label}>
        {tabs.map((tab, i) => (
          <button type="button" role="tab" key={tab.key} id={`${name}-${tab.key}`} aria-selected={i === at} aria-controls={`${name}-panel`} tabIndex={i === at ? 0 : -1} className={i === at ? 'on' : ''}
            onClick={() => { go(i, null) }}
            onKeyDown={(event) => {
              if (event.key === 'ArrowRight') go(i + 1, event.currentTarget.parentElement)
              else if (event.key === 'ArrowLeft') go(i - 1, event.currentTarget.parentElement)
              else if (event.key === 'Home') go(0, event.currentTarget.parentElement)
              else if (event.key === 'End') go(tabs.length - 1, event.currentTarget.parentElement)
              else return
              event.preventDefault()
            }}>
            {tab.label}{tab.n !== undefined && <span className={`n ${tab.bad ? 'bad' : ''}`}>{tab.n}</span>}
          </button>
        ))}
      </div>
      <div className={inner} role="tabpanel" id={`${name}-panel`} aria-labelledby={open ? `${name}-${open.key}` : undefined} tabIndex={-1}>{open?.content()}</div>
    </>
  )
}

/** useDrawer keeps the key of the open row in the address under name, and clears its tab when it closes. */
export function useDrawer(name = 'row', tabName = 'tab'): { key: string | undefined; open: (key: string) => void; close: () => void } {
  const [url, setUrl] = useUrl()
  const value = url[name]
  const key = Array.isArray(value) ? value[0] : value
  return {
    key,
    open: (next) => { setUrl({ [name]: next, ...(key === undefined ? { [tabName]: undefined } : {}) }, { push: key === undefined }) },
    close: () => { setUrl({ [name]: undefined, [tabName]: undefined }) },
  }
}
