import type { ReactNode } from 'react'

/** KeyValues is a list of names and values with rules between, as on an object's page. */
export function KeyValues({ items, label }: { items: readonly { name: ReactNode; value: ReactNode }[]; label?: string }) {
  return <dl className="dl" aria-label={label}>{items.map(({ name, value }, i) => <div key={i}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
}

/** Section is a head and what is under it; right stands at the head's end. */
export function Section({ title, right, children }: { title: ReactNode; right?: ReactNode; children: ReactNode }) {
  return <section className="sec"><h2>{title}{right && <span className="r">{right}</span>}</h2>{children}</section>
}

/** Status writes an HTTP status: 2xx is ink, 4xx ochre, 5xx madder. */
export function Status({ code }: { code: number }) { return <span className={`code2 c${Math.floor(code / 100)}`}>{code}</span> }

/** Chip is for things of a kind; a status is a gate or a code. */
export function Chip({ kind, children }: { kind?: 'line' | 'acc' | 'warn' | 'bad'; children: ReactNode }) { return <span className={`chip ${kind ?? ''}`}>{children}</span> }

/** Meter shows a share of a limit; at the limit it turns madder. */
export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const full = max > 0 && value >= max
  return <meter className={`meter ${full ? 'full' : ''}`} min={0} max={Math.max(max, 1)} value={Math.min(value, max)} aria-label={label} />
}

/** Stats are the figures in a row under a page's head. */
export function Stats({ items }: { items: readonly { label: string; value: ReactNode; unit?: string; note?: ReactNode }[] }) {
  return <div className="stats">{items.map((s) => <div key={s.label}><div className="l">{s.label}</div><div className="v">{s.value}{s.unit && <small> {s.unit}</small>}</div>{s.note !== undefined && <div className="d">{s.note}</div>}</div>)}</div>
}
