import { useMemo, useState } from 'react'
import { absent, problemsOf, useObjects, useSave, type AutomationValue, type ComponentValue, type EndpointValue } from '../../app/build/objects'
import { useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { useDraft } from '../../ui/drafts'
import { Field, PasswordField, Segmented, SwitchField, TextField } from '../../ui/field'
import { Page } from '../../ui/page'
import { SelectField } from '../../ui/select'
import { comboWords, useShortcut } from '../../ui/shortcuts'
import { Note } from '../../ui/states'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'

const defaults = { auth: 'api_key', log_requests: true, external_users: false, rate_limit_per_minute: 1000, max_body_bytes: 1_048_576 } as const

/** replyOf is what an endpoint answers that does not say. */
const replyOf = (auth: EndpointValue['auth']) => auth === 'signed' ? 'receipt' as const : 'result' as const

/** fitting leaves out what does not go with the way of calling: the server refuses it. */
export function fitting(value: EndpointValue): EndpointValue {
  const { reply, verifier, webhook_secret, previous_webhook_secret, allow_get, external_users, rate_limit_per_minute, ...rest } = value
  const auth = value.auth ?? 'api_key'
  return {
    ...rest,
    ...(auth === 'api_key' ? { external_users } : { rate_limit_per_minute }),
    ...(auth !== 'api_key' ? { reply } : {}),
    ...(auth === 'signed' ? { verifier, webhook_secret, previous_webhook_secret, allow_get } : {}),
  }
}

/** EndpointForm edits every field of an endpoint. A secret is typed anew or kept, never shown. */
export function EndpointForm({ slug, stored, version, onDone, onCancel }: { slug: string; stored: EndpointValue; version: string; onDone: () => void; onCancel: () => void }) {
  const session = useSession()
  const whole = useMemo(() => ({ ...defaults, reply: replyOf(stored.auth), ...stored }), [stored])
  const draft = useDraft<EndpointValue>(`endpoint/${slug}`, whole, version)
  const value = draft.value
  const isNew = version === absent
  const components = useObjects<ComponentValue>('logic_component')
  const automations = useObjects<AutomationValue>('automation')
  // Secrets are in no draft: they are lost with the page.
  const [secret, setSecret] = useState('')
  const [previous, setPrevious] = useState('')
  const [dropPrevious, setDropPrevious] = useState(false)
  const save = useSave()
  const problems = useMemo(() => problemsOf(save.error ?? undefined), [save.error])
  const errors: Record<string, string | undefined> = useMemo(() => Object.fromEntries(problems.map((p) => [p.path, p.message])), [problems])
  const set = (patch: Partial<EndpointValue>) => { draft.set((was) => ({ ...was, ...patch })) }
  const auth = value.auth ?? 'api_key'
  const targetKind = 'automation' in value.target ? 'automation' : 'component'
  const targetName = 'automation' in value.target ? value.target.automation : value.target.component
  const changed = isNew || draft.dirty || secret !== '' || previous !== '' || dropPrevious
  const store = (against: string) => {
    const made = fitting({ ...value, ...(secret !== '' ? { webhook_secret: secret } : {}), ...(dropPrevious ? { previous_webhook_secret: '' } : previous !== '' ? { previous_webhook_secret: previous } : {}) })
    save.mutate([{ kind: 'custom_endpoint', name: slug, value: Object.fromEntries(Object.entries(made).filter(([, v]) => v !== undefined && v !== null && !(v === '' && v !== made.previous_webhook_secret))), against }], {
      onSuccess: (_, stayed) => { draft.discard(); setSecret(''); setPrevious(''); toast.show({ text: `${slug} is published` }); if (stayed) onDone() },
    })
  }
  useShortcut('mod+s', 'Save', () => { if (changed && targetName !== '' && !save.isPending) store(draft.against) })
  const other = problems.filter((p) => !['target', 'verifier', 'run_as', 'webhook_secret', 'previous_webhook_secret', 'rate_limit_per_minute', 'max_body_bytes'].includes(p.path))
  const number = (text: string) => Number(text.replace(/\D/g, '')) || 0
  return (
    <Page title={slug} count={isNew ? <span className="chip warn">not saved yet</span> : draft.dirty ? <span className="chip warn">unsaved changes</span> : undefined}
      acts={<><Button kind="quiet" onClick={() => { draft.discard(); onCancel() }}>{isNew ? 'Cancel' : 'Discard'}</Button><Button kind="main" disabled={!changed || targetName === ''} busy={save.isPending} onClick={() => { store(draft.against) }}>{isNew ? 'Publish' : 'Save'}<kbd className="on-a">{comboWords('mod+s')}</kbd></Button></>}>
      <LeaveGuard dirty={draft.dirty && !save.isSuccess} what={`The changes to ${slug} are not saved.`} leave="Leave" />
      {(save.error?.status === 409 || (draft.stale && !save.isPending)) && <ConflictView what={slug} theirs={whole} yours={value} onMerge={() => { draft.rebase(version); save.reset() }} onTakeTheirs={() => { draft.discard(); save.reset() }} onSaveMine={() => { draft.rebase(version); store(version) }} busy={save.isPending} />}
      {save.error && save.error.status !== 409 && (problems.length === 0 || other.length > 0) && <ActionError error={save.error} />}
      <div className="epform">
        <section className="sec">
          <h2>What it runs</h2>
          <Field label="Target">{() => <Segmented label="Target" value={targetKind} onChange={(kind) => { set({ target: kind === 'component' ? { component: '' } : { automation: '' } }) }} options={[{ value: 'component', label: 'Logic component' }, { value: 'automation', label: 'Automation' }]} />}</Field>
          {targetKind === 'component'
            ? <SelectField label="Logic component" required value={targetName || null} error={errors['target']} options={(components.data ?? []).map((c) => ({ value: c.name, label: c.name }))} onChange={(v) => { set({ target: { component: v ?? '' } }) }} placeholder={components.data?.length === 0 ? 'There is none yet' : 'Choose'} />
            : <SelectField label="Automation" required value={targetName || null} error={errors['target']} options={(automations.data ?? []).map((a) => ({ value: a.name, label: a.name }))} onChange={(v) => { set({ target: { automation: v ?? '' } }) }} placeholder={automations.data?.length === 0 ? 'There is none yet' : 'Choose'} />}
          <TextField label="Runs as" type="e-mail address" value={value.run_as ?? ''} error={errors['run_as']} onChange={(run_as) => { set({ run_as: run_as === '' ? undefined : run_as }) }} placeholder={auth === 'api_key' ? 'its caller' : 'who published it'} spellCheck={false}
            help={session.owner ? 'A user whose permissions it has, whoever calls. The target’s own execution context goes before it.' : 'You may name yourself; another user only the tenant’s owner.'} />
        </section>
        <section className="sec">
          <h2>Who can call it</h2>
          <Field label="Way of calling" help={{ api_key: 'A program with an API key: it does what the key’s user may do.', token: 'Whoever has its secret token: forms, devices, services without signatures. The token is made on the next page.', signed: 'A provider that signs what it sends: Stripe, GitHub, Slack, Twilio and others.' }[auth]}>
            {() => <Segmented label="Way of calling" value={auth} onChange={(next) => { set({ auth: next, reply: replyOf(next) }) }} options={[{ value: 'api_key', label: 'API key' }, { value: 'token', label: 'Secret token' }, { value: 'signed', label: 'Provider’s signature' }]} />}
          </Field>
          {auth === 'api_key' && <SwitchField label="External users may call it" checked={value.external_users ?? false} onChange={(external_users) => { set({ external_users }) }} help="With the access token of their login." />}
          {auth !== 'api_key' && <Field label="Answer" help={auth === 'signed' ? 'Most providers want a receipt. Twilio, Slack’s commands and Discord’s interactions read the result.' : 'A result is what the target returns; a receipt says only that it was taken.'}>{() => <Segmented label="Answer" value={value.reply ?? replyOf(auth)} onChange={(reply) => { set({ reply }) }} options={[{ value: 'result', label: 'The result, 200' }, { value: 'receipt', label: 'A receipt, 202' }]} />}</Field>}
          {auth === 'signed' && <>
            <SelectField label="Verifier" required value={value.verifier ?? null} error={errors['verifier']} options={(components.data ?? []).map((c) => ({ value: c.name, label: c.name }))} onChange={(v) => { set({ verifier: v ?? undefined }) }} help="The component that checks the signature; the verifier test bench has recipes." />
            <PasswordField label={isNew ? 'Webhook secret' : 'New webhook secret'} required={isNew} value={secret} onChange={setSecret} error={errors['webhook_secret']} autoComplete="off" help={isNew ? 'As the provider shows it. It is stored encrypted and not shown again.' : 'Empty keeps the one that is stored.'} />
            {!isNew && secret !== '' && previous === '' && <Note kind="warn">To keep deliveries that are still signed with the secret used so far, type that one below as the previous secret.</Note>}
            <PasswordField label="Previous secret" value={previous} onChange={(p) => { setPrevious(p); setDropPrevious(false) }} error={errors['previous_webhook_secret']} autoComplete="off" help={isNew ? 'Only during a change of secrets.' : 'It is accepted too. Empty keeps what is stored.'} />
            <SwitchField label="The verifier answers GET, too" checked={value.allow_get ?? false} onChange={(allow_get) => { set({ allow_get: allow_get ? true : undefined }) }} help="For providers that ask by it whether the address is right, such as Meta. Nothing runs then." />
            {!isNew && <SwitchField label="Forget the previous secret" checked={dropPrevious} onChange={setDropPrevious} disabled={previous !== ''} help="When the last delivery signed with it has come." />}
          </>}
        </section>
        <section className="sec">
          <h2>Limits and log</h2>
          {auth !== 'api_key' && <TextField label="Calls a minute" inputMode="numeric" value={String(value.rate_limit_per_minute ?? 1000)} error={errors['rate_limit_per_minute']} onChange={(t) => { set({ rate_limit_per_minute: number(t) }) }} help={auth === 'signed' ? 'Only deliveries that pass the verifier count.' : undefined} />}
          <TextField label="Largest body" type="bytes, at most 10,485,760" inputMode="numeric" value={String(value.max_body_bytes ?? 1_048_576)} error={errors['max_body_bytes']} onChange={(t) => { set({ max_body_bytes: number(t) }) }} />
          <SwitchField label="Keep successful requests in the audit log" checked={value.log_requests ?? true} onChange={(log_requests) => { set({ log_requests }) }} help="Failures are kept in either case." />
        </section>
      </div>
    </Page>
  )
}
