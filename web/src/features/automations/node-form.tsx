import { IconArrowDown, IconArrowUp, IconTrash, IconX } from '@tabler/icons-react'
import { useMemo, useRef, useState } from 'react'
import type { NodeMember, NodeType, Names } from '../../app/build/names'
import type { AutomationValue, FlowNode } from '../../app/build/objects'
import { stepWords, usWords } from '../../app/build/outcome'
import type { Problem, Step } from '../../app/build/run'
import { IconButton } from '../../ui/button'
import { JsonView } from '../../ui/code'
import { Field, Segmented, TextField } from '../../ui/field'
import { SelectField } from '../../ui/select'
import { reachAt, readValue, valueText } from './model'
import { Icon } from './node'
import { ReachContext, Suggestions, TemplateField } from './template-field'

export interface NodeFormProps {
  flow: AutomationValue
  path: string
  node: FlowNode
  type: NodeType | undefined
  names: Names | undefined
  problems: readonly Problem[]
  step: Step | undefined
  onChange: (node: FlowNode) => void
  onRemove: () => void
  onMove: (by: 1 | -1) => void
  onClose: () => void
}

/** NodeForm edits one node: a field for each member that its type has. */
export function NodeForm({ flow, path, node, type, names, problems, step, onChange, onRemove, onMove, onClose }: NodeFormProps) {
  const insert = useRef<((path: string) => void) | undefined>(undefined)
  const reach = useMemo(() => reachAt(flow, path, names), [flow, path, names])
  const mine = problems.filter((p) => p.node === path)
  const errorOf = (member: string) => mine.find((p) => p.path === `${path}.${member}` || p.path.startsWith(`${path}.${member}.`) || p.path.startsWith(`${path}.${member}[`))?.message
  const other = mine.filter((p) => p.path === path || !type?.members.some((m) => p.path === `${path}.${m.name}` || p.path.startsWith(`${path}.${m.name}.`) || p.path.startsWith(`${path}.${m.name}[`)) && !p.path.startsWith(`${path}.id`))
  const set = (member: string, value: unknown) => {
    onChange(value === undefined ? (Object.fromEntries(Object.entries(node).filter(([name]) => name !== member)) as FlowNode) : { ...node, [member]: value })
  }
  const members = type?.members.filter((m) => m.kind !== 'nodes') ?? []
  return (
    <ReachContext.Provider value={{ reach, insert }}>
      <section className="nf" aria-label={`Step ${node.id ?? path}`}>
        <header className="row">
          <span className="ic2"><Icon type={node.type} size={18} /></span>
          <div className="grow"><h2 className="med mono">{node.id ?? path}</h2><p className="s12 muted">{node.type}{type ? `: ${type.doc}` : ''}</p></div>
          <IconButton small label="Move up" onClick={() => { onMove(-1) }}><IconArrowUp size={16} stroke={1.7} aria-hidden /></IconButton>
          <IconButton small label="Move down" onClick={() => { onMove(1) }}><IconArrowDown size={16} stroke={1.7} aria-hidden /></IconButton>
          <IconButton small label="Delete the step" onClick={onRemove}><IconTrash size={16} stroke={1.7} aria-hidden /></IconButton>
          <IconButton small label="Close" onClick={onClose}><IconX size={16} stroke={1.7} aria-hidden /></IconButton>
        </header>
        {other.map((p) => <p key={p.path + p.message} className="help bad" role="alert">{p.message}</p>)}
        <TextField label="Name in the flow" mono value={node.id ?? ''} onChange={(id) => { set('id', id === '' ? undefined : id) }} error={errorOf('id')} help={type?.readable ? `Later steps read ${type.result ?? 'its result'} by it.` : undefined} spellCheck={false} />
        {members.map((m) => <Member key={m.name} member={m} node={node} names={names} flow={flow} error={errorOf(m.name)} onSet={(value) => { set(m.name, value) }} />)}
        {!type && <p className="help bad">This console does not know steps of the type {node.type}: edit it as YAML.</p>}
        <Suggestions />
        {step && <div className="top6">
          <header className="row s12"><b className="med">In this run</b><span className="muted">{usWords(step.took_us)}</span></header>
          {step.error || step.skipped ? <p className={step.error ? 'help bad' : 'help'}>{stepWords(step)}</p> : step.result !== undefined && <JsonView title="Result" value={step.result} max={220} />}
        </div>}
      </section>
    </ReachContext.Provider>
  )
}

interface MemberProps { member: NodeMember; node: FlowNode; names: Names | undefined; flow: AutomationValue; error: string | undefined; onSet: (value: unknown) => void }

const labels: Record<string, string> = { record_id: 'Record id', in: 'List', as: 'Name of the item', when: 'Condition', on_skip: 'If it cannot read what it needs' }
const labelOf = (name: string) => labels[name] ?? name.charAt(0).toUpperCase() + name.slice(1)

function Member({ member: m, node, names, flow, error, onSet }: MemberProps) {
  const value = node[m.name]
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  const label = labelOf(m.name)
  switch (m.kind) {
    case 'entity':
      return <SelectField label={label} error={error} value={text || null} options={(names?.entities ?? []).map((e) => ({ value: e.name, label: e.name }))} onChange={onSet} />
    case 'component':
      return <SelectField label={label} error={error} value={text || null} options={(names?.components ?? []).map((c) => ({ value: c.name, label: c.name }))} onChange={onSet} placeholder={names?.components.length === 0 ? 'There is none yet' : undefined} />
    case 'choice':
      return <Field label={label} help={m.doc} error={error}>{() => <Segmented label={label} value={text} onChange={(v) => { onSet(v === '' ? undefined : v) }} options={[...(m.default ? [{ value: '', label: m.default }] : []), ...(m.values ?? []).map((v) => ({ value: v, label: v }))]} />}</Field>
    case 'number':
      return <TextField label={label} type={m.low !== undefined ? `${m.low} to ${m.high ?? ''}` : undefined} help={m.doc} error={error} inputMode="numeric" placeholder={m.default} value={text} onChange={(t) => { onSet(t === '' ? undefined : /^\d+$/.test(t) ? Number(t) : t) }} />
    case 'name': case 'code': case 'field':
      return <TextField label={label} help={m.doc} error={error} mono placeholder={m.default} value={text} onChange={(t) => { onSet(t === '' ? undefined : t) }} spellCheck={false} />
    case 'template': case 'expression':
      return <Field label={label} help={m.doc} error={error} required={m.required}>{(ids) => <TemplateField ids={ids} label={label} expression={m.kind === 'expression'} value={text} wrong={!!error} onChange={(t) => { onSet(t === '' && !m.required ? undefined : t) }} placeholder={m.kind === 'expression' ? 'inputs.score > 50' : undefined} />}</Field>
    case 'nodes':
      return null
    default:
      return <Pairs member={m} node={node} names={names} flow={flow} error={error} onSet={onSet} />
  }
}

interface Known { name: string; type?: string | undefined; required?: boolean | undefined }

/** knownOf lists the names that an object member may have. */
function knownOf(m: NodeMember, node: FlowNode, names: Names | undefined, flow: AutomationValue): readonly Known[] {
  const fields = names?.entities.find((e) => e.name === node['entity'])?.fields ?? []
  switch (m.kind) {
    case 'fields': return fields
    case 'where': return fields.filter((f) => f.indexed)
    case 'inputs': return names?.components.find((c) => c.name === node['component'])?.inputs ?? []
    case 'outputs': return flow.outputs ?? []
    default: return []
  }
}

/** Pairs edits an object of names and values: fields, conditions, inputs, vars, outputs. */
function Pairs({ member: m, node, names, flow, error, onSet }: MemberProps) {
  const value = node[m.name]
  const [adding, setAdding] = useState('')
  if (typeof value === 'string' || Array.isArray(value)) {
    const list = Array.isArray(value) || m.kind === 'fields'
    return <Field label={labelOf(m.name)} help={list ? 'One template that is an object or a list of objects, or such a list as JSON.' : 'One template that is an object.'} error={error}>{(ids) => <TemplateField ids={ids} label={labelOf(m.name)} value={valueText(value)} onChange={(t) => { onSet(list ? readValue(t) : t) }} wrong={!!error} />}</Field>
  }
  const object = (value ?? {}) as Record<string, unknown>
  const known = knownOf(m, node, names, flow)
  const rest = known.filter((k) => !(k.name in object))
  const entries = Object.entries(object)
  const put = (name: string, next: unknown) => { onSet(Object.fromEntries(next === undefined ? entries.filter(([n]) => n !== name) : name in object ? entries.map(([n, v]) => [n, n === name ? next : v]) : [...entries, [name, next]])) }
  const free = ['values', 'outputs', 'returns', 'inputs'].includes(m.kind)
  const add = (name: string) => { if (name !== '' && !(name in object)) put(name, m.kind === 'returns' ? flow.outputs?.[0]?.name ?? '' : ''); setAdding('') }
  return (
    <div className="field">
      <div className="lab"><span>{labelOf(m.name)}</span><span className="type">{m.doc}{known.length > 0 ? `, ${entries.length} of ${known.length}` : ''}</span></div>
      {error && <p className="help bad">{error}</p>}
      <ul className="map">
        {entries.map(([name, v]) => {
          const of = known.find((k) => k.name === name)
          return (
            <li key={name}>
              <span className="trunc" title={name}><span className="mono">{name}</span>{of?.required && <i>required</i>}</span>
              {m.kind === 'returns'
                ? <select className="input" aria-label={`Output for ${name}`} value={String(v)} onChange={(e) => { put(name, e.target.value) }}>{[...new Set([String(v), ...(flow.outputs ?? []).map((o) => o.name)])].map((o) => <option key={o}>{o}</option>)}</select>
                : <TemplateField label={`${labelOf(m.name)}: ${name}`} value={of?.type === 'text' && typeof v === 'string' ? v : valueText(v)} onChange={(t) => { put(name, of?.type === 'text' ? t : readValue(t)) }} />}
              <IconButton small label={`Remove ${name}`} onClick={() => { put(name, undefined) }}><IconX size={14} stroke={1.7} aria-hidden /></IconButton>
            </li>
          )
        })}
      </ul>
      <div className="row top6">
        {rest.length > 0 && <select className="input addsel" aria-label={`Add to ${labelOf(m.name).toLowerCase()}`} value="" onChange={(e) => { add(e.target.value) }}><option value="">Add…</option>{rest.map((k) => <option key={k.name} value={k.name}>{k.name}{k.type ? ` (${k.type}${k.required ? ', required' : ''})` : ''}</option>)}</select>}
        {free && <><input className="input mono" aria-label={m.kind === 'returns' ? 'Path of the result' : 'Another name'} placeholder={m.kind === 'returns' ? 'path, like total' : 'another name'} value={adding} onChange={(e) => { setAdding(e.target.value) }} onKeyDown={(e) => { if (e.key === 'Enter') { e.preventDefault(); add(adding.trim()) } }} /><button type="button" className="btn s" disabled={adding.trim() === ''} onClick={() => { add(adding.trim()) }}>Add</button></>}
      </div>
    </div>
  )
}
