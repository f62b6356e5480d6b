import type { ReactNode } from 'react'
import { Button } from './button'

/** differences lists the paths at which two values differ, with both sides as JSON. */
export function differences(theirs: unknown, yours: unknown, path = ''): { path: string; theirs: string | undefined; yours: string | undefined }[] {
  const json = (v: unknown) => (v === undefined ? undefined : JSON.stringify(v))
  if (json(theirs) === json(yours)) return []
  if (isRecord(theirs) && isRecord(yours)) {
    return [...new Set([...Object.keys(theirs), ...Object.keys(yours)])].flatMap((key) => differences(theirs[key], yours[key], path ? `${path}.${key}` : key))
  }
  return [{ path, theirs: json(theirs), yours: json(yours) }]
}

function isRecord(v: unknown): v is Record<string, unknown> { return v !== null && typeof v === 'object' && !Array.isArray(v) }

/**
 * ConflictView: somebody saved meanwhile. Both sides of what differs, and three ways on: look at both and merge by hand (the edit
 * goes on over their version), take theirs, or save yours over it. Nothing is lost before one is chosen.
 */
export function ConflictView({ who, what, at, theirs, yours, onMerge, onTakeTheirs, onSaveMine, busy }: { who?: ReactNode; what: ReactNode; at?: ReactNode; theirs: unknown; yours: unknown; onMerge?: () => void; onTakeTheirs: () => void; onSaveMine: () => void; busy?: boolean }) {
  const list = differences(theirs, yours)
  return (
    <section className="conflict" role="alert" aria-label="Somebody changed it meanwhile">
      <p><b>{who ?? 'Somebody else'} saved {what}{at && <> at {at}</>}</b>, after you opened it. Yours isn’t saved.</p>
      <table className="sides">
        <thead><tr><th scope="col">Field</th><th scope="col">Theirs</th><th scope="col">Yours</th></tr></thead>
        <tbody>{list.map((d) => <tr key={d.path}><th scope="row" className="mono">{d.path || 'value'}</th><td className="mono">{d.theirs ?? '–'}</td><td className="mono mine">{d.yours ?? '–'}</td></tr>)}</tbody>
      </table>
      {list.length === 0 && <p className="second">Both say the same.</p>}
      <div className="row wrap acts">
        {onMerge && <Button kind="main" small onClick={onMerge}>Go on over their version</Button>}
        <Button small onClick={onTakeTheirs}>Take theirs</Button>
        <Button kind="quiet" small busy={busy} onClick={onSaveMine}>Save mine over it</Button>
      </div>
    </section>
  )
}
