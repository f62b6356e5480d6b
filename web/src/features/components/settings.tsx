import { useState } from 'react'
import type { ComponentValue } from '../../app/build/objects'
import { Button } from '../../ui/button'
import { CodeEditor } from '../../ui/code-editor'
import { PasswordField, TextField } from '../../ui/field'
import { parseJSON } from '../../ui/json'

/** The secrets that were typed and are not saved yet, by name. */
export type TypedSecrets = Readonly<Record<string, string>>

/** Settings edits what a component is given: its config, and its secrets, which are written and never read. */
export function Settings({ value, typed, onChange, onTyped, errors }: {
  value: ComponentValue; typed: TypedSecrets; errors: Record<string, string>
  onChange: (patch: Pick<ComponentValue, 'config' | 'secrets'>) => void; onTyped: (typed: TypedSecrets) => void
}) {
  const [text, setText] = useState(() => JSON.stringify(value.config ?? {}, null, 2))
  const [name, setName] = useState('')
  const config = parseJSON(text)
  const problem = !config.ok ? { line: config.line, message: config.message } : isObject(config.value) ? undefined : { line: 1, message: 'expected an object' }
  const write = (next: string) => {
    setText(next)
    const read = parseJSON(next)
    if (read.ok && isObject(read.value)) onChange({ config: read.value })
  }
  const names = Object.keys(value.secrets ?? {}).sort()
  const wrong = Object.entries(errors).find(([path]) => path.startsWith('secrets') || path === 'config')
  const add = () => {
    onChange({ secrets: { ...value.secrets, [name]: null } })
    onTyped({ ...typed, [name]: '' })
    setName('')
  }
  const remove = (gone: string) => {
    onChange({ secrets: Object.fromEntries(names.filter((n) => n !== gone).map((n) => [n, null])) })
    onTyped(Object.fromEntries(Object.entries(typed).filter(([n]) => n !== gone)))
  }
  return (
    <div className="formpad">
      <h3>Config</h3>
      <p className="muted">The source reads it as <code>config</code>, and so do the modules that it imports.</p>
      <CodeEditor label="Config" language="json" value={text} onChange={write} lines={false} wrap problems={problem ? [problem] : undefined} />
      <h3>Secrets</h3>
      <p className="muted">The source reads them as <code>secrets.NAME</code>. They are stored sealed and shown nowhere; in what a run says, they are redacted.</p>
      {wrong && <p className="bad" role="alert">{wrong[1]}</p>}
      {names.map((n) => (
        <div key={n}>
          <PasswordField label={n} value={typed[n] ?? ''} onChange={(secret) => { onTyped({ ...typed, [n]: secret }) }} placeholder={n in typed ? 'at least 8 characters' : 'kept as it is'} autoComplete="off" />
          <Button small kind="quiet" onClick={() => { remove(n) }}>{`Remove ${n}`}</Button>
        </div>
      ))}
      <TextField label="Name of a new secret" mono value={name} onChange={setName} placeholder="PAYMENT_KEY" help="Letters, digits and _." spellCheck={false} />
      <Button small disabled={!/^[A-Za-z_]\w{0,62}$/.test(name) || names.includes(name)} onClick={add}>Add a secret</Button>
    </div>
  )
}

function isObject(value: unknown): value is Record<string, unknown> { return typeof value === 'object' && value !== null && !Array.isArray(value) }
