import { Menu, Popover } from '@mantine/core'
import { IconPlus, IconSearch, IconX } from '@tabler/icons-react'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { Button } from './button'
import { clearPage } from './paged'
import { useUrl } from './url'

/** One thing a list may be filtered by. Its value is in the address under name. */
export interface FilterDef {
  name: string
  label: string
  /** options to choose from; without them the value is typed. */
  options?: readonly { value: string; label: string }[]
  /** load finds options for what is typed: users, endpoints. */
  load?: (text: string, signal: AbortSignal) => Promise<readonly { value: string; label: string }[]>
  /** show gives the words for a value whose option is not at hand. */
  show?: (value: string) => string
  placeholder?: string
  /** always stands in the bar, as "any" while it has no value. */
  always?: boolean
}

/**
 * FilterBar: segments or a range first (children), then chips field | value | ×, then "Filter". Each chip is in the address.
 * search names the query parameter of the search field at the right.
 */
export function FilterBar({ defs, search, searchLabel = 'Search', children, right }: { defs: readonly FilterDef[]; search?: string; searchLabel?: string; children?: ReactNode; right?: ReactNode }) {
  const [url, setUrl] = useUrl()
  const [adding, setAdding] = useState<string>()
  const value = (name: string) => { const v = url[name]; return Array.isArray(v) ? v[0] : v }
  const shown = defs.filter((d) => d.always || value(d.name) !== undefined || adding === d.name)
  const rest = defs.filter((d) => !shown.includes(d))
  const set = (name: string, next: string | undefined) => { setUrl({ [name]: next, ...clearPage }); setAdding(undefined) }
  return (
    <div className="filters" role="search" aria-label="Filters">
      {children}
      {shown.map((def) => (
        <Chip key={def.name} def={def} value={value(def.name)} fresh={adding === def.name} onSet={(next) => { set(def.name, next) }} onDrop={() => { set(def.name, undefined) }} onClose={() => { setAdding(undefined) }} />
      ))}
      {rest.length > 0 && (
        <Menu position="bottom-start" width={200}>
          <Menu.Target><Button kind="quiet" icon={<IconPlus size={16} stroke={1.7} aria-hidden />}>Filter</Button></Menu.Target>
          <Menu.Dropdown>{rest.map((def) => <Menu.Item key={def.name} onClick={() => { setAdding(def.name) }}>{def.label}</Menu.Item>)}</Menu.Dropdown>
        </Menu>
      )}
      <span className="grow" />
      {right}
      {search && <SearchField label={searchLabel} value={value(search) ?? ''} onChange={(next) => { setUrl({ [search]: next || undefined, ...clearPage }) }} />}
    </div>
  )
}

function Chip({ def, value, fresh, onSet, onDrop, onClose }: { def: FilterDef; value: string | undefined; fresh: boolean; onSet: (value: string) => void; onDrop: () => void; onClose: () => void }) {
  const [open, setOpen] = useState(fresh)
  const words = value === undefined ? 'any' : def.options?.find((o) => o.value === value)?.label ?? def.show?.(value) ?? value
  const close = () => { setOpen(false); onClose() }
  return (
    <span className="fchip">
      <Popover opened={open} onChange={(is) => { if (!is) close() }} position="bottom-start" trapFocus returnFocus width={260}>
        <Popover.Target>
          <button type="button" className="fvalue" onClick={() => { setOpen(!open) }}><span className="k">{def.label}</span>{' '}<b className="trunc">{words}</b></button>
        </Popover.Target>
        <Popover.Dropdown><Choose def={def} value={value} onSet={(next) => { onSet(next); close() }} /></Popover.Dropdown>
      </Popover>
      {(value !== undefined || fresh) && <button type="button" className="x" aria-label={`Remove the filter ${def.label}`} onClick={onDrop}><IconX size={14} stroke={1.7} aria-hidden /></button>}
    </span>
  )
}

/** useChoices gives what there is to choose for a text: of the options at hand, else what load finds, and the words where that failed. */
export function useChoices({ options, load }: Pick<FilterDef, 'options' | 'load'>, text: string): { choices: readonly { value: string; label: string }[]; failed: string | undefined } {
  const [found, setFound] = useState<readonly { value: string; label: string }[]>([])
  const [failed, setFailed] = useState<string>()
  useEffect(() => {
    if (!load) return
    const stop = new AbortController()
    const timer = setTimeout(() => {
      load(text, stop.signal).then((list) => { setFound(list); setFailed(undefined) }, (thrown: unknown) => { if (!stop.signal.aborted) setFailed(thrown instanceof Error ? thrown.message : String(thrown)) })
    }, text ? 150 : 0)
    return () => { clearTimeout(timer); stop.abort() }
  }, [load, text])
  return { choices: options ? options.filter((o) => o.label.toLowerCase().includes(text.toLowerCase())) : found, failed }
}

function Choose({ def, value, onSet }: { def: FilterDef; value: string | undefined; onSet: (value: string) => void }) {
  const [text, setText] = useState(def.options || def.load ? '' : value ?? '')
  const { load, options } = def
  const { choices, failed } = useChoices(def, text)
  const typed = !options && !load
  return (
    <form className="choose" onSubmit={(event) => { event.preventDefault(); const first = typed ? text.trim() : choices[0]?.value; if (first) onSet(first) }}>
      <input className="input" aria-label={def.label} data-autofocus placeholder={def.placeholder ?? (typed ? 'Value' : 'Find')} value={text} onChange={(e) => { setText(e.target.value) }} />
      {failed && <p className="help bad">{failed}</p>}
      {!typed && <ul>{choices.slice(0, 40).map((o) => <li key={o.value}><button type="button" className={o.value === value ? 'on' : ''} onClick={() => { onSet(o.value) }}>{o.label}</button></li>)}</ul>}
    </form>
  )
}

/** SearchField looks after each pause in typing. */
export function SearchField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value)
  const sent = useRef(value)
  const latest = useRef(onChange)
  useEffect(() => { latest.current = onChange })
  useEffect(() => { if (value !== sent.current) { sent.current = value; setText(value) } }, [value])
  useEffect(() => {
    if (text === sent.current) return
    const timer = setTimeout(() => { sent.current = text; latest.current(text) }, 250)
    return () => { clearTimeout(timer) }
  }, [text])
  return (
    <span className="inset search"><IconSearch size={16} stroke={1.7} aria-hidden /><input className="input" type="search" aria-label={label} placeholder={label} value={text} onChange={(e) => { setText(e.target.value) }} /></span>
  )
}
