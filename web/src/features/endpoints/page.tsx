import { IconEdit, IconTrash } from '@tabler/icons-react'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { absent, useObject, useSave, type EndpointValue } from '../../app/build/objects'
import { usWords } from '../../app/build/outcome'
import { sampleOf } from '../../app/build/run'
import { ObjectHistory } from '../../app/build/history'
import { LastRuns, RunStatus, useRuns } from '../../app/build/runs'
import { paths } from '../../app/paths'
import { ask, askPage, type Gives } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { CodeBlock } from '../../ui/code'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { CopyButton } from '../../ui/copy'
import { Tabs } from '../../ui/drawer'
import { KeyValues, Section, Stats } from '../../ui/list'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { SecretOnce } from '../../ui/secret'
import { Empty, ErrorState, Note, Waiting } from '../../ui/states'
import { bytesWords, countWords, Time } from '../../ui/time'
import { UseIt } from '../../ui/useit'
import { useGo, useParam, useUrlValue } from '../../ui/url'
import { Hours } from './hours'
import { EndpointForm } from './form'
import { modes } from './modes'
import { signedSample } from './sample'
import '../../app/build/build.css'
import './endpoints.css'

type Facts = Gives<'GET endpoints/{slug}'>

/** One endpoint: what it does, who may call it, and what came of it. */
export default function EndpointPage() {
  const slug = useParam('slug')
  const [isNew] = useUrlValue('new')
  const [edit, setEdit] = useUrlValue('edit')
  const [component] = useUrlValue('component')
  const [automation] = useUrlValue('automation')
  const stored = useObject<EndpointValue>('custom_endpoint', slug)
  const go = useGo()
  if (stored.error) return <Page title={slug}><ErrorState what={`The endpoint ${slug} could not be loaded.`} error={asError(stored.error)} onRetry={() => void stored.refetch()} /></Page>
  if (stored.data === undefined) return <Waiting />
  if (stored.data === null && !isNew) {
    return <Page title={slug}><Empty title={`There is no endpoint ${slug}`} action={<Link className="btn" to={`${paths.endpoints(slug)}?new=1`}>Make it</Link>}>It was removed, or never saved.</Empty></Page>
  }
  if (stored.data === null || edit) {
    const first: EndpointValue = { target: automation ? { automation } : { component: component ?? '' } }
    return <EndpointForm key={slug} slug={slug} stored={stored.data?.value ?? first} version={stored.data?.version ?? absent}
      onDone={() => { if (stored.data) setEdit(undefined); else go(paths.endpoints(slug), { replace: true }) }} onCancel={() => { if (stored.data) setEdit(undefined); else go(paths.endpoints()) }} />
  }
  return <View slug={slug} value={stored.data.value} version={stored.data.version} onEdit={() => { setEdit('1') }} />
}

function View({ slug, value, version, onEdit }: { slug: string; value: EndpointValue; version: string; onEdit: () => void }) {
  const facts = useQuery({ queryKey: ['endpoints', slug], queryFn: ({ signal }) => ask('GET endpoints/{slug}', { params: { slug }, signal }), refetchInterval: 10_000 })
  const save = useSave()
  const go = useGo()
  const [removing, setRemoving] = useState(false)
  const failed = useRuns({ endpoint: slug, status: 'failed', limit: 20 })
  const f = facts.data
  const auth = value.auth ?? 'api_key'
  const webhook = auth !== 'api_key'
  const failures = failed.data?.rows.length ?? 0
  return (
    <Page title={slug} acts={<>
      <Button icon={<IconEdit size={16} stroke={1.7} aria-hidden />} onClick={onEdit}>Edit</Button>
      <Button kind="quiet" icon={<IconTrash size={16} stroke={1.7} aria-hidden />} onClick={() => { setRemoving(true) }}>Delete</Button>
    </>} hint={f && <span className="row"><span className="mono">POST {f.url}</span><CopyButton text={f.url} label="Copy the address" /></span>}>
      {facts.error && <ErrorState what="The facts of the endpoint could not be loaded." error={asError(facts.error)} onRetry={() => void facts.refetch()} />}
      {f && <>
        <Tabs label={`Parts of ${slug}`} tabs={[
          { key: 'overview', label: 'Overview', content: () => <Overview slug={slug} f={f} value={value} /> },
          ...(webhook ? [{ key: 'events', label: 'Events', content: () => <LastEvents slug={slug} /> }] : []),
          { key: 'errors', label: 'Errors', n: failures > 0 ? `${failures}${failed.data?.meta.hasMore ? '+' : ''}` : undefined, bad: failures > 0, content: () => <LastRuns filter={{ endpoint: slug, status: 'failed' }} what="No run of this endpoint has failed in the last 30 days." /> },
          { key: 'runs', label: 'Runs', content: () => <LastRuns filter={{ endpoint: slug }} what="Each call that passes the endpoint’s checks runs its target, and is kept here for 30 days." /> },
          { key: 'history', label: 'History', content: () => <ObjectHistory kind="custom_endpoint" name={slug} /> },
        ]} />
        <div className="row wrap s12 top6"><Link to={paths.auditWhere({ endpoint: `/custom/${slug}` })}>Requests in the audit log</Link>{auth === 'signed' && <Link to={paths.verifier(slug)}>Test a delivery</Link>}</div>
      </>}
      {removing && <ConfirmDestroy title={`Delete ${slug}`} typeName={f?.lastRun ? slug : undefined} action={`Delete ${slug}`} busy={save.isPending} error={save.error ?? undefined} onClose={() => { setRemoving(false); save.reset() }}
        onConfirm={() => { save.mutate([{ kind: 'custom_endpoint', name: slug, value: null, against: version }], { onSuccess: (_, stayed) => { if (stayed) go(paths.endpoints(), { replace: true }) } }) }}>
        Calls of <span className="mono">/public/v1/custom/{slug}</span> are answered 404 from then on{f?.lastRun && <>; it was last called <Time at={f.lastRun.startedAt} form="full" /></>}. What its webhook has processed stays known: it is not processed again if the endpoint comes back.
      </ConfirmDestroy>}
    </Page>
  )
}

function Overview({ slug, f, value }: { slug: string; f: Facts; value: EndpointValue }) {
  const client = useQueryClient()
  const issue = useMutation<Gives<'POST endpoints/{slug}/token'>, ApiError>({
    mutationFn: async () => { try { return await ask('POST endpoints/{slug}/token', { params: { slug } }) } catch (thrown) { throw asError(thrown) } },
    onSuccess: async () => { await client.invalidateQueries({ queryKey: ['endpoints'] }) },
    gcTime: 0, // the token is in nobody's cache
  })
  const [asking, setAsking] = useState(false)
  const auth = value.auth ?? 'api_key'
  const figures = f.figures
  return (
    <>
      {issue.data && <SecretOnce title="The new webhook token" why="It is shown this once. The one before it has stopped." secret={issue.data.token} advice="Send it as X-Webhook-Token or as a bearer token." onDone={issue.reset}><CodeBlock title="A request with it" text={issue.data.sample} language="curl" /></SecretOnce>}
      {!f.ready && !issue.data && <Note kind="warn" action={auth === 'token' ? <Button small kind="main" disabled={!f.mayIssueToken} busy={issue.isPending} onClick={() => { issue.mutate() }}>Make a token</Button> : undefined}>{auth === 'token' ? 'There is no webhook token yet: every call is answered 401.' : 'There is no webhook secret: every delivery is answered 401.'}{auth === 'token' && !f.mayIssueToken && ' Only who could define what it runs may make one.'}</Note>}
      <ActionError error={issue.error ?? undefined} />
      <div className="ep">
        <div>
          <Stats items={[
            { label: 'Runs, 24 h', value: countWords(figures.runs, figures.more) },
            { label: 'Succeeded', value: figures.succeeded.toLocaleString('en') },
            { label: 'Failed', value: <span className={figures.failed > 0 ? 'bad' : ''}>{figures.failed.toLocaleString('en')}</span> },
            { label: 'p50', value: figures.runs > 0 ? usWords(figures.p50Us) : '–' },
            { label: 'p95', value: figures.runs > 0 ? usWords(figures.p95Us) : '–' },
          ]} />
          <Hours hours={figures.hours} />
          {auth === 'api_key' ? <Section title="Last runs"><LastRuns filter={{ endpoint: slug, limit: 10 }} what="Call it with the request beside: the run is here then." /></Section> : <Section title="Last events" right={<Link to={paths.eventsOf(slug)}>All events</Link>}><LastEvents slug={slug} /></Section>}
        </div>
        <aside>
          <Section title="Definition"><KeyValues label="Definition" items={[
            { name: 'Runs', value: <Link className="mono" to={f.target.kind === 'component' ? paths.components(f.target.name) : paths.automations(f.target.name)}>{f.target.name}</Link> },
            { name: 'Who can call it', value: <>{modes[auth]}{auth === 'api_key' && value.external_users && ', external users too'}</> },
            { name: 'Runs as', value: f.runsAs === 'caller' ? 'its caller' : <>{f.user?.email ?? 'a user who is gone'}{f.runsAs === 'system' && ', with the rights of the system'}</> },
            ...(auth === 'signed' ? [
              { name: 'Verifier', value: f.verifier ? <Link className="mono" to={paths.components(f.verifier)}>{f.verifier}</Link> : '–' },
              { name: 'Webhook secret', value: f.secretSet ? <span aria-label="set, not shown">••••••••</span> : <span className="warn">none</span> },
              ...(value.allow_get ? [{ name: 'GET', value: 'the verifier answers it' }] : []),
              { name: 'Previous secret', value: f.previousSet ? <span aria-label="set, not shown">••••••••</span> : 'none kept' },
            ] : []),
            ...(auth === 'token' ? [{ name: 'Webhook token', value: <>{f.tokenPrefix ? <span className="mono">{f.tokenPrefix}…</span> : 'none'}{f.ready && <Button small disabled={!f.mayIssueToken} onClick={() => { setAsking(true) }}>New token</Button>}</> }] : []),
            { name: 'Answers', value: auth === 'api_key' || f.reply === 'result' ? 'the result, 200' : 'a receipt, 202' },
            { name: 'Limit', value: auth === 'api_key' ? 'that of the key' : `${(value.rate_limit_per_minute ?? 1000).toLocaleString('en')} a minute` },
            { name: 'Body', value: `at most ${bytesWords(value.max_body_bytes ?? 1_048_576)}` },
            { name: 'Log each request', value: (value.log_requests ?? true) ? 'on' : 'failures alone' },
            { name: 'Takes', value: f.inputs.length === 0 ? 'no declared inputs' : f.inputs.map((i) => `${i.name}${i.required ? ' (required)' : ''}`).join(', ') },
          ]} /></Section>
          {auth === 'api_key' && <UseIt title="Sample request" request={{ method: 'POST', url: f.url, body: sampleOf(f.inputs) }} />}
          {auth === 'token' && <UseIt title="Sample request" request={{ method: 'POST', url: f.url, body: sampleOf(f.inputs), headers: { 'Idempotency-Key': 'a-name-of-your-own' } }} />}
          {auth === 'signed' && <CodeBlock title="Sample request" language="curl" text={signedSample(f.url, f.inputs)} />}
        </aside>
      </div>
      {asking && <ConfirmDestroy title="Make a new token" action="Make a new token" keep="Keep the old one" busy={issue.isPending} error={issue.error ?? undefined} onClose={() => { setAsking(false) }} onConfirm={() => { issue.mutate(undefined, { onSuccess: () => { setAsking(false) } }) }}>
        The old token stops at once: whoever calls with it is answered 401.{f.lastRun && <> It was last called <Time at={f.lastRun.startedAt} form="full" />.</>}
      </ConfirmDestroy>}
    </>
  )
}

function LastEvents({ slug }: { slug: string }) {
  const list = useQuery({ queryKey: ['events', 'of', slug], queryFn: ({ signal }) => askPage('GET events', { query: { endpoint: slug, limit: 20 }, signal }), refetchInterval: 10_000 })
  if (list.error) return <ErrorState what="The events could not be loaded." error={asError(list.error)} onRetry={() => void list.refetch()} />
  if (!list.data) return null
  if (list.data.rows.length === 0) return <Empty title="No deliveries yet">What is sent to this webhook is listed here.</Empty>
  return (
    <table className="tbl flat fix" aria-label="Events">
      <colgroup><col style={{ width: 130 }} /><col style={{ width: 160 }} /><col /><col style={{ width: 90 }} /></colgroup>
      <thead><tr><th scope="col">Time</th><th scope="col">Kind</th><th scope="col">Outcome</th><th scope="col" className="num">Took</th></tr></thead>
      <tbody>{list.data.rows.map((e) => (
        <tr key={e.id}>
          <td><Link to={paths.events(e.id)}><Time at={e.receivedAt} /></Link></td>
          <td className="trunc">{e.kind ?? '–'}</td>
          <td className="trunc">{e.status === 'processed' ? <span className="row"><Arch state="open" />processed{e.repeats > 0 && <span className="muted">came again {e.repeats} ×</span>}</span> : e.run ? <RunStatus run={e.run} /> : 'failed'}</td>
          <td className="num">{e.run ? usWords(e.run.tookUs) : '–'}</td>
        </tr>
      ))}</tbody>
    </table>
  )
}
