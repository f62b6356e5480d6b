import type { ReactNode } from 'react'
import type { ApiError } from '../api/error'
import { ActionError } from './confirm'
import { Button } from './button'
import { useShortcut } from './shortcuts'
import { comboWords } from './shortcuts'

/** SaveBar stands at the foot while there is something to save: how much, what, whom it touches. ⌘S saves. */
export function SaveBar({ count, what, effect, action, busy, error, onSave, onDiscard, extra }: { count: number; what?: ReactNode; effect?: ReactNode; action?: string; busy?: boolean; error?: ApiError | undefined; onSave: () => void; onDiscard: () => void; extra?: ReactNode }) {
  useShortcut('mod+s', 'Save', () => { if (count > 0 && !busy) onSave() })
  if (count === 0) return null
  return (
    <div className="savebar" role="region" aria-label="Unsaved changes">
      <span className="chip warn">{count === 1 ? '1 change' : `${count} changes`}</span>
      <span className="grow trunc">{what} {effect && <span className="muted">{effect}</span>}<ActionError error={error} /></span>
      <Button kind="quiet" onClick={onDiscard}>Discard</Button>
      {extra}
      <Button kind="main" busy={busy} onClick={onSave} title={comboWords('mod+s')}>{action ?? 'Save changes'}</Button>
    </div>
  )
}
