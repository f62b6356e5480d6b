import { useCallback, useState } from 'react'
import type { CreatedKey } from '../../api/admin'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { may } from '../../app/feature'
import { useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { useDraft } from '../../ui/drafts'
import { Drawer } from '../../ui/drawer'
import { LookupField } from '../../ui/select'
import { Note } from '../../ui/states'
import { KeyFields } from './fields'
import { emptyForm, endOf, limitOf, lines, type KeyForm } from './form'
import { useCreateKey } from './queries'

/** CreateKey asks for what a new key has, and hands the key with its token over. */
export function CreateKey({ onDone, onClose }: { onDone: (made: CreatedKey) => void; onClose: () => void }) {
  const session = useSession()
  const draft = useDraft<KeyForm>('key/new', emptyForm, 'new')
  const { value: form, set: setForm } = draft
  const self = session.actingAs ?? session.user
  const [user, setUser] = useState<{ value: string; label: string }>({ value: self.id, label: `${self.name || self.email} (you)` })
  const create = useCreateKey()
  const find = useCallback(async (text: string, signal: AbortSignal) => {
    const found = await ask('GET users', { query: { search: text || undefined, active: true, limit: 20 }, signal })
    return found.map((u) => ({ value: u.id, label: `${u.name || u.email} · ${u.email}` }))
  }, [])
  const error = create.error ? asError(create.error) : undefined
  const submit = () => {
    create.mutate({
      name: form.name, user: user.value, rateLimitPerMinute: limitOf(form.limit), corsAllowedOrigins: lines(form.origins), ipAllowlist: lines(form.addresses),
      ...(form.expires === '' ? {} : { expiresAt: endOf(form.expires) }),
    }, { onSuccess: (made, stayed) => { draft.discard(); if (stayed) onDone(made) } })
  }
  return (
    <Drawer title="New key" label="New API key" onClose={onClose}>
      {draft.restored && draft.dirty && <Note>This form was begun before; it was kept in this browser.</Note>}
      <form className="keyform" onSubmit={(event) => { event.preventDefault(); if (!create.isPending) submit() }}>
        {session.owner && may(session, ['manage_users']) && (
          <LookupField label="Acts as" value={user.value} shown={user.label} find={find} error={error?.fields['user']} help="The key sees and may do what this user sees and may do."
            onChange={(value, option) => { if (value) setUser({ value, label: option?.label ?? value }) }} />
        )}
        <KeyFields form={form} set={(patch) => { setForm((was) => ({ ...was, ...patch })) }} errors={error?.fields ?? {}} focus />
        {error && Object.keys(error.fields).length === 0 && <ActionError error={error} />}
        <div className="dialogacts"><Button onClick={() => { draft.discard(); onClose() }}>Cancel</Button><Button type="submit" kind="main" busy={create.isPending}>Make the key</Button></div>
      </form>
    </Drawer>
  )
}
