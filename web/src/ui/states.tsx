import { IconAlertTriangle, IconLock } from '@tabler/icons-react'
import { useEffect, useState, type ReactNode } from 'react'
import type { ApiError } from '../api/error'
import { Arch, type ArchState } from './arch'
import { Button } from './button'
import { IdChip } from './copy'

/** useLater is false for the first 150 ms, so that what comes at once does not flash. */
export function useLater(ms = 150): boolean {
  const [later, setLater] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => { setLater(true) }, ms)
    return () => { clearTimeout(timer) }
  }, [ms])
  return later
}

const widths = [[84, 150, 64], [70, 190, 52], [92, 120, 70], [64, 172, 58], [78, 140, 66]]

/** Skeleton holds the place of rows while they load. rows of the same height as the table's. */
export function Skeleton({ rows = 8, label = 'Loading' }: { rows?: number; label?: string }) {
  const later = useLater()
  return (
    <div className="skel" role="status" aria-label={label}>
      {later && Array.from({ length: rows }, (_, i) => (
        <div className="skr" key={i} aria-hidden="true">{(widths[i % widths.length] ?? []).map((w) => <i key={w} style={{ width: w }} />)}</div>
      ))}
    </div>
  )
}

/** Waiting fills a page whose code or session is on the way. */
export function Waiting() {
  const later = useLater()
  return <div className="waiting" role="status">{later ? <span className="muted">Loading</span> : null}</div>
}

/** Empty teaches: one sentence on what this is for and the one button that starts it. */
export function Empty({ title, children, action, arch = 'none' }: { title: string; children?: ReactNode; action?: ReactNode; arch?: ArchState | false }) {
  return (
    <div className="empty">
      {arch && <Arch state={arch} size={22} />}
      <b>{title}</b>
      {children && <p>{children}</p>}
      {action}
    </div>
  )
}

/** ErrorState says what failed, in the API's words, with the request id and a way to try again. */
export function ErrorState({ what, error, onRetry }: { what: string; error: ApiError; onRetry?: (() => void) | undefined }) {
  if (error.isForbidden) return <Forbidden error={error} />
  return (
    <div className="note bad" role="alert">
      <IconAlertTriangle size={16} stroke={1.7} aria-hidden />
      <div className="grow">
        <b>{what}</b><br />
        {error.status > 0 && <>The server answered <span className="mono">{error.status} {error.code}</span>: </>}{error.message}.
        {error.requestId && <div className="row top6"><IdChip id={error.requestId} label="request id" /></div>}
      </div>
      {onRetry && <Button small onClick={onRetry}>Try now</Button>}
    </div>
  )
}

/** Forbidden says which permission is missing, in the API's words. */
export function Forbidden({ error, needs }: { error?: ApiError; needs?: readonly string[] }) {
  const list = needs ?? (Array.isArray(error?.details['needs']) ? (error.details['needs'] as string[]) : [])
  return (
    <div className="empty" role="alert">
      <Arch state="shut" size={22} />
      <b>This is not open to you</b>
      <p>
        {list.length > 0 ? <>It needs the system permission {list.map((n, i) => <span key={n}>{i > 0 && ' or '}<code>{n}</code></span>)}. </> : error ? `${error.message}. ` : null}
        Whoever manages permissions can give it to you.
      </p>
      {error?.requestId && <IdChip id={error.requestId} label="request id" />}
    </div>
  )
}

/** Note is a remark beside what it is about. */
export function Note({ kind, icon, children, action }: { kind?: 'warn' | 'bad'; icon?: ReactNode; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={`note ${kind ?? ''}`} role={kind === 'bad' ? 'alert' : undefined}>
      {icon ?? (kind ? <IconAlertTriangle size={16} stroke={1.7} aria-hidden /> : <IconLock size={16} stroke={1.7} aria-hidden />)}
      <div className="grow">{children}</div>
      {action}
    </div>
  )
}
