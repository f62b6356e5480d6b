import { useState } from 'react'
import { absent, problemAt, problemsOf, useSave } from '../../app/objects'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Dialog } from '../../ui/dialog'
import { TextField } from '../../ui/field'
import { useGo } from '../../ui/url'

/** apiName makes a name for the API of what a person typed. */
export function apiName(label: string): string {
  return label.normalize('NFKD').replace(/[\u0300-\u036f]/g, '').toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^[_0-9]+|_+$/g, '').slice(0, 63)
}

/** NewEntity asks for the label and the name; the fields come on the entity's page. */
export function NewEntity({ onClose }: { onClose: () => void }) {
  const [label, setLabel] = useState('')
  const [name, setName] = useState<string>()
  const save = useSave()
  const go = useGo()
  const problems = problemsOf(save.error ?? undefined)
  const made = name ?? apiName(label)
  return (
    <Dialog open title="New entity" onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault()
        save.mutate([{ kind: 'entity', value: { name: made, ...(label.trim() ? { label: label.trim() } : {}), fields: [] }, against: absent }], { onSuccess: (_, stayed) => { if (stayed) { onClose(); go(paths.entities(made)) } } })
      }}>
        <TextField label="Label" help="What people see: Contact, Order line" value={label} onChange={setLabel} data-autofocus error={problemAt(problems, 'label')} />
        <TextField label="Name" type="in the API" help="Singular and in snake_case" mono value={made} onChange={setName} required error={problemAt(problems, 'name') ?? problemAt(problems, '')} />
        <ActionError error={problems.length > 0 ? undefined : save.error ?? undefined} />
        <div className="dialogacts"><Button small onClick={onClose}>Cancel</Button><Button small kind="main" type="submit" busy={save.isPending} disabled={made === ''}>Make entity</Button></div>
      </form>
    </Dialog>
  )
}
