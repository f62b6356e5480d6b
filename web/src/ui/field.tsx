import { IconEye, IconEyeOff } from '@tabler/icons-react'
import { useId, useState, type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes } from 'react'

/** What every field has: its label, what kind of value it takes, help under it, and the API's words when they refuse it. */
export interface FieldProps { label: string; type?: ReactNode; help?: ReactNode; error?: string | undefined; required?: boolean }

/** The ids that tie a control to its label, help and error. */
export interface ControlIds { id: string; 'aria-describedby': string | undefined; 'aria-invalid': true | undefined; 'aria-required': true | undefined }

/** Field draws label, control, help and error; the control gets the ids. */
export function Field({ label, type, help, error, required, children }: FieldProps & { children: (ids: ControlIds) => ReactNode }) {
  const id = useId()
  const described = [help ? `${id}-help` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ') || undefined
  return (
    <div className="field">
      <div className="lab"><label htmlFor={id}>{label}</label>{type && <span className="type">{type}</span>}</div>
      {children({ id, 'aria-describedby': described, 'aria-invalid': error ? true : undefined, 'aria-required': required || undefined })}
      {error && <p className="help bad" id={`${id}-error`}>{error}</p>}
      {help && <p className="help" id={`${id}-help`}>{help}</p>}
    </div>
  )
}

type InputAttributes = Omit<InputHTMLAttributes<HTMLInputElement>, 'type' | 'value' | 'onChange' | 'size'>

/** TextField is one line of text. */
export function TextField({ label, type, help, error, required, value, onChange, mono, big, input = 'text', ...rest }: FieldProps & InputAttributes & { value: string; onChange: (value: string) => void; mono?: boolean; big?: boolean; input?: 'text' | 'email' | 'search' | 'url' | 'date' | 'datetime-local' }) {
  return (
    <Field label={label} type={type} help={help} error={error} required={required}>
      {(ids) => <input {...rest} {...ids} type={input} className={`input ${mono ? 'mono' : ''} ${big ? 'big' : ''} ${error ? 'bad' : ''}`} value={value} onChange={(e) => { onChange(e.target.value) }} />}
    </Field>
  )
}

/** AreaField is text of several lines. */
export function AreaField({ label, type, help, error, required, value, onChange, mono, rows = 3, ...rest }: FieldProps & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'value' | 'onChange'> & { value: string; onChange: (value: string) => void; mono?: boolean; rows?: number }) {
  return (
    <Field label={label} type={type} help={help} error={error} required={required}>
      {(ids) => <textarea {...rest} {...ids} rows={rows} className={`input area ${mono ? 'mono' : ''} ${error ? 'bad' : ''}`} value={value} onChange={(e) => { onChange(e.target.value) }} />}
    </Field>
  )
}

/** PasswordField can be shown; it is never kept in a draft. */
export function PasswordField({ label, type, help, error, required, value, onChange, big, ...rest }: FieldProps & InputAttributes & { value: string; onChange: (value: string) => void; big?: boolean }) {
  const [shown, setShown] = useState(false)
  return (
    <Field label={label} type={type} help={help} error={error} required={required}>
      {(ids) => (
        <span className="inset">
          <input {...rest} {...ids} type={shown ? 'text' : 'password'} className={`input ${big ? 'big' : ''} ${error ? 'bad' : ''}`} value={value} onChange={(e) => { onChange(e.target.value) }} />
          <button type="button" className="btn quiet icon s" aria-label={shown ? 'Hide password' : 'Show password'} aria-pressed={shown} onClick={() => { setShown(!shown) }}>
            {shown ? <IconEyeOff size={16} stroke={1.7} aria-hidden /> : <IconEye size={16} stroke={1.7} aria-hidden />}
          </button>
        </span>
      )}
    </Field>
  )
}

/** CheckField is a box with its words beside it. */
export function CheckField({ label, help, error, checked, onChange, disabled }: { label: ReactNode; help?: ReactNode; error?: string | undefined; checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean }) {
  const id = useId()
  return (
    <div className="field check">
      <label className="row"><input type="checkbox" className="check" checked={checked} disabled={disabled} aria-describedby={help || error ? `${id}-help` : undefined} aria-invalid={error ? true : undefined} onChange={(e) => { onChange(e.target.checked) }} />{label}</label>
      {(help || error) && <p className={`help ${error ? 'bad' : ''}`} id={`${id}-help`}>{error ?? help}</p>}
    </div>
  )
}

/** SwitchField turns something on or off; what it does is said beside it. */
export function SwitchField({ label, help, error, checked, onChange, disabled }: { label: ReactNode; help?: ReactNode; error?: string | undefined; checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean }) {
  const id = useId()
  return (
    <div className="field check">
      <label className="row"><input type="checkbox" role="switch" className="switch" checked={checked} disabled={disabled} aria-describedby={help || error ? `${id}-help` : undefined} onChange={(e) => { onChange(e.target.checked) }} />{label}</label>
      {(help || error) && <p className={`help ${error ? 'bad' : ''}`} id={`${id}-help`}>{error ?? help}</p>}
    </div>
  )
}

/** Segmented chooses one of a few. */
export function Segmented<T extends string>({ label, value, options, onChange, small }: { label: string; value: T; options: readonly { value: T; label: string }[]; onChange: (value: T) => void; small?: boolean }) {
  const name = useId()
  return (
    <span className={`seg ${small ? 's' : ''}`} role="radiogroup" aria-label={label}>
      {options.map((o) => (
        <label key={o.value} className={o.value === value ? 'on' : ''}>
          <input type="radio" name={name} checked={o.value === value} onChange={() => { onChange(o.value) }} />{o.label}
        </label>
      ))}
    </span>
  )
}
