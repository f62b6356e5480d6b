import { IconPlus, IconTrash } from '@tabler/icons-react'
import { Button, IconButton } from '../../ui/button'
import { Field, Segmented, TextField } from '../../ui/field'
import type { Declaration, ExecutionContext } from './objects'

const types = ['text', 'number', 'boolean', 'json'] as const

/** Declarations edits declared inputs or outputs; errors are by path, like inputs[2].name. Inputs have patterns. */
export function Declarations({ label, path, value, onChange, errors, hint }: { label: string; path: string; value: readonly Declaration[]; onChange: (next: Declaration[]) => void; errors: Readonly<Record<string, string>>; hint: string }) {
  const set = (i: number, patch: Partial<Declaration>) => { onChange(value.map((d, at) => (at === i ? { ...d, ...patch } : d))) }
  const patterns = path !== 'outputs'
  return (
    <section className="sec">
      <h2>{label}<span className="muted s12">{value.length}</span></h2>
      <p className="help">{hint}</p>
      {value.length > 0 && (
        <table className="tbl flat decl" aria-label={label}>
          <thead><tr><th scope="col">Name</th><th scope="col" className="type">Type</th>{patterns && <th scope="col">Pattern</th>}<th scope="col" className="must">Required</th><th scope="col" className="gone"><span className="hidden-words">Remove</span></th></tr></thead>
          <tbody>{value.map((d, i) => {
            const at = `${path}[${i}]`
            const wrong = errors[`${at}.name`] ?? errors[`${at}.type`] ?? errors[at]
            const odd = errors[`${at}.pattern`]
            return (
              <tr key={i}>
                <td><input className={`input mono ${wrong ? 'bad' : ''}`} aria-label={`Name of ${label.toLowerCase()} ${i + 1}`} aria-invalid={wrong ? true : undefined} value={d.name} onChange={(e) => { set(i, { name: e.target.value }) }} />{wrong && <p className="help bad">{wrong}</p>}</td>
                <td className="type"><select className="input" aria-label={`Type of ${d.name || i + 1}`} value={d.type} onChange={(e) => { const type = e.target.value as Declaration['type']; set(i, type === 'text' ? { type } : { type, pattern: undefined }) }}>{types.map((t) => <option key={t}>{t}</option>)}</select></td>
                {patterns && <td>{d.type === 'text' && <input className={`input mono ${odd ? 'bad' : ''}`} aria-label={`Pattern of ${d.name || i + 1}`} aria-invalid={odd ? true : undefined} placeholder="any text" value={d.pattern ?? ''} onChange={(e) => { set(i, { pattern: e.target.value || undefined }) }} />}{odd && <p className="help bad">{odd}</p>}</td>}
                <td className="must"><input type="checkbox" className="check" aria-label={`${d.name || `Number ${i + 1}`} is required`} checked={d.required ?? false} onChange={(e) => { set(i, { required: e.target.checked }) }} /></td>
                <td className="gone"><IconButton small label={`Remove ${d.name || `number ${i + 1}`}`} onClick={() => { onChange(value.filter((_, at) => at !== i)) }}><IconTrash size={16} stroke={1.7} aria-hidden /></IconButton></td>
              </tr>
            )
          })}</tbody>
        </table>
      )}
      <div className="top6"><Button small icon={<IconPlus size={14} stroke={1.7} aria-hidden />} onClick={() => { onChange([...value, { name: '', type: 'text' }]) }}>Add to {label.toLowerCase()}</Button></div>
    </section>
  )
}

/** ContextField chooses as whom something runs. */
export function ContextField({ value, onChange, error, mayAll, mayOthers, self }: { value: ExecutionContext; onChange: (next: ExecutionContext) => void; error?: string | undefined; mayAll: boolean; mayOthers: boolean; self: string }) {
  const kind = typeof value === 'string' ? value : 'user'
  const help = { caller: 'It does what its caller may do: the user of the key, or of the endpoint.', system: 'It reads and writes every record of the tenant, in the name of its caller.', user: 'It does what this user may do, whoever calls.' }[kind]
  return (
    <section className="sec">
      <Field label="Runs as" help={help} error={error}>
        {() => <Segmented label="Runs as" value={kind} onChange={(next) => { onChange(next === 'user' ? { specific_user: self } : next) }} options={[{ value: 'caller', label: 'Caller' }, { value: 'system', label: 'System' }, { value: 'user', label: 'A certain user' }]} />}
      </Field>
      {kind === 'system' && !mayAll && <p className="help bad">Only the owner, or who has all_entity_access, may save this.</p>}
      {typeof value === 'object' && <>
        <TextField label="User" type="e-mail address" value={value.specific_user} onChange={(email) => { onChange({ specific_user: email }) }} readOnly={!mayOthers} help={mayOthers ? undefined : 'Only the tenant’s owner may name another user than themselves.'} />
      </>}
    </section>
  )
}
