import { IconArrowBackUp, IconArrowForwardUp, IconPlayerPlay, IconTrash } from '@tabler/icons-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { ContextField, Declarations } from '../../app/build/declarations'
import { useChecked } from '../../app/build/checked'
import { useNames, type NodeType } from '../../app/build/names'
import { absent, problemsOf, useObject, useObjects, useSave, type AutomationValue, type EndpointValue, type FlowNode } from '../../app/build/objects'
import { Result, usWords, Waterfall } from '../../app/build/outcome'
import { keepSample, sampleFor, useTry, type Problem } from '../../app/build/run'
import { ObjectHistory } from '../../app/build/history'
import { LastRuns, useRun, useRuns } from '../../app/build/runs'
import { useSession } from '../../app/session'
import { paths } from '../../app/paths'
import { asError } from '../../api/error'
import { Button, IconButton } from '../../ui/button'
import { CodeEditor } from '../../ui/code-editor'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { useDraft } from '../../ui/drafts'
import { Tabs } from '../../ui/drawer'
import { Field, Segmented } from '../../ui/field'
import { parseJSON } from '../../ui/json'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { comboWords, useShortcut } from '../../ui/shortcuts'
import { Empty, ErrorState, Note, Waiting } from '../../ui/states'
import { timeWords } from '../../ui/time'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo, useParam, useUrlValue } from '../../ui/url'
import { Graph } from './graph'
import { useHistory } from './history'
import type { Slot } from './layout'
import { insertNode, moveNode, newNode, nodeAt, removeNode, setNode, walk } from './model'
import { NodeForm } from './node-form'
import { fromYaml, toYaml } from './yaml'
import '../../app/build/build.css'
import './automations.css'

const fresh: AutomationValue = { trigger: 'http.request', input_schema: [], outputs: [], execution_context: 'caller', nodes: [] }

/** One automation: its flow drawn, a form for the step that is chosen, a run on the graph, and the YAML beside it. */
export default function AutomationPage() {
  const name = useParam('name')
  const [isNew] = useUrlValue('new')
  const stored = useObject<AutomationValue>('automation', name)
  if (stored.error) return <Page title={name}><ErrorState what={`The automation ${name} could not be loaded.`} error={asError(stored.error)} onRetry={() => void stored.refetch()} /></Page>
  if (stored.data === undefined) return <Waiting />
  if (stored.data === null && !isNew) {
    return <Page title={name}><Empty title={`There is no automation ${name}`} action={<Link className="btn" to={`${paths.automations(name)}?new=1`}>Make it</Link>}>It was removed, or never saved.</Empty></Page>
  }
  return <Editor key={name} name={name} stored={stored.data ? { ...fresh, ...stored.data.value } : fresh} version={stored.data?.version ?? absent} />
}

function Editor({ name, stored, version }: { name: string; stored: AutomationValue; version: string }) {
  const session = useSession()
  const draft = useDraft<AutomationValue>(`automation/${name}`, stored, version)
  const value = draft.value
  const steps = useHistory(value, draft.set)
  const isNew = version === absent
  const save = useSave()
  const go = useGo()
  const [removing, setRemoving] = useState(false)
  const endpoints = useObjects<EndpointValue>('custom_endpoint')
  const uses = (endpoints.data ?? []).filter((e) => 'automation' in e.value.target && e.value.target.automation === name)
  const failed = useRuns({ kind: 'automation', target: name, status: 'failed', limit: 20 }, !isNew)
  const failures = failed.data?.rows.length ?? 0
  const checked = useChecked('automation', name, value)
  const problems = useMemo(() => problemsOf(save.error ?? undefined), [save.error])
  const errors = useMemo(() => Object.fromEntries([...problems.map((p) => [p.path, p.message]), ...checked.filter((p) => p.node === '').map((p) => [p.path, p.message])]) as Record<string, string>, [problems, checked])
  const changed = draft.dirty || isNew
  const store = (against: string) => { save.mutate([{ kind: 'automation', name, value, against }], { onSuccess: () => { draft.discard(); toast.show({ text: `${name} is saved` }) } }) }
  useShortcut('mod+s', 'Save', () => { if (changed && !save.isPending) store(draft.against) })
  useShortcut('mod+z', 'Undo', steps.undo)
  useShortcut('mod+y', 'Redo', steps.redo)
  const set = (patch: Partial<AutomationValue>) => { steps.change({ ...value, ...patch }, `members ${Object.keys(patch).join()}`) }
  const fail = save.error && save.error.status !== 409
  return (
    <Page title={name} flush count={isNew ? <span className="chip warn">not saved yet</span> : draft.dirty ? <span className="chip warn">unsaved changes</span> : undefined}
      acts={<>
        <IconButton label={`Undo ${comboWords('mod+z')}`} disabled={!steps.canUndo} onClick={steps.undo}><IconArrowBackUp size={16} stroke={1.7} aria-hidden /></IconButton>
        <IconButton label={`Redo ${comboWords('mod+y')}`} disabled={!steps.canRedo} onClick={steps.redo}><IconArrowForwardUp size={16} stroke={1.7} aria-hidden /></IconButton>
        {draft.dirty && <Button kind="quiet" onClick={draft.discard}>Discard</Button>}
        {!isNew && <Button kind="quiet" icon={<IconTrash size={16} stroke={1.7} aria-hidden />} onClick={() => { setRemoving(true) }}>Delete</Button>}
        <Button kind="main" disabled={!changed} busy={save.isPending} onClick={() => { store(draft.against) }}>Save<kbd className="on-a">{comboWords('mod+s')}</kbd></Button>
      </>}>
      <LeaveGuard dirty={draft.dirty} what={`The changes to ${name} are not saved. They stay in this browser until it is closed.`} leave="Leave" />
      {draft.restored && draft.dirty && <Note kind="warn" action={<Button small onClick={draft.discard}>Discard them</Button>}>These are changes of yours that were not saved.</Note>}
      {(save.error?.status === 409 || (draft.stale && !save.isPending)) && <ConflictView what={name} theirs={stored} yours={value} onMerge={() => { draft.rebase(version); save.reset() }} onTakeTheirs={() => { draft.discard(); save.reset() }} onSaveMine={() => { draft.rebase(version); store(version) }} busy={save.isPending} />}
      {fail && <div className="pad"><ActionError error={save.error ?? undefined} /></div>}
      <Tabs label={`Parts of ${name}`} name="tab" inner="tabfill" tabs={[
        { key: 'flow', label: 'Flow', n: checked.length > 0 ? (checked.length === 1 ? '1 problem' : `${checked.length} problems`) : undefined, bad: true, content: () => <FlowTab name={name} value={value} problems={checked} onChange={steps.change} /> },
        { key: 'yaml', label: 'YAML', content: () => <YamlTab value={value} problems={checked} onChange={steps.change} /> },
        { key: 'io', label: 'Inputs and outputs', n: `${value.input_schema?.length ?? 0}, ${value.outputs?.length ?? 0}`, bad: Object.keys(errors).some((p) => /^(input_schema|outputs|on_skip|execution)/.test(p)), content: () => (
          <div className="formpad">
            <Declarations label="Inputs" path="input_schema" hint="Steps read them as {{inputs.name}}. A call without a required one, or with another type, is refused before the flow runs." value={value.input_schema ?? []} onChange={(input_schema) => { set({ input_schema }) }} errors={errors} />
            <Declarations label="Outputs" path="outputs" hint="What the flow answers; output steps write them. One that no step wrote is null." value={value.outputs ?? []} onChange={(outputs) => { set({ outputs }) }} errors={errors} />
            <Field label="A step that cannot read what it needs" help={value.on_skip === 'fail' ? 'It ends the run with 422, and nothing is kept. A step may say otherwise.' : 'It is skipped, and the run says so. A step may say otherwise.'} error={errors['on_skip']}>
              {() => <Segmented label="A step that cannot read what it needs" value={value.on_skip ?? 'skip'} onChange={(next) => { set({ on_skip: next === 'skip' ? undefined : next }) }} options={[{ value: 'skip', label: 'Is skipped' }, { value: 'fail', label: 'Fails the run' }]} />}
            </Field>
            <ContextField value={value.execution_context ?? 'caller'} onChange={(execution_context) => { set({ execution_context }) }} error={errors['execution_context']} mayAll={session.owner || session.system.includes('all_entity_access')} mayOthers={session.owner} self={session.user.email} />
          </div>
        ) },
        { key: 'runs', label: 'Runs', n: failures > 0 ? `${failures}${failed.data?.meta.hasMore ? '+' : ''} failed` : undefined, bad: failures > 0, content: () => <div className="formpad"><LastRuns filter={{ kind: 'automation', target: name }} what="A run is kept for 30 days with its trace: open one here, or show it on the flow." /></div> },
        ...(isNew ? [] : [{ key: 'history', label: 'History', content: () => <div className="formpad"><ObjectHistory kind="automation" name={name} /></div> }]),
        { key: 'uses', label: 'Used by', n: uses.length, content: () => <div className="formpad">{uses.length === 0 ? <Empty title="Nothing calls it yet" action={<Link className="btn main1" to={`${paths.endpoints()}?new=1&automation=${name}`}>Publish it at an endpoint</Link>}>An endpoint runs it: for an app, a form or a webhook.</Empty> : <ul className="uses">{uses.map((u) => <li key={u.name}><Link to={paths.endpoints(u.name)}>endpoint {u.name}</Link></li>)}</ul>}</div> },
      ]} />
      {removing && <ConfirmDestroy title={`Delete ${name}`} typeName={uses.length > 0 ? name : undefined} action={`Delete ${name}`} busy={save.isPending} error={save.error ?? undefined} onClose={() => { setRemoving(false); save.reset() }}
        onConfirm={() => { save.mutate([{ kind: 'automation', name, value: null, against: version }], { onSuccess: (_, stayed) => { draft.discard(); if (stayed) go(paths.automations(), { replace: true }) } }) }}>
        {uses.length > 0 ? <>It is run by {uses.map((u) => u.name).join(', ')}: they must run something else first.</> : <>Nothing runs it. Its runs are kept for 30 days.</>}
      </ConfirmDestroy>}
    </Page>
  )
}

/** FlowTab is the graph with a form or the run beside it, and the trace under it. */
function FlowTab({ name, value, problems, onChange }: { name: string; value: AutomationValue; problems: readonly Problem[]; onChange: (next: AutomationValue, typing?: string) => void }) {
  const session = useSession()
  const names = useNames()
  const [at, setAt] = useUrlValue('step')
  const [shownRun, setShownRun] = useUrlValue('run')
  const [sample, setSample] = useState(() => sampleFor('automation', name, value.input_schema ?? []))
  const [as, setAs] = useState('')
  const run = useTry()
  const kept = useRun(shownRun)
  const runs = useRuns({ kind: 'automation', target: name, limit: 50 })
  const latest = useRef(value)
  useEffect(() => { latest.current = value })
  const input = parseJSON(sample)
  const node = at === undefined ? undefined : nodeAt(value, at)
  const select = useCallback((path: string) => { setAt(path === 'trigger' ? undefined : path) }, [setAt])
  const insert = useCallback((slot: Slot, type: NodeType) => {
    const [next, path] = insertNode(latest.current, slot.list, slot.index, newNode(latest.current, type, names.data))
    onChange(next)
    setAt(path)
  }, [onChange, setAt, names.data])
  const start = () => {
    if (!input.ok || run.isPending) return
    keepSample('automation', name, sample)
    setShownRun(undefined)
    run.mutate({ kind: 'automation', name, draft: value, input: input.value, as: as.trim() === '' ? null : as.trim(), event: null })
  }
  useShortcut('mod+Enter', 'Run with the sample input', start)
  const shown = shownRun ? kept.data : run.data?.status === 'invalid' ? undefined : run.data
  const trace = shown?.trace ?? undefined
  const byId = useMemo(() => { const found = new Map<string, string>(); walk(value, (n, path) => { found.set(n.id ?? path, path) }); return found }, [value])
  const step = node && trace ? trace.filter((s) => s.node === (node.id ?? at)).at(-1) : undefined
  const rows = runs.data?.rows ?? []
  const place = rows.findIndex((r) => r.id === shownRun)
  const types = names.data?.nodes ?? []
  return (
    <div className="fl">
      <div className="lft">
        {value.nodes.length === 0 && <p className="firsthint s12">The flow is empty: press + to add its first step. Declare what it takes under Inputs and outputs.</p>}
        {shownRun && kept.error && <Note action={<Button small onClick={() => { setShownRun(undefined) }}>Close</Button>}>{asError(kept.error).isMissing ? 'There is no such run: a run is kept for 30 days.' : asError(kept.error).message}</Note>}
        <Graph flow={value} types={types} selected={at ?? 'trigger'} problems={problems} trace={trace ?? (shown ? [] : undefined)} onSelect={select} onInsert={insert} />
        {(shown || rows.length > 0) && (
          <div className="tr" role="region" aria-label="The run that is shown">
            <header className="rh">
              <b className="med">Run</b>
              {shownRun && kept.data ? <><span className="mono">{timeWords(kept.data.startedAt, 'minute')}</span><span className={kept.data.status === 'failed' ? 'bad' : ''}>{kept.data.error?.code ?? kept.data.status}</span><span>{usWords(kept.data.tookUs)}</span>{kept.data.user && <span className="second">as {kept.data.user.email}</span>}</>
                : run.data && run.data.status !== 'invalid' ? <><span>with the sample input</span><span className={run.data.status === 'failed' ? 'bad' : ''}>{run.data.error?.code ?? run.data.status}</span><span>{usWords(run.data.tookUs)}, nothing was kept</span></> : <span className="muted">none is shown</span>}
              <span className="grow" />
              <Button small kind="quiet" disabled={rows.length === 0 || place === rows.length - 1} onClick={() => { setShownRun(rows[place + 1]?.id) }}>Older</Button>
              <Button small kind="quiet" disabled={place <= 0} onClick={() => { setShownRun(rows[place - 1]?.id) }}>Newer</Button>
            </header>
            {trace && trace.length > 0 && <div className="wfbox"><Waterfall trace={trace} total={shown?.tookUs ?? 0} selected={node ? node.id ?? at : undefined} onSelect={(n) => { setAt(byId.get(n)) }} /></div>}
            {shown && trace?.length === 0 && <p className="hintline muted">No step ran.</p>}
          </div>
        )}
      </div>
      {node && at !== undefined
        ? <NodeForm key={at} flow={value} path={at} node={node} type={types.find((t) => t.type === node.type)} names={names.data} problems={problems} step={step}
            onChange={(next: FlowNode) => { onChange(setNode(value, at, next), `step ${at}`) }}
            onRemove={() => { onChange(removeNode(value, at)); setAt(undefined) }}
            onMove={(by) => { const [next, path] = moveNode(value, at, by); onChange(next); setAt(path) }}
            onClose={() => { setAt(undefined) }} />
        : <div className="nf runside">
            <header className="rh">
              <b className="med">Sample input</b><span className="grow" />
              {session.owner && <><span className="muted">as</span><input className="input s" value={as} onChange={(e) => { setAs(e.target.value) }} placeholder={session.user.email} aria-label="Run as, an e-mail address" spellCheck={false} /></>}
              <Button small icon={<IconPlayerPlay size={14} stroke={1.7} aria-hidden />} busy={run.isPending} disabled={!input.ok} onClick={start}>Run<kbd>{comboWords('mod+Enter')}</kbd></Button>
            </header>
            <CodeEditor label="Sample input" language="json" value={sample} onChange={setSample} lines={false} wrap problems={input.ok ? undefined : [{ line: input.line, message: input.message }]} onSubmit={start} />
            {run.error && <div className="pad8"><ActionError error={run.error} /></div>}
            {run.data ? <Result outcome={run.data} onClear={run.reset} /> : !run.error && <p className="hintline muted">Run the flow as it is drawn: its trace stands on the graph then, and nothing of it is kept. Choose a step to edit it.</p>}
            {problems.length > 0 && <ul className="problems">{problems.slice(0, 8).map((p, i) => <li key={i}>{p.node ? <button type="button" className="linkish" onClick={() => { setAt(p.node) }}>{p.nodeId || p.node}</button> : <code>{p.path || 'flow'}</code>} {p.message}</li>)}</ul>}
          </div>}
    </div>
  )
}

/** YamlTab is the same flow as text. What cannot be read stays in the editor until it can. */
function YamlTab({ value, problems, onChange }: { value: AutomationValue; problems: readonly Problem[]; onChange: (next: AutomationValue, typing?: string) => void }) {
  const [typed, setTyped] = useState<{ text: string; of: AutomationValue }>()
  // What was typed stands as it is while it says the flow that is drawn; an edit of the flow writes it anew.
  const written = useMemo(() => toYaml(value), [value])
  const text = typed && (typed.of === value || JSON.stringify(typed.of) === JSON.stringify(value)) ? typed.text : written
  const read = useMemo(() => fromYaml(text), [text])
  const edit = (next: string) => {
    const found = fromYaml(next)
    setTyped({ text: next, of: found.ok ? found.value : value })
    if (found.ok && JSON.stringify(found.value) !== JSON.stringify(value)) onChange(found.value, 'yaml')
  }
  return (
    <div className="ed one">
      <div className="left">
        <CodeEditor label="The flow as YAML" language="yaml" value={text} onChange={edit} problems={read.ok ? undefined : [{ line: read.line, message: read.message }]} fill />
        <div className="strip">{!read.ok ? <span className="bad" role="status">Not read: line {read.line}, {read.message}. The flow stays as it was.</span> : problems.length > 0 ? <span className="bad" role="status">{problems.length === 1 ? '1 problem' : `${problems.length} problems`}: {problems[0]?.path}: {problems[0]?.message}</span> : <span className="muted" role="status">The same flow as in the manifest, without its name</span>}</div>
      </div>
    </div>
  )
}
