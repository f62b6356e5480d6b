import { IconRotateClockwise, IconX } from '@tabler/icons-react'
import { useEffect, useSyncExternalStore, type ReactNode } from 'react'
import { Arch, type ArchState } from './arch'

/** A toast says what was done, or how far long work is. One is shown at a time: a newer one takes the place. */
export interface Toast {
  id: string
  text: ReactNode
  arch?: ArchState
  /** progress of long work; it stays until done equals total or it is dismissed. */
  progress?: { done: number; total: number }
  action?: { label: string; run: () => void }
}

let current: Toast | undefined
const listeners = new Set<() => void>()
const emit = () => { for (const listener of listeners) listener() }

export const toast = {
  show(next: Omit<Toast, 'id'> & { id?: string }): void { current = { id: next.id ?? crypto.randomUUID(), ...next }; emit() },
  hide(id?: string): void { if (!id || current?.id === id) { current = undefined; emit() } },
}

const subscribe = (listener: () => void) => { listeners.add(listener); return () => { listeners.delete(listener) } }

/** Toasts is drawn once, by the shell. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => current)
  const stays = shown?.progress !== undefined && shown.progress.done < shown.progress.total
  useEffect(() => {
    if (!shown || stays) return
    const timer = setTimeout(() => { toast.hide(shown.id) }, shown.action ? 9000 : 5000)
    return () => { clearTimeout(timer) }
  }, [shown, stays])
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown && (
        <div className="toast">
          {shown.progress ? <IconRotateClockwise size={14} stroke={1.7} aria-hidden /> : <Arch state={shown.arch ?? 'open'} />}
          <span className="grow">
            {shown.text}
            {shown.progress && <progress className="pg" value={shown.progress.done} max={shown.progress.total} aria-label="progress" />}
          </span>
          {shown.progress && <span className="muted">{shown.progress.done.toLocaleString('en')} of {shown.progress.total.toLocaleString('en')}</span>}
          {shown.action && <button type="button" className="linkish" onClick={() => { shown.action?.run(); toast.hide(shown.id) }}>{shown.action.label}</button>}
          <button type="button" className="btn quiet icon s" aria-label="Dismiss" onClick={() => { toast.hide(shown.id) }}><IconX size={14} stroke={1.7} aria-hidden /></button>
        </div>
      )}
    </div>
  )
}
