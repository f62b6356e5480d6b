import { useMemo, useState, type ReactNode } from 'react'
import type { DataField } from '../../api/admin'
import { Button } from '../../ui/button'
import { useChoices } from '../../ui/filters'
import { choiceOf, choicesOf, listText, operandsOf, takesList, type Choice, type Condition } from './filters'
import { findLabels, referenceOf, useLabels } from './queries'

const yesNo = [{ value: 'true', label: 'yes' }, { value: 'false', label: 'no' }]
const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/** sourceOf gives what the values of a field are chosen from; undefined where they are typed. */
function sourceOf(field: DataField): Parameters<typeof useChoices>[0] | undefined {
  const target = referenceOf(field)
  if (field.type === 'select' || field.type === 'multiselect') return { options: field.options.map((o) => ({ value: o, label: o })) }
  if (field.type === 'boolean') return { options: yesNo }
  return target ? { load: (text, signal) => findLabels(target, text, signal) } : undefined
}

/** ConditionForm sets the operator and the value of a condition on a field. taken are operators that other conditions on it have. */
export function ConditionForm({ field, at, taken, error, onSet }: { field: DataField; at: Condition | undefined; taken: readonly string[]; error: string | undefined; onSet: (op: string, value: string) => void }) {
  const choices = choicesOf(field, taken)
  const source = useMemo(() => sourceOf(field), [field])
  const [key, setKey] = useState(at && choiceOf(at).key)
  const choice = choices.find((c) => c.key === key) ?? choices[0]
  const [values, setValues] = useState<readonly string[]>(at && at.op !== 'is_null' ? operandsOf(at) : [])
  const [wrong, setWrong] = useState<string>()
  if (!choice) return null
  const apply = (list: readonly string[]) => {
    const problem = problemOf(field, choice, list)
    setWrong(problem)
    if (problem === undefined) onSet(choice.op, choice.value ?? (takesList(choice.op) ? listText(list) : list[0] ?? ''))
  }
  const control = { field, choice, values, onChange: (list: readonly string[]) => { setValues(list); setWrong(undefined) }, wrong: wrong ?? error }
  return (
    <form className="choose condition" onSubmit={(event) => { event.preventDefault(); apply(choice.op === 'contains' || choice.op === 'prefix' ? values : values.map((v) => v.trim()).filter(Boolean)) }}>
      <select className="input" aria-label={`How ${field.name} is compared`} value={choice.key} onChange={(e) => { setKey(e.target.value); setWrong(undefined) }}>
        {choices.map((c) => <option key={c.key} value={c.key}>{c.words}</option>)}
      </select>
      {choice.value === undefined && (source ? <Picks {...control} source={source} onPick={apply} /> : <Typed {...control} />)}
      {(wrong ?? error) !== undefined && <p className="help bad" id="condition-wrong">{wrong ?? error}</p>}
      {(choice.op === 'ne' || choice.op === 'nin') && <p className="help">Matches what is not set, too.</p>}
      <Button type="submit" small>Apply</Button>
    </form>
  )
}

/** problemOf says why operands are none, as far as it can be told without the API. */
function problemOf(field: DataField, choice: Choice, values: readonly string[]): string | undefined {
  if (choice.value !== undefined) return undefined
  if (values.length === 0 || values[0] === '') return takesList(choice.op) ? 'at least one value is needed' : 'a value is needed'
  return field.type === 'number' && !values.every((v) => jsonNumber.test(v)) ? 'expected a number, such as 42 or -0.5' : undefined
}

interface ControlProps { field: DataField; choice: Choice; values: readonly string[]; onChange: (values: readonly string[]) => void; wrong: string | undefined }

/** Typed is the control for values that are typed: several stand one a line. */
function Typed({ field, choice, values, onChange, wrong }: ControlProps): ReactNode {
  const common = { 'aria-label': field.name, 'aria-invalid': wrong ? true : undefined, 'aria-describedby': wrong ? 'condition-wrong' : undefined, 'data-autofocus': true }
  if (takesList(choice.op)) {
    return (
      <>
        <textarea {...common} className="input area" rows={4} value={values.join('\n')} onChange={(e) => { onChange(e.target.value.split('\n')) }} />
        <p className="help">One value a line{formOf[field.type] && `, such as ${formOf[field.type]}`}.</p>
      </>
    )
  }
  const value = values[0] ?? ''
  const set = (next: string) => { onChange(next === '' ? [] : [next]) }
  switch (field.type) {
    case 'date': return <input {...common} className="input" type="date" value={value} onChange={(e) => { set(e.target.value) }} />
    case 'datetime':
      return (
        <>
          <input {...common} className="input" type="datetime-local" step={1} value={value.slice(0, 19)} onChange={(e) => { const v = e.target.value; set(v && `${v.length === 16 ? `${v}:00` : v}Z`) }} />
          <p className="help">In UTC.</p>
        </>
      )
    case 'number': return <input {...common} className="input mono" inputMode="decimal" value={value} onChange={(e) => { set(e.target.value) }} />
    default: return <input {...common} className="input" placeholder={choice.op === 'eq' || choice.op === 'ne' ? 'The whole value' : 'Value'} value={value} onChange={(e) => { set(e.target.value) }} />
  }
}

const formOf: Record<string, string> = { date: '2026-01-31', datetime: '2026-01-31T12:00:00Z', number: '42' }

/** Picks is the control for values that are chosen: one at a press, several by boxes. */
function Picks({ field, choice, values, onChange, source, onPick }: ControlProps & { source: Parameters<typeof useChoices>[0]; onPick: (values: readonly string[]) => void }): ReactNode {
  const [text, setText] = useState('')
  const { choices, failed } = useChoices(source, text)
  const many = takesList(choice.op)
  // What is chosen stays in sight, whatever is searched for.
  const hidden = many ? values.filter((v) => !choices.some((o) => o.value === v)) : []
  const target = referenceOf(field)
  const labelOf = useLabels(target ?? '', target ? hidden : [])
  const listed = [...hidden.map((value) => ({ value, label: labelOf(value) ?? value })), ...choices.slice(0, 40)]
  const toggle = (value: string) => { onChange(values.includes(value) ? values.filter((v) => v !== value) : [...values, value]) }
  return (
    <>
      <input className="input" aria-label={field.name} data-autofocus placeholder="Find" value={text} onChange={(e) => { setText(e.target.value) }}
        onKeyDown={(event) => {
          const first = choices[0]?.value
          if (event.key !== 'Enter' || text === '' || first === undefined) return
          event.preventDefault()
          if (many) toggle(first)
          else onPick([first])
        }} />
      {failed && <p className="help bad">{failed}</p>}
      <ul>
        {listed.map((o) => (
          <li key={o.value}>{many
            ? <label className="row"><input type="checkbox" className="check" checked={values.includes(o.value)} onChange={() => { toggle(o.value) }} /><span className="trunc">{o.label}</span></label>
            : <button type="button" className={values[0] === o.value ? 'on' : ''} aria-pressed={values[0] === o.value} onClick={() => { onPick([o.value]) }}>{o.label}</button>}</li>
        ))}
      </ul>
    </>
  )
}
