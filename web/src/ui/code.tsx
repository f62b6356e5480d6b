import { useMemo, useState, type ReactNode } from 'react'
import { CopyButton } from './copy'

type Token = [kind: '' | 'k' | 'st' | 'nu' | 'fn' | 'cmt' | 'pu', text: string]
export type Language = 'json' | 'js' | 'go' | 'curl' | 'yaml' | 'text'

const grammars: Record<Language, RegExp | undefined> = {
  json: /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b|([{}[\],:])/g,
  js: /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)()|(\b\d+(?:\.\d+)?\b)|\b(const|let|await|async|function|return|if|else|for|of|in|new|throw|import|from|export|default|true|false|null|undefined)\b|(\/\/[^\n]*)|(\b[A-Za-z_$][\w$]*)(?=\()/g,
  go: /("(?:[^"\\\n]|\\.)*"|`[^`]*`)()|(\b\d+(?:\.\d+)?\b)|\b(package|import|func|return|if|else|for|range|var|const|type|struct|nil|err|defer|true|false)\b|(\/\/[^\n]*)|(\b[A-Za-z_]\w*)(?=\()/g,
  curl: /('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")()|(\b\d+\b(?=\s|$))|(\s--?[A-Za-z][\w-]*)|(#[^\n]*)|(\bcurl\b)/g,
  yaml: /("(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*')()|((?<=[:\s-])-?\d+(?:\.\d+)?(?=\s|$))|(^\s*(?:- )?[\w.$-]+(?=:(?:\s|$)))|((?:^|\s)#[^\n]*)/gm,
  text: undefined,
}

/** tokens cuts text into coloured pieces. It is for samples and answers, not an editor: what it does not know stays plain. */
export function tokens(text: string, language: Language): Token[] {
  const grammar = grammars[language]
  if (!grammar || text.length > 200_000) return [['', text]]
  const out: Token[] = []
  let at = 0
  for (const m of text.matchAll(grammar)) {
    if (m.index > at) out.push(['', text.slice(at, m.index)])
    const [all, string, colon, number, word, last, call] = m
    if (language === 'json') {
      if (string !== undefined) { out.push([colon ? 'k' : 'st', string]); if (colon) out.push(['pu', colon]) }
      else out.push([number !== undefined || word !== undefined ? 'nu' : 'pu', all])
    } else {
      out.push([string !== undefined ? 'st' : number !== undefined ? 'nu' : word !== undefined ? 'k' : call !== undefined ? 'fn' : last !== undefined ? (language === 'curl' && !last.startsWith('#') ? 'fn' : 'cmt') : '', all])
    }
    at = m.index + all.length
  }
  if (at < text.length) out.push(['', text.slice(at)])
  return out
}

/** Source colours text. */
export function Source({ text, language }: { text: string; language: Language }) {
  const list = useMemo(() => tokens(text, language), [text, language])
  return <>{list.map(([kind, part], i) => (kind ? <span key={i} className={kind}>{part}</span> : part))}</>
}

/** CodeBlock is code to read and copy, in a pane with a head. marked lines (from 1) have the bad tint. */
export function CodeBlock({ text, language, title, right, wrap, marked, max }: { text: string; language: Language; title?: ReactNode; right?: ReactNode; wrap?: boolean; marked?: ReadonlySet<number>; /** highest height in px before it scrolls */ max?: number }) {
  const lines = marked && marked.size > 0 ? text.split('\n') : undefined
  return (
    <div className="pane">
      {(title !== undefined || right !== undefined) && <header>{title}<span className="r">{right}<CopyButton text={text} /></span></header>}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a frame that scrolls must take the keyboard */}
      <pre className={`src ${wrap ? 'wrap' : ''}`} style={max ? { maxHeight: max } : undefined} tabIndex={0} role="group" aria-label={typeof title === 'string' ? title : 'Code'}>
        {lines ? lines.map((line, i) => <span key={i} className={marked?.has(i + 1) ? 'ln hl' : 'ln'}><Source text={line} language={language} />{line === '' ? '\u200b' : ''}</span>) : <Source text={text} language={language} />}
      </pre>
    </div>
  )
}

/** JsonView shows a value as JSON; marked names the members whose lines are guilty ("margin", "lines"). */
export function JsonView({ value, title, right, marked = [], max = 420 }: { value: unknown; title?: ReactNode; right?: ReactNode; marked?: readonly string[]; max?: number }) {
  const text = useMemo(() => (typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? 'null'), [value])
  const lines = useMemo(() => {
    if (marked.length === 0) return undefined
    const names = new Set(marked.map((m) => m.split('.').at(-1)))
    return new Set(text.split('\n').flatMap((line, i) => { const name = /^\s*"((?:[^"\\]|\\.)*)":/.exec(line)?.[1]; return name !== undefined && names.has(name) ? [i + 1] : [] }))
  }, [text, marked])
  return <CodeBlock text={text} language="json" title={title ?? 'JSON'} right={right} marked={lines} max={max} />
}

/** CodeTabs is one pane with several texts: curl, JavaScript, Go. */
export function CodeTabs({ title, tabs, children }: { title: ReactNode; tabs: readonly { label: string; language: Language; text: string; copy?: string }[]; children?: ReactNode }) {
  const [at, setAt] = useState(0)
  const open = tabs[at] ?? tabs[0]
  if (!open) return null
  return (
    <div className="pane">
      <header>
        <b>{title}</b>
        <span className="minit" role="group" aria-label="Language">{tabs.map((tab, i) => <button type="button" key={tab.label} aria-pressed={tab === open} className={tab === open ? 'on' : ''} onClick={() => { setAt(i) }}>{tab.label}</button>)}</span>
        <span className="r"><CopyButton text={open.copy ?? open.text} label={`Copy the ${open.label}`} /></span>
      </header>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a frame that scrolls must take the keyboard */}
      <pre className="src" tabIndex={0} role="group" aria-label={`${open.label} sample`}><Source text={open.text} language={open.language} /></pre>
      {children}
    </div>
  )
}
