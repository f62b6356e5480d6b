import { IconLink, IconTerminal2 } from '@tabler/icons-react'
import type { LogDetail } from '../../api/admin'
import { paths } from '../../app/paths'
import { useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { JsonView } from '../../ui/code'
import { IdChip, useCopy } from '../../ui/copy'
import { Track } from '../../ui/gates'
import { Link } from '../../ui/link'
import { Status } from '../../ui/list'
import { ErrorState, Skeleton } from '../../ui/states'
import { durationWords, timeWords } from '../../ui/time'
import { curlOf } from '../../ui/useit'
import { archOf, gateName, gateWhy, whoOf } from './gates'
import { useEntry } from './queries'

/** EntryDetail opens under a row: the verdict in a sentence, the track of gates, and request and response side by side. */
export function EntryDetail({ id }: { id: string }) {
  const { entry, error, retry } = useEntry(id)
  if (error) return <ErrorState what="The entry could not be loaded." error={error} onRetry={retry} />
  if (!entry) return <Skeleton rows={6} label="Loading the entry" />
  return <Entry e={entry} />
}

function Entry({ e }: { e: LogDetail }) {
  const gates = e.track.map((g) => { const state = archOf(g.state); return { state, name: gateName(g.gate, e), why: gateWhy(g.gate, state, e) } })
  const guilty = Object.keys(e.fields)
  return (
    <div className="logdetail">
      <div className="row wrap verdictline">
        <p className="grow"><Sentence e={e} /></p>
        <IdChip id={e.requestId} short label="request id" />
        <CopyLink id={e.id} />
        <AsCurl e={e} />
      </div>
      <Track gates={gates} label="The gates on its way" />
      <div className="two">
        <Message title="Request" head={<span className="mono">{e.method}</span>} body={e.request.body} marked={guilty} headers={e.request.headers} names={e.request.headerNames} query={e.query} />
        <Message title="Response" head={<Status code={e.status} />} body={e.response.body} marked={[]} headers={{}} names={[]} query={null} reason={e.reason} />
      </div>
    </div>
  )
}

function Sentence({ e }: { e: LogDetail }) {
  const who = whoOf(e.user)
  const real = whoOf(e.realUser)
  const by = who ? <> as {e.user ? <Link to={paths.auditWhere({ user: e.user.id })}>{who}</Link> : who}{real && <> (signed in: {real})</>}</> : null
  if (!e.gate) return <><b>Answered.</b> {e.status} in {durationWords(e.durationMs)}{by}, on {timeWords(e.time, 'full')}.</>
  return <><b className="bad">Stopped at {gateName(e.gate, e)}.</b> {e.message ?? e.code}{by && <>, asked{by}</>}.{e.reason && <> {e.reason}.</>}</>
}

function Message({ title, head, body, marked, headers, names, query, reason }: { title: string; head: React.ReactNode; body: unknown; marked: readonly string[]; headers: Record<string, string>; names: readonly string[]; query: string | null; reason?: string | null }) {
  const sent = Object.entries(headers)
  return (
    <div className="message">
      {query && <p className="mono s12 query">?{query}</p>}
      {body === null || body === undefined
        ? <div className="pane"><header><b>{title}</b> {head}</header><p className="muted nobody">No body is kept.</p></div>
        : <JsonView value={body} title={<><b>{title}</b> {head}</>} marked={marked} />}
      {reason && <p className="help bad">{reason}</p>}
      {(sent.length > 0 || names.length > 0) && (
        <details><summary>Headers {sent.length + names.length}</summary>
          <dl className="dl">{sent.map(([name, value]) => <div key={name}><dt className="mono">{name}</dt><dd className="mono">{value}</dd></div>)}{names.map((name) => <div key={name}><dt className="mono">{name}</dt><dd className="muted">not kept</dd></div>)}</dl>
        </details>
      )}
    </div>
  )
}

function CopyLink({ id }: { id: string }) {
  const { copied, copy } = useCopy()
  const link = `${location.origin}/admin${paths.audit(id)}`
  return <Button small icon={<IconLink size={14} stroke={1.7} aria-hidden />} onClick={() => void copy(link)}><span aria-live="polite">{copied ? 'Copied' : 'Copy link'}</span></Button>
}

function AsCurl({ e }: { e: LogDetail }) {
  const { tenant } = useSession()
  const { copied, copy } = useCopy()
  const whole = e.request.body !== null && !(typeof e.request.body === 'object' && ('truncated' in e.request.body || 'unparsed' in e.request.body))
  const text = curlOf({ method: e.method, url: tenant.baseUrl + e.path + (e.query ? `?${e.query}` : ''), ...(whole ? { body: e.request.body } : {}), ...(e.credential === null ? { token: null } : {}) })
  return <Button small icon={<IconTerminal2 size={14} stroke={1.7} aria-hidden />} onClick={() => void copy(text)}><span aria-live="polite">{copied ? 'Copied' : 'As curl'}</span></Button>
}
