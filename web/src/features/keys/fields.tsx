import { AreaField, TextField } from '../../ui/field'
import type { KeyForm } from './form'

/** KeyFields are the fields of a key, new or stored; errors are the server's words, by the member of the body. */
export function KeyFields({ form, set, errors, disabled, focus }: { form: KeyForm; set: (patch: Partial<KeyForm>) => void; errors: Readonly<Record<string, string>>; disabled?: boolean; focus?: boolean }) {
  return (
    <>
      <TextField label="Name" required value={form.name} onChange={(name) => { set({ name }) }} error={errors['name']} help="What uses it: a shop, a job, a person." disabled={disabled} maxLength={200} data-autofocus={focus} />
      <TextField label="Requests a minute" value={form.limit} onChange={(limit) => { set({ limit }) }} error={errors['rateLimitPerMinute']} inputMode="numeric" disabled={disabled} />
      <AreaField label="Origins" type="one a line" value={form.origins} onChange={(origins) => { set({ origins }) }} error={errors['corsAllowedOrigins']} mono rows={2} help="Pages of these origins may call with the key. None: no browser may." placeholder="https://shop.example" disabled={disabled} />
      <AreaField label="Addresses" type="one a line" value={form.addresses} onChange={(addresses) => { set({ addresses }) }} error={errors['ipAllowlist']} mono rows={2} help="IPv4 addresses and ranges. None: from anywhere." placeholder="203.0.113.0/24" disabled={disabled} />
      <TextField label="Expires" type="at the end of the day, UTC" input="date" value={form.expires} onChange={(expires) => { set({ expires }) }} error={errors['expiresAt']} help="Empty: never." disabled={disabled} />
    </>
  )
}
