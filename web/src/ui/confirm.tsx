import { useState, type ReactNode } from 'react'
import type { ApiError } from '../api/error'
import { Button } from './button'
import { IdChip } from './copy'
import { Dialog } from './dialog'
import { TextField } from './field'

/** ConfirmDestroy: the title is the verb and the name; children say what stops. typeName asks to type it when something live depends on it. */
export function ConfirmDestroy({ title, children, typeName, action, keep = 'Keep it', busy, error, onConfirm, onClose }: { title: string; children: ReactNode; typeName?: string; action: string; keep?: string; busy?: boolean; error?: ApiError | undefined; onConfirm: () => void; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const may = typeName === undefined || typed === typeName
  return (
    <Dialog open onClose={onClose} title={title}>
      <form onSubmit={(event) => { event.preventDefault(); if (may && !busy) onConfirm() }}>
        <div className="second says">{children}</div>
        {typeName !== undefined && <TextField label={`Type ${typeName} to go on`} value={typed} onChange={setTyped} autoComplete="off" spellCheck={false} data-autofocus />}
        <ActionError error={error} />
        <div className="dialogacts"><Button small onClick={onClose}>{keep}</Button><Button small type="submit" kind="bad" disabled={!may} busy={busy}>{action}</Button></div>
      </form>
    </Dialog>
  )
}

/** ActionError stands above the button of an action that was refused: the API's words and the request id. */
export function ActionError({ error }: { error: ApiError | undefined }) {
  if (!error) return null
  return (
    <div className="help bad" role="alert">
      {error.status > 0 && <span className="mono">{error.status} {error.code}: </span>}{error.message}.
      {error.requestId && <> <IdChip id={error.requestId} label="request id" /></>}
    </div>
  )
}
