import { lazy, Suspense, useState } from 'react'
import type { DataField } from '../../api/admin'
import { AreaField, TextField } from '../../ui/field'
import { parseJSON } from '../../ui/json'
import { LookupField, ManyField, SelectField } from '../../ui/select'
import { findLabels, referenceOf, useLabels, textOf } from './queries'

const CodeEditor = lazy(async () => ({ default: (await import('../../ui/code-editor')).CodeEditor }))

/** InputProps: value as the API has it; onChange is given undefined for text that is no value, with what is wrong. */
interface InputProps { field: DataField; value: unknown; error: string | undefined; onChange: (value: unknown, wrong?: string) => void }

/** FieldInput is the input of a field, by its type. */
export function FieldInput({ field, value, error, onChange }: InputProps) {
  const common = { label: field.name, type: field.required ? `${field.type}, required` : field.type, error, required: field.required }
  const text = value === null || value === undefined ? '' : textOf(value)
  switch (field.type) {
    case 'number': return <NumberInput field={field} value={value} error={error} onChange={onChange} />
    case 'json': return <JsonInput field={field} value={value} error={error} onChange={onChange} />
    case 'boolean':
      return <SelectField {...common} clearable={!field.required} value={value === true ? 'true' : value === false ? 'false' : null} options={[{ value: 'true', label: 'yes' }, { value: 'false', label: 'no' }]} onChange={(v) => { onChange(v === null ? null : v === 'true') }} />
    case 'date':
      return <TextField {...common} input="date" value={text} onChange={(v) => { onChange(v === '' ? null : v) }} />
    case 'datetime':
      return <TextField {...common} type={`${common.type}, UTC`} input="datetime-local" step={1} value={text.slice(0, 19)} onChange={(v) => { onChange(v === '' ? null : `${v.length === 16 ? `${v}:00` : v}Z`) }} />
    case 'select':
      return <SelectField {...common} clearable={!field.required} value={value === null || value === undefined ? null : text} options={field.options.map((o) => ({ value: o, label: o }))} onChange={onChange} />
    case 'multiselect':
      return <ManyField {...common} value={Array.isArray(value) ? value.map(textOf) : []} options={field.options.map((o) => ({ value: o, label: o }))} onChange={(v) => { onChange(v.length === 0 ? null : v) }} />
    case 'reference': return <ReferenceInput field={field} value={value} error={error} onChange={onChange} />
    default:
      if (text.length > 80 || text.includes('\n')) return <AreaField {...common} rows={5} value={text} onChange={(v) => { onChange(v === '' ? null : v) }} />
      return <TextField {...common} value={text} onChange={(v) => { onChange(v === '' ? null : v) }} />
  }
}

function NumberInput({ field, value, error, onChange }: InputProps) {
  const [text, setText] = useState(value === null || value === undefined ? '' : textOf(value))
  const shown = text.trim() !== '' && Number(text) === value ? text : value === null || value === undefined ? text : text === '' ? textOf(value) : text
  return (
    <TextField label={field.name} type={field.required ? 'number, required' : 'number'} error={error} required={field.required} mono inputMode="decimal" value={shown}
      onChange={(next) => {
        setText(next)
        const number = Number(next)
        if (next.trim() === '') onChange(null)
        else if (Number.isFinite(number)) onChange(number)
        else onChange(undefined, 'expected a number')
      }} />
  )
}

/** JsonInput is an editor of JSON; until it is loaded, an area of text. */
function JsonInput({ field, value, error, onChange }: InputProps) {
  const [text, setText] = useState(value === null || value === undefined ? '' : JSON.stringify(value, null, 2))
  const read = text.trim() === '' ? undefined : parseJSON(text)
  const type = field.required ? 'json, required' : 'json'
  const change = (next: string) => {
    setText(next)
    if (next.trim() === '') { onChange(null); return }
    const found = parseJSON(next)
    if (found.ok) onChange(found.value)
    else onChange(undefined, `line ${found.line}: ${found.message}`)
  }
  const format = read?.ok ? () => { change(JSON.stringify(read.value, null, 2)) } : undefined
  return (
    <Suspense fallback={<AreaField label={field.name} type={type} help="An object or a list." required={field.required} mono rows={6} spellCheck={false} value={text} onChange={change} />}>
      <div className="field jsonfield" role="group" aria-label={`${field.name}, ${type}`}>
        <div className="lab"><span>{field.name}</span><span className="type">{type}</span></div>
        <div className={`pane ${error ? 'bad' : ''}`}><CodeEditor label={field.name} language="json" value={text} onChange={change} wrap keepsTab={false} problems={read && !read.ok ? [{ line: read.line, message: read.message }] : undefined} /></div>
        {error && read?.ok !== false && <p className="help bad">{error}</p>}
        <p className="help row"><span className="grow">An object or a list.</span>{format && text !== JSON.stringify(read?.ok ? read.value : null, null, 2) && <button type="button" className="linkish s12" onClick={format}>Format</button>}</p>
      </div>
    </Suspense>
  )
}

function ReferenceInput({ field, value, error, onChange }: InputProps) {
  const target = referenceOf(field) ?? ''
  const id = typeof value === 'string' ? value : null
  const labelOf = useLabels(target, id ? [id] : [])
  const [picked, setPicked] = useState<{ value: string; label: string }>()
  return (
    <LookupField label={field.name} type={`reference to ${target}${field.required ? ', required' : ''}`} error={error} required={field.required} clearable={!field.required} value={id}
      shown={id ? (picked?.value === id ? picked.label : labelOf(id)) : undefined} find={(text, signal) => findLabels(target, text, signal)}
      onChange={(next, option) => { setPicked(option); onChange(next) }} placeholder={`Find a record of ${target}`} />
  )
}
