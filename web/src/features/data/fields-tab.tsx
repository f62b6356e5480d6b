import { useMutation, useQueryClient } from '@tanstack/react-query'
import { IconPencil } from '@tabler/icons-react'
import { useState } from 'react'
import { call } from '../../api/client'
import type { DataEntity, DataField } from '../../api/admin'
import type { ApiError } from '../../api/error'
import { Button } from '../../ui/button'
import { ConflictView } from '../../ui/conflict'
import { ActionError } from '../../ui/confirm'
import { useDraft } from '../../ui/drafts'
import { KeyValues } from '../../ui/list'
import { LeaveGuard } from '../../ui/unsaved'
import { Note } from '../../ui/states'
import { Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { TypeIcon, Value } from './cells'
import { edited, pick, shownOf, type Edits } from './edit'
import { FieldInput } from './inputs'
import { lookKey, referenceOf, useLabels, type Look, type Row, textOf } from './queries'

const none: Edits = {}

/** FieldsTab shows the fields of a record, and edits them. Edits outlive a reload and a sign-in. */
export function FieldsTab({ entity, id, look }: { entity: DataEntity; id: string; look: Look }) {
  const draft = useDraft<Edits>(`data/${entity.name}/${id}`, none, String(look.meta.version))
  const names = Object.keys(draft.value)
  const [editing, setEditing] = useState(names.length > 0)
  if (!editing) {
    return (
      <>
        <KeyValues label={`Fields of the record`} items={[
          ...entity.fields.map((f) => ({ name: <span className="row"><TypeIcon type={f.type} />{f.name}</span>, value: <FullValue field={f} value={look.row[f.name]} /> })),
          { name: <span className="row"><TypeIcon type="datetime" />created_at</span>, value: <Time at={textOf(look.row['created_at'])} form="full" /> },
          { name: <span className="row"><TypeIcon type="datetime" />updated_at</span>, value: <Time at={textOf(look.row['updated_at'])} form="full" /> },
        ]} />
        {look.meta.may.update && <div className="top6"><Button icon={<IconPencil size={16} stroke={1.7} aria-hidden />} onClick={() => { setEditing(true) }}>Edit fields</Button></div>}
      </>
    )
  }
  return <Editor entity={entity} id={id} look={look} draft={draft} onDone={() => { setEditing(false) }} />
}

function FullValue({ field, value }: { field: DataField; value: unknown }) {
  const target = referenceOf(field)
  const ids = !target ? [] : Array.isArray(value) ? value.map(textOf) : value ? [textOf(value)] : []
  const labelOf = useLabels(target ?? '', ids)
  return <Value field={field} value={value} labelOf={labelOf} full />
}

function Editor({ entity, id, look, draft, onDone }: { entity: DataEntity; id: string; look: Look; draft: ReturnType<typeof useDraft<Edits>>; onDone: () => void }) {
  const client = useQueryClient()
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const names = Object.keys(draft.value)
  const save = useMutation<{ row: Row; version: number; may: Look['meta']['may'] }, ApiError, number>({
    mutationFn: async (version) => {
      const result = await call('PATCH data/{entity}/{id}', { params: { entity: entity.name, id }, query: { version }, body: draft.value })
      if (!result.ok) throw result.error
      return { row: result.data, version: result.meta.version, may: result.meta.may }
    },
    onSuccess: ({ row, version, may }) => {
      draft.discard()
      onDone()
      if (version > 0) client.setQueryData<Look>(lookKey(entity.name, id), { row, meta: { version, may } })
      else void client.invalidateQueries({ queryKey: lookKey(entity.name, id) })
      void client.invalidateQueries({ queryKey: ['data', 'list', entity.name] })
      toast.show({ text: 'Saved' })
    },
  })
  const error = save.error ?? undefined
  const theirs = error?.code === 'CONFLICT' && typeof error.details['version'] === 'number' ? { version: error.details['version'], row: (error.details['record'] ?? {}) as Row } : undefined
  const takeIn = (version: number, row: Row) => {
    client.setQueryData<Look>(lookKey(entity.name, id), { row, meta: { version, may: look.meta.may } })
    save.reset()
  }
  const bad = { ...error?.fields, ...wrong }
  const busy = save.isPending
  const close = () => { draft.discard(); save.reset(); onDone() }
  const submit = () => { if (busy || Object.keys(wrong).length > 0) return; if (names.length === 0) close(); else save.mutate(Number(draft.against)) }
  return (
    <form noValidate className="recordform" onSubmit={(event) => { event.preventDefault(); submit() }}>
      {draft.restored && <Note>This edit was begun before; it was kept in this browser.</Note>}
      {theirs && (
        <ConflictView what={`this ${entity.name}`} theirs={pick(theirs.row, names)} yours={draft.value} busy={busy}
          onMerge={() => { draft.rebase(String(theirs.version)); takeIn(theirs.version, theirs.row) }}
          onTakeTheirs={() => { draft.discard(); takeIn(theirs.version, theirs.row); onDone() }}
          onSaveMine={() => { draft.rebase(String(theirs.version)); save.mutate(theirs.version) }} />
      )}
      {entity.fields.map((f) => (f.edit && look.meta.may.update
        ? <FieldInput key={f.name} field={f} value={shownOf(f.name, look.row, draft.value)} error={bad[f.name]}
            onChange={(value, problem) => {
              setWrong((was) => { const next = { ...was }; if (problem) next[f.name] = problem; else delete next[f.name]; return next })
              if (!problem) draft.set((was) => edited(was, f.name, value, look.row))
            }} />
        : <div className="field" key={f.name}><div className="lab"><span>{f.name}</span><span className="type">{f.type}, closed to you</span></div><div><FullValue field={f} value={look.row[f.name]} /></div></div>))}
      {error && !theirs && <ActionError error={error} />}
      <div className="row formacts">
        <Button kind="main" type="submit" busy={busy} disabled={Object.keys(wrong).length > 0}>{names.length > 1 ? `Save ${names.length} changes` : names.length === 1 ? 'Save 1 change' : 'Done'}</Button>
        <Button kind="quiet" onClick={close}>Discard</Button>
      </div>
      <LeaveGuard dirty={names.length > 0} what={`The edit of this ${entity.name} is not saved.`} onDiscard={draft.discard} />
    </form>
  )
}
