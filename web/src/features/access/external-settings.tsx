import { useChange } from '../../app/change'
import { problemAt, useObjects, type Problem } from '../../app/objects'
import { asError } from '../../api/error'
import { useDraft } from '../../ui/drafts'
import { AreaField, CheckField, Segmented, SwitchField, TextField, Field } from '../../ui/field'
import { SaveBar } from '../../ui/savebar'
import { SelectField } from '../../ui/select'
import { ErrorState, Note, Skeleton } from '../../ui/states'
import { LeaveGuard } from '../../ui/unsaved'

/** External Identity as the configuration has it; members that are absent have their defaults. */
interface Identity {
  enabled?: boolean
  open_registration?: boolean
  activation_mode?: 'svc_email' | 'app_managed' | 'none'
  default_permission_set?: string
  welcome_email?: boolean
  app_url?: string
  cors_allowed_origins?: string[]
  rate_limit_per_minute?: number
  limits?: Record<string, number>
}
interface TenantValue { external_identity?: Identity }

const limits: readonly [name: string, label: string, unit: string, fallback: number][] = [
  ['register_per_ip_per_hour', 'Registrations of an address', 'an hour', 5],
  ['register_per_tenant_per_hour', 'Registrations in all', 'an hour', 30],
  ['login_per_ip_per_minute', 'Sign-ins of an address', 'a minute', 10],
  ['login_per_email_per_15_minutes', 'Sign-ins of an account', 'in 15 minutes', 5],
  ['login_block_minutes', 'An account is blocked for', 'minutes', 30],
  ['reset_per_email_per_hour', 'Password resets of an account', 'an hour', 3],
  ['reset_per_tenant_per_hour', 'Password resets in all', 'an hour', 30],
  ['refresh_per_token_per_minute', 'Refreshes of a session', 'a minute', 60],
  ['verify_per_ip_per_minute', 'Verifications of an address', 'a minute', 30],
  ['password_reset_per_ip_per_minute', 'New passwords of an address', 'a minute', 30],
]

const modes = {
  svc_email: 'Gatehouse mails a link; the account is active once it was opened.',
  app_managed: 'Your app’s server activates accounts, with a key that has can_manage_external_users.',
  none: 'Accounts are active at once; nobody’s address is verified.',
} as const

/** ExternalSettings edits External Identity. */
export function ExternalSettings() {
  const tenant = useObjects<TenantValue>('tenant')
  const error = tenant.error ? asError(tenant.error) : undefined
  const stored = tenant.data?.[0]
  if (error) return <ErrorState what="The settings could not be loaded." error={error} onRetry={() => void tenant.refetch()} />
  if (!stored) return <Skeleton rows={6} label="Loading the settings" />
  return <Editor key={stored.name} name={stored.name} version={stored.version} identity={stored.value.external_identity ?? {}} />
}

function Editor({ name, version, identity }: { name: string; version: string; identity: Identity }) {
  const sets = useObjects<{ name: string }>('permission_set')
  const draft = useDraft<Identity>('tenant/external_identity', identity, version)
  const change = useChange('External Identity', 'External Identity saved')
  const value = draft.value
  const set = (patch: Partial<Identity>) => { draft.set((was) => ({ ...was, ...patch })) }
  const at = (member: string) => problemAt(change.problems, `external_identity.${member}`)
  const count = (Object.keys({ ...identity, ...value }) as (keyof Identity)[]).filter((k) => JSON.stringify(identity[k]) !== JSON.stringify(value[k])).length
  const setNames = [...new Set([...(value.default_permission_set ? [value.default_permission_set] : []), ...(sets.data ?? []).map((s) => s.name)])]
  return (
    <div className="stack form">
      <LeaveGuard dirty={draft.dirty} what="The settings are not saved." onDiscard={draft.discard} />
      {draft.restored && <Note>Your unsaved changes are here again.</Note>}
      {draft.stale && !change.busy && <Note kind="warn">Somebody saved the settings after you began. Saving shows both sides.</Note>}
      <section className="sec">
        <SwitchField label="External Identity is on" checked={value.enabled ?? false} onChange={(enabled) => { set({ enabled }) }} help={value.enabled ? 'Your app’s users can register and sign in.' : 'Everything under /public/v1/auth answers 503, and access tokens do not work.'} error={at('enabled')} />
        <CheckField label="Open registration" checked={value.open_registration ?? true} onChange={(open_registration) => { set({ open_registration }) }} help="When it is off, POST /auth/register answers 403." />
      </section>
      <section className="sec">
        <h2>Registration</h2>
        <Field label="Activation" help={modes[value.activation_mode ?? 'svc_email']} error={at('activation_mode')}>
          {() => <Segmented label="Activation" value={value.activation_mode ?? 'svc_email'} onChange={(activation_mode) => { set({ activation_mode }) }} options={[{ value: 'svc_email', label: 'By e-mail' }, { value: 'app_managed', label: 'By your app' }, { value: 'none', label: 'None' }]} />}
        </Field>
        <SelectField label="Default permission set" clearable placeholder="None: who registers may do nothing" value={value.default_permission_set ?? null} options={setNames.map((s) => ({ value: s, label: s }))} onChange={(s) => { set({ default_permission_set: s ?? '' }) }} error={at('default_permission_set')} help="Who registers gets it. It grants access to entities and fields only." />
        <CheckField label="Welcome e-mail once an account is active" checked={value.welcome_email ?? false} onChange={(welcome_email) => { set({ welcome_email }) }} />
      </section>
      <section className="sec">
        <h2>Your app</h2>
        <TextField label="Address of your app" mono input="url" placeholder="https://portal.example.com" value={value.app_url ?? ''} onChange={(app_url) => { set({ app_url }) }} error={at('app_url')} help="Links in mails lead to its /verify and /reset-password. Without one they lead to the tenant’s base URL." />
        <AreaField label="Origins that may call from a browser" mono rows={3} value={(value.cors_allowed_origins ?? []).join('\n')} onChange={(text) => { set({ cors_allowed_origins: text.split('\n').map((l) => l.trim()).filter((l, i, all) => l !== '' || i === all.length - 1) }) }} error={at('cors_allowed_origins')} help="One a line. Without any, it is the origin of your app’s address." />
      </section>
      <section className="sec">
        <h2>Limits</h2>
        <div className="grid2">
          <Count label="Requests of an external user" unit="a minute" value={value.rate_limit_per_minute} fallback={1000} onChange={(n) => { set({ rate_limit_per_minute: n }) }} error={at('rate_limit_per_minute')} />
          {limits.map(([member, label, unit, fallback]) => (
            <Count key={member} label={label} unit={unit} fallback={fallback} value={value.limits?.[member]} onChange={(n) => { set({ limits: { ...value.limits, [member]: n } }) }} error={at(`limits.${member}`)} />
          ))}
        </div>
      </section>
      <Left problems={change.problems} />
      <SaveBar count={count} what="External Identity" busy={change.busy} error={change.problems.length ? undefined : change.error} onDiscard={() => { draft.discard(); change.clear() }}
        onSave={() => { change.start([{ kind: 'tenant', name, value: { external_identity: tidy(value) }, against: draft.against }], draft.discard) }} />
      {change.dialog}
    </div>
  )
}

function Count({ label, unit, value, fallback, onChange, error }: { label: string; unit: string; value: number | undefined; fallback: number; onChange: (n: number) => void; error: string | undefined }) {
  return <TextField label={label} type={unit} mono inputMode="numeric" value={String(value ?? fallback)} onChange={(text) => { const n = Number(text.replace(/\D/g, '')); onChange(Number.isFinite(n) ? n : fallback) }} error={error} />
}

/** Left are the problems that belong to no field of the page. */
function Left({ problems }: { problems: readonly Problem[] }) {
  const list = problems.filter((p) => !p.path.startsWith('external_identity'))
  return <>{list.map((p) => <p className="help bad" key={p.path + p.message}>{p.path && <code>{p.path}</code>} {p.message}</p>)}</>
}

function tidy(value: Identity): Identity {
  const next = { ...value, cors_allowed_origins: (value.cors_allowed_origins ?? []).filter((o) => o !== '') }
  if (!next.default_permission_set) delete next.default_permission_set
  if (!next.app_url) delete next.app_url
  if (next.cors_allowed_origins.length === 0) delete (next as Identity).cors_allowed_origins
  return next
}
