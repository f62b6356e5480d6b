import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ask } from '../../api/client'
import type { DataEntity } from '../../api/admin'
import { asError, type ApiError } from '../../api/error'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Drawer } from '../../ui/drawer'
import { useDraft } from '../../ui/drafts'
import { LookupField } from '../../ui/select'
import { LeaveGuard } from '../../ui/unsaved'
import { Note } from '../../ui/states'
import { toast } from '../../ui/toast'
import { edited, missing, type Edits } from './edit'
import { FieldInput } from './inputs'
import { findLabels, idOf, type Row } from './queries'

const none: Edits = {}

/** CreateDrawer makes a record. What was typed outlives a reload and a sign-in. */
export function CreateDrawer({ entity, onClose, onCreated }: { entity: DataEntity; onClose: () => void; onCreated: (id: string) => void }) {
  const client = useQueryClient()
  const draft = useDraft<Edits>(`data/${entity.name}/new`, none, 'new')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [owner, setOwner] = useState<string | null>(null)
  const create = useMutation<Row, ApiError, Edits>({
    mutationFn: (body) => ask('POST data/{entity}', { params: { entity: entity.name }, body: owner ? { ...body, owner_id: owner } : body }),
    onSuccess: (row) => {
      draft.discard()
      onCreated(idOf(row))
      void client.invalidateQueries({ queryKey: ['data', 'list', entity.name] })
      void client.invalidateQueries({ queryKey: ['data', 'count', entity.name] })
      toast.show({ text: <>Created {entity.name}</> })
    },
  })
  const error = create.error ? asError(create.error) : undefined
  const bad: Record<string, string | undefined> = { ...error?.fields, ...wrong }
  const fields = entity.fields.filter((f) => f.edit)
  const close = () => { draft.discard(); onClose() }
  const submit = () => {
    if (create.isPending) return
    const lacking = missing(entity, draft.value)
    setWrong(lacking)
    if (Object.keys(lacking).length === 0) create.mutate(draft.value)
  }
  return (
    <Drawer title={`New ${entity.name}`} label={`New ${entity.name}`} onClose={close}
      footer={<><Button kind="main" busy={create.isPending} onClick={submit}>Create {entity.name}</Button><Button kind="quiet" onClick={close}>Discard</Button></>}>
      <form noValidate className="recordform" onSubmit={(event) => { event.preventDefault(); submit() }}>
        {draft.restored && <Note>This was begun before; it was kept in this browser.</Note>}
        {fields.map((f) => (
          <FieldInput key={f.name} field={f} value={draft.value[f.name] ?? null} error={bad[f.name]}
            onChange={(value, problem) => {
              setWrong((was) => { const next = { ...was }; if (problem) next[f.name] = problem; else delete next[f.name]; return next })
              if (!problem) draft.set((was) => edited(was, f.name, value, none))
            }} />
        ))}
        {entity.may.setOwner && <LookupField label="owner_id" type="user" help="You, when nobody is chosen." value={owner} clearable find={(text, signal) => findLabels('user', text, signal)} onChange={(next) => { setOwner(next) }} error={bad['owner_id']} placeholder="Find a user" />}
        {error && <ActionError error={error} />}
        <button type="submit" hidden aria-hidden tabIndex={-1} />
      </form>
      <LeaveGuard dirty={draft.dirty} what={`The new ${entity.name} is not saved.`} onDiscard={draft.discard} />
    </Drawer>
  )
}
