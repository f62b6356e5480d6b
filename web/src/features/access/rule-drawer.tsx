import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { ask } from '../../api/client'
import { asError } from '../../api/error'
import { useChange } from '../../app/change'
import { absent, useObjects, type Stored } from '../../app/objects'
import { Button, IconButton } from '../../ui/button'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { useDraft } from '../../ui/drafts'
import { Drawer } from '../../ui/drawer'
import { Field, Segmented } from '../../ui/field'
import { Section } from '../../ui/list'
import { SelectField } from '../../ui/select'
import { Note } from '../../ui/states'
import { countWords } from '../../ui/time'
import { LeaveGuard } from '../../ui/unsaved'
import { conditionsOf, whereOf, whichWords, whomWords, type Condition, type RuleValue } from './rules'

interface FieldValue { name: string; type: string; options?: string[]; indexed?: boolean; unique?: boolean; managed?: boolean }
interface EntityValue { name: string; fields?: FieldValue[] }
interface Form { entity: string; by: 'owner' | 'value'; role: string; conditions: Condition[]; whom: 'role' | 'internal' | 'external' | 'everyone'; to: string; access: 'read' | 'edit' }

function formOf(rule: RuleValue | undefined): Form {
  return {
    entity: rule?.entity ?? '', by: rule?.where ? 'value' : 'owner', role: rule?.owned_by_role ?? '', conditions: rule ? conditionsOf(rule) : [],
    whom: rule?.share_with ?? 'role', to: rule?.share_with_role ?? '', access: rule?.access ?? 'read',
  }
}

/** RuleDrawer edits a rule in words: which records, for whom, to what end, and what that opens. A changed rule takes the place of the old one. */
export function RuleDrawer({ rule, onClose, onSaved }: { rule?: Stored<RuleValue>; onClose: () => void; onSaved: (name?: string) => void }) {
  const entities = useObjects<EntityValue>('entity')
  const userFields = useObjects<FieldValue[]>('user_fields')
  const roles = useObjects<{ name: string }>('role')
  const draft = useDraft<Form>(`sharing_rule/${rule?.name ?? 'new'}`, formOf(rule?.value), rule?.version ?? absent)
  const change = useChange('the sharing rule', rule ? 'Sharing rule saved' : 'Sharing rule added')
  const [removing, setRemoving] = useState(false)
  const form = draft.value
  const set = (patch: Partial<Form>) => { draft.set((was) => ({ ...was, ...patch })) }
  const fields = entities.data?.find((e) => e.name === form.entity)?.value.fields ?? []
  const value: RuleValue = {
    entity: form.entity,
    ...(form.by === 'owner' ? { owned_by_role: form.role } : { where: whereOf(form.conditions, (name) => fields.find((f) => f.name === name)?.type) }),
    ...(form.whom === 'role' ? { share_with_role: form.to } : { share_with: form.whom }),
    access: form.access,
  }
  const whole = form.entity !== '' && (form.by === 'owner' ? form.role !== '' : form.conditions.length > 0 && form.conditions.every((c) => c.field && c.value !== '')) && (form.whom !== 'role' || form.to !== '')
  const viewer = [{ value: '{{user.id}}', label: 'the viewer’s id' }, { value: '{{user.email}}', label: 'the viewer’s e-mail' }, ...(userFields.data?.[0]?.value ?? []).filter((f) => f.managed).map((f) => ({ value: `{{user.${f.name}}}`, label: `the viewer’s ${f.name}` }))]
  const options = (list: readonly { name: string }[] | undefined) => (list ?? []).map((o) => ({ value: o.name, label: o.name }))
  const save = () => { change.start([{ kind: 'sharing_rule', ...(rule ? { name: rule.name, against: draft.against } : {}), value }], () => { draft.discard(); onSaved() }) }
  return (
    <Drawer title={rule ? `${rule.value.entity} → ${whomWords(rule.value)}` : 'Add sharing rule'} label={rule ? 'Sharing rule' : 'Add sharing rule'} sub={rule && whichWords(rule.value)} onClose={onClose}
      footer={<><ActionError error={change.problems.length ? undefined : change.error} /><span className="grow" />{rule && <Button kind="danger" onClick={() => { setRemoving(true) }}>Remove rule</Button>}<Button kind="main" disabled={!whole || (rule !== undefined && !draft.dirty)} busy={change.busy} onClick={save}>{rule ? 'Save rule' : 'Add rule'}</Button></>}>
      <LeaveGuard dirty={draft.dirty} what="The sharing rule is not saved." onDiscard={draft.discard} />
      {draft.restored && <Note>Your unsaved changes are here again.</Note>}
      <form className="stack" onSubmit={(event) => { event.preventDefault(); if (whole) save() }}>
        <SelectField label="Records of" required value={form.entity || null} options={options(entities.data)} onChange={(entity) => { set({ entity: entity ?? '', conditions: [] }) }} />
        <Field label="Which of them">{() => <Segmented label="Which of them" value={form.by} onChange={(by) => { set({ by }) }} options={[{ value: 'owner', label: 'By the owner’s role' }, { value: 'value', label: 'By value' }]} />}</Field>
        {form.by === 'owner' ? <SelectField label="Owned by users with role" required value={form.role || null} options={options(roles.data)} onChange={(role) => { set({ role: role ?? '' }) }} help="Exactly this role." />
          : <Conditions value={form.conditions} fields={fields} viewer={viewer} onChange={(conditions) => { set({ conditions }) }} />}
        <Field label="Shared with">{() => <Segmented label="Shared with" value={form.whom} onChange={(next) => { set({ whom: next }) }} options={[{ value: 'role', label: 'A role' }, { value: 'internal', label: 'Staff' }, { value: 'external', label: 'External' }, { value: 'everyone', label: 'Everybody' }]} />}</Field>
        {form.whom === 'role' && <SelectField label="Role" required value={form.to || null} options={options(roles.data)} onChange={(to) => { set({ to: to ?? '' }) }} help="And all roles above it." />}
        <Field label="Access" help={form.access === 'read' ? 'They read the records.' : 'They read and change the records; deleting and sharing stay with the owner.'}>{() => <Segmented label="Access" value={form.access} onChange={(access) => { set({ access }) }} options={[{ value: 'read', label: 'Read' }, { value: 'edit', label: 'Edit' }]} />}</Field>
        {change.problems.map((p) => <p className="help bad" key={p.path + p.message}>{p.message}</p>)}
        <button type="submit" hidden />
      </form>
      <Reach rule={value} whole={whole} />
      {removing && rule && <ConfirmDestroy title="Remove the sharing rule" action="Remove rule" busy={change.busy} error={change.error} onClose={() => { setRemoving(false) }}
        onConfirm={() => { change.confirmed([{ kind: 'sharing_rule', name: rule.name, value: null, against: rule.version }], () => { setRemoving(false); draft.discard(); onSaved() }) }}>
        <p>{whomWords(rule.value)} no longer {rule.value.access === 'edit' ? 'see or change' : 'see'} records of {rule.value.entity} {whichWords(rule.value)}, unless something else opens them.</p>
      </ConfirmDestroy>}
      {change.dialog}
    </Drawer>
  )
}

function Conditions({ value, fields, viewer, onChange }: { value: readonly Condition[]; fields: readonly FieldValue[]; viewer: readonly { value: string; label: string }[]; onChange: (next: Condition[]) => void }) {
  const set = (i: number, patch: Partial<Condition>) => { onChange(value.map((c, at) => (at === i ? { ...c, ...patch } : c))) }
  return (
    <div className="field">
      <div className="lab"><span>All of these hold</span></div>
      {value.map((c, i) => {
        const field = fields.find((f) => f.name === c.field)
        const choices = [...(field?.options ?? []).map((o) => ({ value: o, label: o })), ...(field?.type === 'boolean' ? ['true', 'false'].map((o) => ({ value: o, label: o })) : []), ...viewer]
        return (
          <div className="row cond" key={i}>
            <select className="input mono" aria-label={`Field ${i + 1}`} value={c.field} onChange={(e) => { set(i, { field: e.target.value, value: '' }) }}><option value="">Field</option><option value="id">id (the record itself)</option>{fields.map((f) => <option key={f.name} value={f.name}>{f.name}</option>)}</select>
            <span className="second">is</span>
            <input className="input" aria-label={`Value ${i + 1}`} list={`values-${i}`} value={c.value} placeholder="Value" onChange={(e) => { set(i, { value: e.target.value }) }} />
            <datalist id={`values-${i}`}>{choices.map((o) => <option key={o.value} value={o.value}>{o.label}</option>)}</datalist>
            <IconButton small label={`Remove condition ${i + 1}`} onClick={() => { onChange(value.filter((_, at) => at !== i)) }}><IconTrash size={16} stroke={1.7} aria-hidden /></IconButton>
          </div>
        )
      })}
      <div className="top6"><Button small icon={<IconPlus size={14} stroke={1.7} aria-hidden />} onClick={() => { onChange([...value, { field: '', value: '' }]) }}>Add condition</Button></div>
      <p className="help">A value, or the viewer’s own: <code>{'{{user.id}}'}</code>, <code>{'{{user.email}}'}</code>, or a managed user field.</p>
    </div>
  )
}

/** Reach counts what the rule would open, within the server's bound. */
function Reach({ rule, whole }: { rule: RuleValue; whole: boolean }) {
  const asked = useDeferredValue(JSON.stringify(rule))
  const byViewer = Object.values(rule.where ?? {}).some((v) => typeof v === 'string' && v.startsWith('{{user.'))
  const query = useQuery({
    queryKey: ['reach', asked], enabled: whole && !byViewer, retry: false,
    queryFn: ({ signal }) => ask('GET reach', {
      query: {
        entity: rule.entity, ...(rule.share_with ? { share_with: rule.share_with } : { share_with_role: rule.share_with_role ?? '' }), ...(rule.owned_by_role ? { owned_by_role: rule.owned_by_role } : {}),
        ...Object.fromEntries(Object.entries(rule.where ?? {}).map(([field, v]) => [`where[${field}]`, String(v)])),
      }, signal,
    }),
  })
  if (!whole) return null
  if (byViewer) return <Section title="What it opens"><p className="second">To each viewer the records that carry their own value. Ask under Data, in a record’s “Who sees it”.</p></Section>
  return (
    <Section title="What it opens">
      {query.error ? <p className="second">{asError(query.error).message}</p> : !query.data ? <p className="muted">Counting</p>
        : <p><b>{countWords(query.data.records.count, query.data.records.more)}</b> {query.data.records.count === 1 ? 'record' : 'records'} to <b>{countWords(query.data.users.count, query.data.users.more)}</b> {query.data.users.count === 1 ? 'user' : 'users'}.</p>}
    </Section>
  )
}
