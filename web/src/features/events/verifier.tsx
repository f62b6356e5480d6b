import { useMutation, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { absent, useObjects, type ComponentValue } from '../../app/build/objects'
import { ConsoleLines } from '../../app/build/outcome'
import { paths } from '../../app/paths'
import { useSession } from '../../app/session'
import { ask, type Gives, type Takes } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { JsonView } from '../../ui/code'
import { CodeEditor } from '../../ui/code-editor'
import { ActionError } from '../../ui/confirm'
import { seedDraft } from '../../ui/drafts'
import { AreaField, Field, PasswordField, Segmented, TextField } from '../../ui/field'
import { KeyValues } from '../../ui/list'
import { Page } from '../../ui/page'
import { SelectField } from '../../ui/select'
import { useShortcut } from '../../ui/shortcuts'
import { Note } from '../../ui/states'
import { useGo, useUrl } from '../../ui/url'
import { Links } from './links'
import { headersOf, maySign, recipes, type Recipe } from './recipes'
import '../../app/build/build.css'
import './verifier.css'

type Verdict = Gives<'POST verifier/try'>
type With = 'recipe' | 'component' | 'endpoint'

/** The verifier test bench: paste a delivery, see whether a verifier lets it through, or why not. */
export default function VerifierBench() {
  const [url, setUrl] = useUrl()
  const text = (name: string) => (typeof url[name] === 'string' ? url[name] : undefined)
  const from: With = text('endpoint') ? 'endpoint' : text('verifier') ? 'component' : (text('with') as With | undefined) ?? 'recipe'
  const recipe = recipes.find((r) => r.key === text('recipe')) ?? recipes[0]
  const components = useObjects<ComponentValue>('logic_component')
  const endpoints = useQuery({ queryKey: ['endpoints'], queryFn: ({ signal }) => ask('GET endpoints', { signal }) })
  const signed = endpoints.data?.filter((e) => e.auth === 'signed') ?? []
  const [secret, setSecret] = useState('')
  const [previous, setPrevious] = useState('')
  const [headers, setHeaders] = useState('')
  const [body, setBody] = useState('')
  const [method, setMethod] = useState<'POST' | 'GET'>('POST')
  const [query, setQuery] = useState('')
  const { tenant } = useSession()
  const [signError, setSignError] = useState<string>()
  const go = useGo()
  const parsed = useMemo(() => headersOf(headers), [headers])
  const test = useMutation<Verdict, ApiError, Takes<'POST verifier/try'>>({ mutationFn: async (given) => { try { return await ask('POST verifier/try', { body: given }) } catch (thrown) { throw asError(thrown) } } })
  const chosen = from === 'endpoint' ? text('endpoint') : from === 'component' ? text('verifier') : recipe?.key
  const missing = !chosen ? (from === 'endpoint' ? 'Choose an endpoint' : 'Choose a component') : from !== 'endpoint' && secret === '' ? 'Give the webhook secret' : parsed.wrong > 0 ? `Line ${parsed.wrong} is no header` : undefined
  const run = () => {
    if (missing || !chosen) return
    const secrets = from === 'endpoint' ? [] : previous === '' ? [secret] : [secret, previous]
    test.mutate({ endpoint: from === 'endpoint' ? chosen : null, verifier: from === 'component' ? chosen : null, source: from === 'recipe' ? recipe?.source ?? '' : null, secrets, method, query, headers: parsed.headers, body, bodyBase64: null })
  }
  useShortcut('mod+Enter', 'Test the delivery', run)
  const sample = async (r: Recipe) => {
    setSignError(undefined)
    const key = secret === '' ? r.like : secret
    try {
      const made = await r.sign(key, r.body, `${tenant.baseUrl.replace(/\/+$/, '')}/public/v1/custom/test-bench`)
      setSecret(made.secret ?? key)
      setMethod('POST')
      setQuery('')
      setBody(made.body ?? r.body)
      setHeaders(made.headers.map(([name, value]) => `${name}: ${value}`).join('\n'))
      test.reset()
    } catch (thrown) { setSignError(thrown instanceof Error ? thrown.message : String(thrown)) }
  }
  const keep = (r: Recipe) => {
    const name = `${r.key === 'standard' ? 'standard_webhooks' : r.key}_verifier`
    seedDraft(`component/${name}`, { inputs: [], outputs: [], execution_context: 'caller', timeout_ms: 5000, source: r.source }, absent)
    go(`${paths.components(name)}?new=1`)
  }
  return (
    <Page title="Verifier test bench" hint="Paste a delivery of a provider and see whether its verifier lets it through, or why not. Nothing is kept and no target runs.">
      <Links at="verifier" />
      <div className="bench">
        <div>
          <section className="sec">
            <h2>Verifier</h2>
            <div className="row wrap"><Segmented label="Verifier of" value={from} onChange={(next) => { setUrl({ with: next === 'recipe' ? undefined : next, endpoint: undefined, verifier: undefined }); test.reset() }} options={[{ value: 'recipe', label: 'A recipe' }, { value: 'component', label: 'A component' }, { value: 'endpoint', label: 'An endpoint, its own secret' }]} /></div>
            {from === 'recipe' && recipe && <>
              <div className="row wrap recipes" role="group" aria-label="Recipes">{recipes.map((r) => <button type="button" key={r.key} className={`btn s ${r === recipe ? 'on' : ''}`} aria-pressed={r === recipe} onClick={() => { setUrl({ recipe: r.key }); test.reset() }}>{r.label}</button>)}</div>
              <div className="row wrap top6"><Button small onClick={() => void sample(recipe)} disabled={!maySign()}>Sign a sample delivery</Button><Button small kind="quiet" onClick={() => { keep(recipe) }}>Make a component of it</Button></div>
              {!maySign() && <p className="help">This browser signs only over TLS or on this machine.</p>}
              {signError && <p className="help bad" role="alert">{signError}</p>}
            </>}
            {from === 'component' && <SelectField label="Logic component" value={text('verifier') ?? null} options={(components.data ?? []).map((c) => ({ value: c.name, label: c.name }))} onChange={(v) => { setUrl({ verifier: v ?? undefined, with: 'component' }); test.reset() }} />}
            {from === 'endpoint' && <>
              <SelectField label="Endpoint" value={text('endpoint') ?? null} options={signed.map((e) => ({ value: e.slug, label: e.slug }))} onChange={(v) => { setUrl({ endpoint: v ?? undefined, with: 'endpoint' }); test.reset() }} placeholder={endpoints.data && signed.length === 0 ? 'No endpoint takes a provider’s signature' : undefined} />
              <Note>The stored secret is used and not shown. Of a rejection only words that stand in the verifier’s source are told.</Note>
            </>}
            {from !== 'endpoint' && <div className="two">
              <PasswordField label="Webhook secret" value={secret} onChange={setSecret} autoComplete="off" help={from === 'recipe' ? recipe?.secret : undefined} />
              <PasswordField label="Previous secret" value={previous} onChange={setPrevious} autoComplete="off" help="Where one is kept during a change" />
            </div>}
          </section>
          <section className="sec">
            <h2>Delivery</h2>
            <div className="two">
              <Field label="Method">{() => <Segmented label="Method" value={method} onChange={setMethod} options={[{ value: 'POST', label: 'POST' }, { value: 'GET', label: 'GET' }]} />}</Field>
              <TextField label="Query" type="as it was sent, without ?" value={query} onChange={setQuery} placeholder={method === 'GET' ? 'hub.mode=subscribe&hub.challenge=…' : ''} spellCheck={false} />
            </div>
            <AreaField label="Headers" type="one a line" mono rows={5} value={headers} onChange={setHeaders} error={parsed.wrong > 0 ? `Line ${parsed.wrong}: expected name: value` : undefined} placeholder="Stripe-Signature: t=1750000000,v1=…" spellCheck={false} />
            <div className="field"><div className="lab"><span>Body</span><span className="type">each byte counts</span></div><div className="pane bodybox"><CodeEditor label="Body of the delivery" language="text" value={body} onChange={setBody} lines={false} wrap onSubmit={run} /></div></div>
            <div className="row"><Button kind="main" busy={test.isPending} disabled={missing !== undefined} onClick={run}>Test the delivery</Button>{missing && <span className="muted s12">{missing}</span>}</div>
            <ActionError error={test.error ?? undefined} />
          </section>
        </div>
        <div role="region" aria-label="Verdict" aria-live="polite">{test.data ? <VerdictView verdict={test.data} /> : <div className="verdict"><Arch state="none" size={20} /><div><b>Not tested yet</b><p>The verdict stands here, with what the target would get.</p></div></div>}</div>
      </div>
    </Page>
  )
}

const words: Record<string, string> = {
  rejected: 'The verifier rejects it', result: 'The verifier returned something else than a verdict', limits: 'The verifier was stopped at a limit: a provider would be told to try again', source: 'The source does not compile',
}

function VerdictView({ verdict: v }: { verdict: Verdict }) {
  if (v.outcome === 'reply') return <ReplyView verdict={v} />
  return (
    <>
      <div className={`verdict ${v.accepted ? 'yes' : 'no'}`} data-testid="verdict" data-accepted={v.accepted}>
        <Arch state={v.accepted ? 'open' : 'shut'} size={20} />
        <div><b>{v.accepted ? 'It passes' : words[v.outcome] ?? v.outcome}</b><p>{v.reason}{v.line > 0 && <span className="muted"> {v.line}:{v.column}</span>}{!v.accepted && v.outcome === 'rejected' && <span className="muted"> A provider is answered 401.</span>}</p></div>
      </div>
      {v.accepted && <div className="top6">
        <KeyValues label="What the verifier returned" items={[{ name: 'Provider’s id', value: <span className="mono">{v.providerEventId}</span> }, { name: 'Kind', value: v.eventKind === '' ? <span className="muted">none</span> : v.eventKind }]} />
        {v.canonicalEvent !== null && <div className="top6"><JsonView title="The target’s inputs" value={v.canonicalEvent} /></div>}
      </div>}
      {v.console.length > 0 && <section className="sec top6"><h2>Console</h2><div className="pane"><ConsoleLines lines={v.console} /></div></section>}
      {!v.accepted && <WhatToCheck />}
    </>
  )
}

/** What a verifier answers to a challenge. */
function ReplyView({ verdict: v }: { verdict: Verdict }) {
  return (
    <>
      <div className="verdict yes" data-testid="verdict" data-accepted={false}><Arch state="open" size={20} /><div><b>It answers a challenge</b><p>{v.reason || 'Nothing runs, and there is no event.'}</p></div></div>
      {v.reply && <div className="top6"><KeyValues label="The answer" items={[{ name: 'Status', value: v.reply.status }, { name: 'Content type', value: <span className="mono">{v.reply.contentType}</span> }, { name: 'Body', value: v.reply.body === '' ? <span className="muted">{v.reason === '' ? 'none' : 'not shown'}</span> : <span className="mono">{v.reply.body}</span> }]} /></div>}
      {v.console.length > 0 && <section className="sec top6"><h2>Console</h2><div className="pane"><ConsoleLines lines={v.console} /></div></section>}
    </>
  )
}

/** What to look at when a right delivery is rejected. */
function WhatToCheck() {
  return <ul className="hints second s12"><li>The body must be the bytes that were sent: a space or a line break more changes the signature.</li><li>Most providers sign a time: a delivery older than 5 minutes is refused.</li><li>Is it the secret of this webhook, and of this mode (test or live)?</li></ul>
}
