import './config.css'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { asError } from '../../api/error'
import { problemAt } from '../../app/objects'
import { useMay } from '../../app/session'
import { paths } from '../../app/paths'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { useDraft } from '../../ui/drafts'
import { SwitchField, TextField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { SaveBar } from '../../ui/savebar'
import { ErrorState, Note, Skeleton } from '../../ui/states'
import { LeaveGuard } from '../../ui/unsaved'
import { useReview } from './review'
import { tenantKey, useTenant, type TenantValue } from './tenant'

type Config = Pick<TenantValue, 'public_api' | 'unauthenticated_per_ip_per_minute' | 'dedup_retention_days'>

/** ApiConfig has the two switches of the Public API and the limits that no key has. */
export default function ApiConfig() {
  const tenant = useTenant()
  if (tenant.error) return <Page title="API Config"><ErrorState what="The settings could not be loaded." error={asError(tenant.error)} onRetry={() => { void tenant.refetch() }} /></Page>
  if (!tenant.data) return <Page title="API Config"><Skeleton label="Loading API Config" rows={4} /></Page>
  return <Editor stored={tenant.data.value} version={tenant.data.version} />
}

const words = (n: number) => String(n)

function Editor({ stored, version }: { stored: TenantValue; version: string }) {
  const client = useQueryClient()
  const switches = useMay(['manage_endpoints'])
  const settings = useMay(['tenant_settings'])
  const draft = useDraft<Config>('api-config', { public_api: stored.public_api, unauthenticated_per_ip_per_minute: stored.unauthenticated_per_ip_per_minute, dedup_retention_days: stored.dedup_retention_days }, version)
  const review = useReview('API Config saved')
  const [asking, setAsking] = useState(false)
  const { public_api: api, unauthenticated_per_ip_per_minute: perAddress, dedup_retention_days: days } = draft.value
  const changed: Partial<Config> = {
    ...(JSON.stringify(api) === JSON.stringify(stored.public_api) ? {} : { public_api: api }),
    ...(perAddress === stored.unauthenticated_per_ip_per_minute ? {} : { unauthenticated_per_ip_per_minute: perAddress }),
    ...(days === stored.dedup_retention_days ? {} : { dedup_retention_days: days }),
  }
  const count = Object.keys(changed).length
  const save = (against: string) => {
    setAsking(false)
    review.start([{ kind: 'tenant', name: '', value: changed, against }], () => { draft.discard(); void client.invalidateQueries({ queryKey: tenantKey }) })
  }
  const stops = stored.public_api.enabled && !api.enabled
  const conflict = review.error?.conflict
  const theirVersion = review.error?.details['version']
  const pick = (value: unknown) => { const all = (value ?? {}) as Record<string, unknown>; return Object.fromEntries(Object.keys(changed).map((key) => [key, all[key]])) }
  const number = (text: string) => (text.trim() === '' ? 0 : Number(text))
  return (
    <Page title="API Config" hint={<>The Public API of this tenant, at <code>/public/v1</code>. Keys and endpoints have settings of their own: <Link to={paths.apiKeys()}>API keys</Link>, <Link to={paths.endpoints()}>Custom endpoints</Link>.</>}>
      {conflict && typeof theirVersion === 'string' && <ConflictView what="the settings" theirs={pick(conflict.stored)} yours={changed} busy={review.busy}
        onTakeTheirs={() => { review.clear(); draft.discard(); void client.invalidateQueries({ queryKey: tenantKey }) }} onSaveMine={() => { draft.rebase(theirVersion); save(theirVersion) }} />}
      {draft.restored && draft.dirty && <Note>Your edit from before is here, unsaved.</Note>}
      <SwitchField label="Public API" checked={api.enabled} disabled={!switches} onChange={(enabled) => { review.clear(); draft.set({ ...draft.value, public_api: { ...api, enabled } }) }}
        help={api.enabled ? 'Keys, access tokens and webhooks are answered.' : <>Everything under <code>/public/v1</code> but <code>/auth</code> answers 503 <code>API_DISABLED</code>, webhooks included.</>} error={problemAt(review.problems, 'public_api.enabled')} />
      <SwitchField label="Log standard requests" checked={api.log_standard_requests} disabled={!switches} onChange={(log_standard_requests) => { review.clear(); draft.set({ ...draft.value, public_api: { ...api, log_standard_requests } }) }}
        help={<>Requests to <code>/data</code> and <code>/me</code>, and refusals of any kind, are kept in the <Link to={paths.audit()}>audit log</Link>. Custom endpoints have a switch each.</>} />
      <div className="cfg-form top6">
        <TextField label="Without a valid credential" type="requests a minute for an address" inputMode="numeric" value={words(perAddress)} disabled={!settings} onChange={(text) => { review.clear(); draft.set({ ...draft.value, unauthenticated_per_ip_per_minute: number(text) }) }} error={problemAt(review.problems, 'unauthenticated_per_ip_per_minute')} />
        <TextField label="Deliveries are known again for" type="days, 0 is for ever" inputMode="numeric" value={words(days)} disabled={!settings} onChange={(text) => { review.clear(); draft.set({ ...draft.value, dedup_retention_days: number(text) }) }} error={problemAt(review.problems, 'dedup_retention_days')} help="How long a webhook takes a delivery that it has seen for a duplicate; at least 30" />
      </div>
      {!conflict && review.problems.length === 0 && <ActionError error={review.error} />}
      <SaveBar count={count} busy={review.busy} onDiscard={() => { review.clear(); draft.discard() }} onSave={() => { if (stops) setAsking(true); else save(draft.against) }} />
      {asking && <ConfirmDestroy title="Switch the Public API off" action="Switch it off" keep="Leave it on" typeName={stored.tenant} onConfirm={() => { save(draft.against) }} onClose={() => { setAsking(false) }}>
        <p>Every API key, every access token and every custom endpoint stops at once: each request gets 503 <code>API_DISABLED</code>. Providers of webhooks try again later, some give up.</p>
        <p>Login of external users at <code>/auth</code> and this console go on. Nothing is deleted; the switch brings all of it back.</p>
      </ConfirmDestroy>}
      {review.dialog}
      <LeaveGuard dirty={draft.dirty && count > 0} what="Your changes to API Config aren’t saved." onDiscard={draft.discard} />
    </Page>
  )
}
