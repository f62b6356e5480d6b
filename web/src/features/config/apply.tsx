import './config.css'
import { IconUpload } from '@tabler/icons-react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useRef, useState } from 'react'
import { ask } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { problemsOf, type Applied, type Plan } from '../../app/objects'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { CheckField, PasswordField } from '../../ui/field'
import { Gates } from '../../ui/gates'
import { Link } from '../../ui/link'
import { Section } from '../../ui/list'
import { Page } from '../../ui/page'
import { Op, PlanView } from '../../ui/plan'
import { Empty, Note, Waiting } from '../../ui/states'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo } from '../../ui/url'
import { looks, planGroups } from './plan-items'
import { useWork, WorkNote } from './work'

const CodeEditor = lazy(async () => ({ default: (await import('../../ui/code-editor')).CodeEditor }))

/** The variables that a manifest names: each stands alone as a value. */
export function variablesIn(text: string): string[] {
  return [...new Set([...text.matchAll(/(?:^|[\s:[{,-])(?:"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"|'\$\{([A-Za-z_][A-Za-z0-9_]*)\}'|\$\{([A-Za-z_][A-Za-z0-9_]*)\})(?=[\s,\]}]|$)/gm)].flatMap((m) => [m[1] ?? m[2] ?? m[3] ?? ''].filter(Boolean)))]
}

/** Apply takes a manifest, shows what it would change, and applies that: these changes, or none. */
export default function Apply() {
  const [text, setText] = useState('')
  const [file, setFile] = useState('')
  const [prune, setPrune] = useState(false)
  const [variables, setVariables] = useState<Record<string, string>>({})
  const input = useRef<HTMLInputElement>(null)
  const client = useQueryClient()
  const go = useGo()
  const work = useWork()
  const named = variablesIn(text)
  const body = { manifest: text, prune, variables: Object.fromEntries(named.flatMap((name) => (variables[name] ? [[name, variables[name]]] : []))) }
  const plan = useMutation<Plan, ApiError>({ mutationFn: async () => { try { return await ask('POST config/plan', { body }) } catch (thrown) { throw asError(thrown) } } })
  const apply = useMutation<Applied, ApiError, Plan>({
    mutationFn: async (shown) => {
      const expected = shown.changes.map((c) => ({ kind: c.kind, object: c.object, version: c.version }))
      try { return await ask('POST config/apply', { body: { ...body, expected } }) } catch (thrown) { throw asError(thrown) }
    },
    onSuccess: async (applied) => {
      setText('')
      toast.show({ text: applied.work ? 'Records are looked at; the changes take effect together when that ends' : `${applied.changes.length} changes applied` })
      await client.invalidateQueries()
      go(paths.configuration())
    },
  })
  const forget = () => { plan.reset(); apply.reset() }
  const choose = (chosen: File | undefined) => {
    if (!chosen) return
    setFile(chosen.name)
    void chosen.text().then((read) => { setText(read); forget() })
  }
  const shown = plan.data
  const problems = problemsOf(plan.error ?? undefined)
  const conflict = apply.error?.status === 409
  const chooser = <>
    <input ref={input} type="file" accept=".yaml,.yml,text/yaml,application/yaml" className="hidden-words" tabIndex={-1} aria-label="Manifest file" onChange={(event) => { choose(event.target.files?.[0]); event.target.value = '' }} />
    <Button icon={<IconUpload size={16} stroke={1.7} aria-hidden />} onClick={() => { input.current?.click() }}>{file ? 'Choose another file' : 'Choose a file'}</Button>
  </>
  const guard = <LeaveGuard dirty={text !== '' && !apply.isSuccess} what="The manifest on this page isn’t applied." onDiscard={() => { setText('') }} />

  if (!shown) {
    return (
      <Page title="Apply a manifest" hint="What it would change is shown before anything is. What the manifest leaves out as a whole stays as it is." acts={chooser}>
        <WorkNote work={work.data} />
        {problems.length > 0 && <Note kind="bad"><b>{problems.length === 1 ? 'One thing is wrong' : `${problems.length} things are wrong`}; nothing was changed.</b><ul>{problems.map((p, i) => <li key={i}>{p.line > 0 && <span className="mono">line {p.line}: </span>}{p.message}</li>)}</ul></Note>}
        {plan.error && problems.length === 0 && <ActionError error={plan.error} />}
        <div className="cfg-editor"><Suspense fallback={<Waiting />}><CodeEditor label="Manifest" language="yaml" fill value={text} onChange={(next) => { setText(next); plan.reset() }} problems={problems.filter((p) => p.line > 0).map((p) => ({ line: p.line, message: p.message }))} onSubmit={() => { if (text) plan.mutate() }} /></Suspense></div>
        {named.length > 0 && <div className="cfg-form top6">{named.map((name) => <PasswordField key={name} label={`\${${name}}`} help="Its value; it is sent with the manifest and kept nowhere here" autoComplete="off" value={variables[name] ?? ''} onChange={(value) => { setVariables({ ...variables, [name]: value }) }} />)}</div>}
        <div className="top6"><CheckField label={<>Also remove what a section doesn’t name <code>--prune</code></>} help="Users are deactivated, never deleted" checked={prune} onChange={setPrune} /></div>
        <Button kind="main" busy={plan.isPending} disabled={text.trim() === ''} onClick={() => { plan.mutate() }}>Show what it changes</Button>
        {guard}
      </Page>
    )
  }
  const n = shown.changes.length
  const weights = looks(shown)
  const by = (action: string) => shown.changes.filter((c) => c.action === action).length
  return (
    <Page title={n === 0 ? 'Nothing would change' : n === 1 ? '1 change, before it is applied' : `${n} changes, before they are applied`} hint={<>{file || 'The manifest'}, {text.split('\n').length} lines. All or nothing, in one transaction.</>}>
      {n === 0
        ? <Empty title="The tenant is so already" action={<Button onClick={forget}>Back to the manifest</Button>} arch="open" />
        : (
          <div className="cfg-cols">
            <PlanView groups={planGroups(shown)} />
            <div>
              <Section title="Summary">
                <div className="cfg-count"><Op op="add" /><span className="second">Added</span><b>{by('create')}</b></div>
                <div className="cfg-count"><Op op="change" /><span className="second">Changed</span><b>{by('update')}</b></div>
                <div className="cfg-count"><Op op="remove" /><span className="second">Removed</span><b>{by('delete')}</b></div>
              </Section>
              <Section title="Before you apply">
                <Gates gates={[
                  { state: 'open', name: 'The manifest is sound', why: 'Every name leads somewhere' },
                  conflict ? { state: 'shut', name: 'Somebody changed it meanwhile', why: apply.error?.message } : { state: 'open', name: 'Nobody changed it meanwhile', why: 'Checked again when it is applied' },
                  { state: 'open', name: 'You may do all of it' },
                  ...(weights.length > 0 ? [{ state: 'hold' as const, name: weights.length === 1 ? '1 thing to look at' : `${weights.length} things to look at` }] : []),
                ]} />
              </Section>
              {weights.length > 0 && <ul className="cfg-list">{weights.map((line, i) => <li key={i} className="warn s12">{line}</li>)}</ul>}
            </div>
          </div>
        )}
      {conflict && <Note kind="warn" action={<Button small busy={plan.isPending} onClick={() => { apply.reset(); plan.mutate() }}>Show it again</Button>}><b>{apply.error?.message}.</b> Nothing was changed. See what it would change now.</Note>}
      {!conflict && <ActionError error={apply.error ?? undefined} />}
      {n > 0 && (
        <div className="savebar" role="region" aria-label="Apply">
          <span className="grow trunc">Nothing is changed yet. <span className="muted">Afterwards it is in the <Link to={paths.history()}>change history</Link>.</span></span>
          <Button onClick={forget}>Back to the manifest</Button>
          <Button kind="main" busy={apply.isPending} disabled={conflict} onClick={() => { apply.mutate(shown) }}>{n === 1 ? 'Apply 1 change' : `Apply ${n} changes`}</Button>
        </div>
      )}
      {guard}
    </Page>
  )
}
