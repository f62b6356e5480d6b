import { IconSearch } from '@tabler/icons-react'
import { Modal } from '@mantine/core'
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { comboWords, isMac } from '../ui/shortcuts'
import { useGo } from '../ui/url'
import { may, type PaletteItem, type PaletteSource } from './feature'
import { features } from './features'
import { closeOverlay } from './overlays'
import { useSession } from './session'
import type { Session } from '../api/admin'

const prefixes: Record<string, string> = { '@': 'users', '#': 'entities', '/': 'endpoints', '>': 'do' }

interface Found { source: PaletteSource; items: readonly PaletteItem[] }

/** pages is the source of the console's own places: every line of the rail. */
const pages: PaletteSource = {
  id: 'pages', title: 'Pages', order: 5,
  find: (text, { session }) => features.flatMap((f) => f.rail ?? [])
    .filter((e) => may(session, e.needs) && e.label.toLowerCase().includes(text.toLowerCase()))
    .map((e) => ({ id: e.to, label: e.label, note: e.under ?? (e.group === 'settings' ? 'Settings' : ''), icon: e.icon, to: e.to })),
}

/** Palette finds any page, entity, endpoint, key, user or record by name, and does things. */
export default function Palette() {
  const session = useSession()
  const go = useGo()
  const list = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [found, busy, failed] = useFound(text, session)
  const items = useMemo(() => found.flatMap((f) => f.items), [found])
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => { setAt(0) }, [found])
  useEffect(() => { box.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }) }, [at])

  const choose = (item: PaletteItem | undefined, tab: boolean) => {
    if (!item) return
    if (item.to && tab) { window.open(`/admin${item.to}`, '_blank', 'noopener'); return }
    closeOverlay()
    if (item.to) go(item.to)
    else item.run?.()
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      const n = items.length
      if (n) setAt((at + (event.key === 'ArrowDown' ? 1 : n - 1)) % n)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      choose(items[at], isMac ? event.metaKey : event.ctrlKey)
    }
  }
  let index = -1
  return (
    <Modal opened onClose={closeOverlay} withCloseButton={false} size={640} yOffset={96} padding={0} lockScroll={false} transitionProps={{ duration: 0 }} attributes={{ content: { 'aria-label': 'Find or go to' } }} classNames={{ content: 'pal', body: 'palbody' }}>
      <div className="q">
        <IconSearch size={18} stroke={1.7} aria-hidden />
        <input autoFocus data-autofocus value={text} onChange={(e) => { setText(e.target.value) }} onKeyDown={onKey} placeholder="Find or go to" aria-label="Find or go to"
          role="combobox" aria-expanded={items.length > 0} aria-controls={list} aria-activedescendant={items[at] ? `${list}-${at}` : undefined} autoComplete="off" spellCheck={false} />
        <kbd>esc</kbd>
      </div>
      <div className="palist" ref={box} role="listbox" id={list} aria-label="Results">
        {found.map(({ source, items: rows }) => (
          <div role="group" aria-labelledby={`${list}-${source.id}`} key={source.id}>
            <div className="gh" id={`${list}-${source.id}`} role="presentation">{source.title}</div>
            {rows.map((item) => {
              index += 1
              const mine = index
              const Icon = item.icon
              return (
                // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus -- keys go to the input, which names the active option
                <div role="option" id={`${list}-${mine}`} key={item.id} aria-selected={mine === at} className={`it ${mine === at ? 'on' : ''}`} onMouseMove={() => { setAt(mine) }} onClick={(e) => { choose(item, e.metaKey || e.ctrlKey) }}>
                  <Icon size={16} stroke={1.7} aria-hidden /><span className="t trunc"><Marked text={item.label} part={text} /></span>
                  {item.note && <span className={`m trunc ${item.bad ? 'bad' : ''}`}>{item.note}</span>}
                  {mine === at && <kbd aria-hidden="true">↵</kbd>}
                </div>
              )
            })}
          </div>
        ))}
      </div>
      {items.length === 0 && <p className="palnone" role="status">{busy ? 'Looking' : text ? `Nothing matches “${text}”.` : 'Type a name.'}</p>}
      {failed && <p className="palnone bad" role="alert">{failed}</p>}
      <footer>
        <span><kbd>↑</kbd><kbd>↓</kbd> move</span><span className="hide-s"><kbd>{comboWords('mod+Enter')}</kbd> new tab</span><span className="grow" />
        {Object.entries(prefixes).map(([sign, what]) => (
          <button type="button" key={sign} className="prefix" onClick={() => { setText(sign); box.current?.parentElement?.querySelector('input')?.focus() }}><kbd>{sign}</kbd> {what}</button>
        ))}
      </footer>
    </Modal>
  )
}

function Marked({ text, part }: { text: string; part: string }) {
  const needle = part.replace(/^[@#/>]/, '').trim()
  const at = needle ? text.toLowerCase().indexOf(needle.toLowerCase()) : -1
  if (at < 0) return <>{text}</>
  return <>{text.slice(0, at)}<mark>{text.slice(at, at + needle.length)}</mark>{text.slice(at + needle.length)}</>
}

/** useFound asks the sources at each pause in typing, and shows each as it answers, in their order. */
function useFound(text: string, session: Session): [readonly Found[], boolean, string | undefined] {
  const [found, setFound] = useState<readonly Found[]>([])
  const [busy, setBusy] = useState(false)
  const [failed, setFailed] = useState<string>()
  useEffect(() => {
    const sign = text.charAt(0)
    const prefix = sign in prefixes ? sign : undefined
    const needle = (prefix ? text.slice(1) : text).trim()
    const sources = [pages, ...features.flatMap((f) => f.palette ?? [])]
      .filter((s) => may(session, s.needs) && (prefix ? s.prefix === prefix : true))
      .sort((a, b) => a.order - b.order)
    const stop = new AbortController()
    const answers = new Map<string, readonly PaletteItem[]>()
    const show = () => { if (!stop.signal.aborted) setFound(sources.map((source) => ({ source, items: answers.get(source.id) ?? [] })).filter((f) => f.items.length > 0)) }
    setFailed(undefined)
    const timer = setTimeout(() => {
      setBusy(true)
      void Promise.all(sources.map(async (source) => {
        try {
          answers.set(source.id, await source.find(needle, { session, signal: stop.signal }))
          show()
        } catch (thrown) {
          if (!stop.signal.aborted) setFailed(`${source.title}: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
        }
      })).then(() => { if (!stop.signal.aborted) { setBusy(false); show() } })
    }, text ? 120 : 0)
    return () => { clearTimeout(timer); stop.abort() }
  }, [text, session])
  return [found, busy, failed]
}

