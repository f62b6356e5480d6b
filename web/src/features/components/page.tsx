import { IconGitBranch, IconPlayerPlay, IconTrash } from '@tabler/icons-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Declarations, ContextField } from '../../app/build/declarations'
import { useNames } from '../../app/build/names'
import { absent, problemsOf, useObject, useObjects, useSave, type AutomationValue, type ComponentValue, type EndpointValue } from '../../app/build/objects'
import { Result } from '../../app/build/outcome'
import { keepSample, sampleFor, useTry } from '../../app/build/run'
import { ObjectHistory } from '../../app/build/history'
import { LastRuns, useRuns } from '../../app/build/runs'
import { useSession } from '../../app/session'
import { usesOf } from '../../app/build/uses'
import { paths } from '../../app/paths'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { CodeEditor, type CodeProblem } from '../../ui/code-editor'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { CodeDiff } from '../../ui/diff'
import { Dialog } from '../../ui/dialog'
import { useDraft } from '../../ui/drafts'
import { Tabs } from '../../ui/drawer'
import { TextField } from '../../ui/field'
import { parseJSON } from '../../ui/json'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { comboWords, useShortcut } from '../../ui/shortcuts'
import { Empty, ErrorState, Note, Waiting } from '../../ui/states'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo, useParam, useUrlValue } from '../../ui/url'
import { completionFor } from './complete'
import { Settings, type TypedSecrets } from './settings'
import { useChecked } from '../../app/build/checked'
import '../../app/build/build.css'

const fresh: ComponentValue = {
  inputs: [], outputs: [], execution_context: 'caller', timeout_ms: 5000,
  source: 'export default function handler(inputs, ctx) {\n  return {hello: ctx.user.email}\n}\n',
}

/** One logic component: its code with a run beside it, what it takes and returns, its runs and users. */
export default function ComponentPage() {
  const name = useParam('name')
  const [isNew] = useUrlValue('new')
  const stored = useObject<ComponentValue>('logic_component', name)
  if (stored.error) return <Page title={name}><ErrorState what={`The component ${name} could not be loaded.`} error={asError(stored.error)} onRetry={() => void stored.refetch()} /></Page>
  if (stored.data === undefined) return <Waiting />
  if (stored.data === null && !isNew) {
    return <Page title={name}><Empty title={`There is no component ${name}`} action={<Link className="btn" to={`${paths.components(name)}?new=1`}>Make it</Link>}>It was removed, or never saved.</Empty></Page>
  }
  return <Editor key={name} name={name} stored={stored.data ? { ...fresh, ...stored.data.value } : fresh} version={stored.data?.version ?? absent} />
}

function Editor({ name, stored, version }: { name: string; stored: ComponentValue; version: string }) {
  const session = useSession()
  const draft = useDraft<ComponentValue>(`component/${name}`, stored, version)
  const value = draft.value
  const isNew = version === absent
  const save = useSave()
  const [url, setUrl] = useUrlValue('show')
  const [removing, setRemoving] = useState(false)
  // Secrets are in no draft: they are lost with the page.
  const [typed, setTyped] = useState<TypedSecrets>({})
  const go = useGo()
  const problems = useMemo(() => problemsOf(save.error ?? undefined), [save.error])
  const errors = useMemo(() => Object.fromEntries(problems.map((p) => [p.path, p.message])), [problems])
  const failed = useRuns({ kind: 'component', target: name, status: 'failed', limit: 20 }, !isNew)
  const uses = useUses(name)
  const written = Object.fromEntries(Object.entries(typed).filter(([, text]) => text !== ''))
  const rewritten = Object.keys(written).length > 0
  const dirty = draft.dirty || rewritten
  const changed = dirty || isNew
  const discard = () => { draft.discard(); setTyped({}) }
  const store = (against: string) => {
    save.mutate([{ kind: 'logic_component', name, value: value.secrets ? { ...value, secrets: { ...value.secrets, ...written } } : value, against }], { onSuccess: () => { discard(); save.reset(); toast.show({ text: `${name} is saved` }) } })
  }
  useShortcut('mod+s', 'Save', () => { if (changed && !save.isPending) store(draft.against) })
  const conflict = save.error?.status === 409 || (draft.stale && !save.isPending)
  const set = (patch: Partial<ComponentValue>) => { draft.set((was) => ({ ...was, ...patch })) }
  const failures = failed.data?.rows.length ?? 0
  return (
    <Page title={name} flush count={isNew ? <span className="chip warn">not saved yet</span> : dirty ? <span className="chip warn">unsaved changes</span> : undefined}
      acts={<>
        {dirty && <Button kind="quiet" onClick={discard}>Discard</Button>}
        {draft.dirty && !isNew && <Button icon={<IconGitBranch size={16} stroke={1.7} aria-hidden />} onClick={() => { setUrl('changes') }}>What changed</Button>}
        {!isNew && <Button kind="quiet" icon={<IconTrash size={16} stroke={1.7} aria-hidden />} onClick={() => { setRemoving(true) }}>Delete</Button>}
        <Button kind="main" disabled={!changed} busy={save.isPending} onClick={() => { store(draft.against) }}>Save<kbd className="on-a">{comboWords('mod+s')}</kbd></Button>
      </>}>
      <LeaveGuard dirty={dirty} what={`The changes to ${name} are not saved. They stay in this browser until it is closed${rewritten ? ', but for the secrets, which are lost' : ''}.`} leave="Leave" />
      {draft.restored && draft.dirty && <Note kind="warn" action={<Button small onClick={discard}>Discard them</Button>}>These are changes of yours that were not saved.</Note>}
      {conflict && <ConflictView what={name} theirs={stored} yours={value} onMerge={() => { draft.rebase(version); save.reset() }} onTakeTheirs={() => { discard(); save.reset() }} onSaveMine={() => { draft.rebase(version); store(version) }} busy={save.isPending} />}
      {save.error && save.error.status !== 409 && <div className="pad"><ActionError error={save.error} /></div>}
      <Tabs label={`Parts of ${name}`} name="tab" inner="tabfill" tabs={[
        { key: 'code', label: 'Code', content: () => <Code name={name} value={value} onSource={(source) => { set({ source }) }} saveProblems={problems} isNew={isNew} /> },
        { key: 'io', label: 'Inputs and outputs', n: `${value.inputs?.length ?? 0}, ${value.outputs?.length ?? 0}`, bad: Object.keys(errors).some((p) => /^(inputs|outputs|execution|timeout)/.test(p)), content: () => (
          <div className="formpad">
            <Declarations label="Inputs" path="inputs" hint="A call without a required input, or with another type, is refused before the component runs. Members that are not declared reach it unchanged." value={value.inputs ?? []} onChange={(inputs) => { set({ inputs }) }} errors={errors} />
            <Declarations label="Outputs" path="outputs" hint="For those who call it; what it returns is not checked against them." value={value.outputs ?? []} onChange={(outputs) => { set({ outputs }) }} errors={errors} />
            <ContextField value={value.execution_context ?? 'caller'} onChange={(execution_context) => { set({ execution_context }) }} error={errors['execution_context']} mayAll={session.owner || session.system.includes('all_entity_access')} mayOthers={session.owner} self={session.user.email} />
            <TextField label="Time limit" type="ms, 1 to 30,000" inputMode="numeric" value={String(value.timeout_ms ?? 5000)} onChange={(text) => { set({ timeout_ms: Number(text.replace(/\D/g, '')) || 0 }) }} error={errors['timeout_ms']} help="The wait for its commit is part of it." />
          </div>
        ) },
        { key: 'settings', label: 'Config and secrets', bad: Object.keys(errors).some((p) => /^(config|secrets)/.test(p)), content: () => <Settings key={draft.against} value={value} typed={typed} onChange={set} onTyped={setTyped} errors={errors} /> },
        { key: 'runs', label: 'Runs', n: failures > 0 ? `${failures}${failed.data?.meta.hasMore ? '+' : ''} failed` : undefined, bad: failures > 0, content: () => <div className="formpad"><LastRuns filter={{ kind: 'component', target: name }} what="A run is kept for 30 days: who it ran as, what it printed, and what went wrong." /></div> },
        ...(isNew ? [] : [{ key: 'history', label: 'History', content: () => <div className="formpad"><ObjectHistory kind="logic_component" name={name} /></div> }]),
        { key: 'uses', label: 'Used by', n: uses.length, content: () => <div className="formpad">{uses.length === 0 ? <Empty title="Nothing calls it yet" action={<Link className="btn main1" to={`${paths.endpoints()}?new=1&component=${name}`}>Publish it at an endpoint</Link>}>An endpoint, a step of an automation or a webhook’s verifier can.</Empty> : <ul className="uses">{uses.map((u) => <li key={u.label}><Link to={u.to}>{u.label}</Link></li>)}</ul>}</div> },
      ]} />
      {url === 'changes' && <Dialog open width={820} title={`What changed in ${name}`} onClose={() => { setUrl(undefined) }}>
        <CodeDiff before={stored.source} after={value.source} />
        <div className="dialogacts"><Button small onClick={() => { setUrl(undefined) }}>Close</Button></div>
      </Dialog>}
      {removing && <ConfirmDestroy title={`Delete ${name}`} typeName={uses.length > 0 ? name : undefined} action={`Delete ${name}`} busy={save.isPending} error={save.error ?? undefined} onClose={() => { setRemoving(false); save.reset() }}
        onConfirm={() => { save.mutate([{ kind: 'logic_component', name, value: null, against: version }], { onSuccess: (_, stayed) => { draft.discard(); if (stayed) go(paths.components(), { replace: true }) } }) }}>
        {uses.length > 0 ? <>It is used by {uses.map((u) => u.label).join(', ')}: they must stop using it first.</> : <>Nothing uses it. Its runs are kept for 30 days.</>}
      </ConfirmDestroy>}
    </Page>
  )
}

function useUses(name: string) {
  const automations = useObjects<AutomationValue>('automation')
  const endpoints = useObjects<EndpointValue>('custom_endpoint')
  return useMemo(() => usesOf(automations.data ?? [], endpoints.data ?? []).get(name) ?? [], [automations.data, endpoints.data, name])
}

/** Code is the editor with the run beside it. */
function Code({ name, value, onSource, saveProblems, isNew }: { name: string; value: ComponentValue; onSource: (source: string) => void; saveProblems: readonly { path: string; line: number; message: string }[]; isNew: boolean }) {
  const session = useSession()
  const names = useNames()
  const [sample, setSample] = useState(() => sampleFor('component', name, value.inputs ?? []))
  const [as, setAs] = useState('')
  const run = useTry()
  const { reset } = run
  const input = parseJSON(sample)
  const checked = useChecked('component', name, value)
  const own = { inputs: value.inputs ?? [], config: Object.keys(value.config ?? {}), secrets: Object.keys(value.secrets ?? {}) }
  const latest = useRef({ names: names.data, own })
  useEffect(() => { latest.current = { names: names.data, own } })
  const complete = useMemo(() => completionFor(() => latest.current.names, () => latest.current.own), [])
  const go = () => {
    if (!input.ok || run.isPending) return
    keepSample('component', name, sample)
    run.mutate({ kind: 'component', name, draft: value, input: input.value, as: as.trim() === '' ? null : as.trim(), event: null })
  }
  useShortcut('mod+Enter', 'Run with the sample input', go)
  const source = value.source
  // A failure is at a place of the source that ran: it goes when the source changes.
  useEffect(() => { reset() }, [source, reset])
  const error = run.data?.error
  const marks: CodeProblem[] = useMemo(() => {
    if (error && error.line > 0 && error.component === name) return [{ line: error.line, column: error.column, message: error.message, note: 'in this run' }]
    const all = [...(run.data?.problems ?? []), ...checked]
    const found = all.filter((p) => p.path === 'source' && p.line > 0).map((p) => ({ line: p.line, column: p.column, message: p.message }))
    return found.length > 0 ? found.slice(0, 1) : saveProblems.filter((p) => p.path === 'source' && p.line > 0).map((p) => ({ line: p.line, message: p.message }))
  }, [error, run.data, checked, saveProblems, name])
  const outside = [...checked].filter((p) => p.path !== 'source')
  const runsAs = typeof value.execution_context === 'object' ? value.execution_context.specific_user : value.execution_context === 'system' ? 'the system' : 'the caller'
  return (
    <div className="ed">
      <div className="left">
        <CodeEditor label={`Source of ${name}`} language="javascript" value={source} onChange={onSource} problems={marks} complete={complete} fill onSubmit={go} />
        <div className="strip">
          {marks.length + outside.length > 0 ? <span className="bad" role="status">{marks.length + outside.length === 1 ? '1 error' : `${marks.length + outside.length} errors`}{outside[0] ? `: ${outside[0].path}: ${outside[0].message}` : ''}</span> : <span className="muted" role="status">{isNew ? 'Not saved yet' : 'No mistakes found'}</span>}
          <span className="muted">ES2023, no network, no files</span><span className="grow" /><span className="muted">runs as {runsAs}, at most {(value.timeout_ms ?? 5000) / 1000} s</span>
        </div>
      </div>
      <div className="right">
        <header className="rh">
          <b className="med">Sample input</b><span className="grow" />
          {session.owner && <><label className="muted" htmlFor="run-as">as</label><input id="run-as" className="input s" value={as} onChange={(e) => { setAs(e.target.value) }} placeholder={session.user.email} aria-label="Run as, an e-mail address" spellCheck={false} /></>}
          <Button small icon={<IconPlayerPlay size={14} stroke={1.7} aria-hidden />} busy={run.isPending} disabled={!input.ok} onClick={go}>Run<kbd>{comboWords('mod+Enter')}</kbd></Button>
        </header>
        <CodeEditor label="Sample input" language="json" value={sample} onChange={setSample} lines={false} wrap problems={input.ok ? undefined : [{ line: input.line, message: input.message }]} onSubmit={go} />
        {run.error && <div className="pad8"><ActionError error={run.error} /></div>}
        {run.data && <Result outcome={run.data} onClear={run.reset} />}
        {!run.data && !run.error && <p className="hintline muted">Run it with this input: nothing of it is kept, and it takes as long as a caller would wait.</p>}
      </div>
    </div>
  )
}
