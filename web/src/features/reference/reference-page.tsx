import './reference.css'
import { useQuery } from '@tanstack/react-query'
import { IconDownload } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import type { KeyInfo } from '../../api/admin'
import { ask, askPage } from '../../api/client'
import { asError } from '../../api/error'
import { useMay, useSession } from '../../app/session'
import { Button } from '../../ui/button'
import { Chip, Section } from '../../ui/list'
import { Page } from '../../ui/page'
import { save } from '../../ui/save'
import { LookupField } from '../../ui/select'
import { SearchField } from '../../ui/filters'
import { Empty, ErrorState, Skeleton } from '../../ui/states'
import { UseIt } from '../../ui/useit'
import { useUrl, useUrlValue } from '../../ui/url'
import { FieldList } from './fields'
import { bodyOf, entriesOf, exampleOf, parametersOf, resolve, responseOf, type Doc, type Entry, type Schema } from './document'
import { apiBase } from '../../app/api-base'

/** ReferencePage describes the public API of this tenant as oneself, another user or a key may use it. */
export default function ReferencePage() {
  const session = useSession()
  const permissions = useMay(['manage_permissions'])
  const [as, setAs] = useUrlValue('as')
  const [picked, setPicked] = useState<string>()
  const query = useQuery({ queryKey: ['openapi', as ?? ''], retry: false, queryFn: async ({ signal }) => {
    const page = await askPage('GET openapi', { query: { as }, signal })
    return { doc: page.rows as unknown as Doc, here: page.meta.publicHere }
  } })
  const userId = as?.startsWith('user:') ? as.slice('user:'.length) : null
  const keyId = as?.startsWith('key:') ? as.slice('key:'.length) : null
  const key = useQuery({ queryKey: ['keys', 'one', keyId], enabled: keyId !== null && picked === undefined, queryFn: async ({ signal }) => (await ask('GET keys', { query: { id: keyId ?? '' }, signal }))[0] ?? null })
  const shownKey = picked ?? (key.data ? keyWords(key.data) : keyId ?? undefined)
  const doc = query.data?.doc
  return (
    <Page title="API reference" hint={doc ? doc.info.description : 'The public API of this tenant, with its own entity types, fields and endpoints.'}
      acts={<Button icon={<IconDownload size={16} stroke={1.7} aria-hidden />} disabled={!doc} onClick={() => { if (doc) download(doc, session.tenant.id) }}>OpenAPI document</Button>}>
      <div className="row wrap refas">
        {permissions && (
          <LookupField label="As a user" value={userId} shown={picked} clearable find={findUsers} placeholder={keyId ? 'the user of the key' : 'yourself, or find a user'}
            onChange={(next, option) => { setPicked(option?.label); setAs(next ? `user:${next}` : undefined) }} />
        )}
        <LookupField label="As a key" value={keyId} shown={keyId ? shownKey : undefined} clearable find={findKeys} placeholder="find an API key"
          onChange={(next, option) => { setPicked(option?.label); setAs(next ? `key:${next}` : undefined) }} />
      </div>
      {query.error && <ErrorState what="The reference could not be made." error={asError(query.error)} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton rows={12} label="Loading the reference" />}
      {query.data && <Reference doc={query.data.doc} base={apiBase(session.tenant.baseUrl, query.data.here)} />}
    </Page>
  )
}

async function findUsers(text: string, signal: AbortSignal): Promise<{ value: string; label: string }[]> {
  return (await ask('GET labels', { query: { entity: 'user', search: text || undefined }, signal })).map((l) => ({ value: l.id, label: l.label }))
}

async function findKeys(text: string, signal: AbortSignal): Promise<{ value: string; label: string }[]> {
  const needle = text.toLowerCase()
  return (await ask('GET keys', { query: { limit: 200 }, signal })).map((k) => ({ value: k.id, label: keyWords(k) })).filter((k) => k.label.toLowerCase().includes(needle)).slice(0, 40)
}

function keyWords(key: KeyInfo): string { return `${key.name} (${key.user.name ?? key.user.email ?? key.prefix})` }

function download(doc: Doc, tenant: string) {
  save(`${tenant}-openapi.json`, [JSON.stringify(doc, null, 2)], 'application/json')
}

function Reference({ doc, base }: { doc: Doc; base: string }) {
  const [url, setUrl] = useUrl()
  const text = typeof url['search'] === 'string' ? url['search'] : ''
  const open = typeof url['op'] === 'string' ? url['op'] : undefined
  const groups = useMemo(() => {
    const needle = text.toLowerCase()
    return entriesOf(doc).map((g) => ({ ...g, list: g.list.filter((e) => `${e.method} ${e.path} ${e.operation.summary}`.toLowerCase().includes(needle)) })).filter((g) => g.list.length > 0)
  }, [doc, text])
  return (
    <>
      <div className="filters"><SearchField label="Find an operation" value={text} onChange={(next) => { setUrl({ search: next || undefined }) }} /></div>
      {groups.length === 0 && <Empty title="No operation matches">Nothing in the paths and names has this text.</Empty>}
      {groups.map((group) => (
        <Section key={group.tag} title={group.tag} right={group.about}>
          <ul className="ops">
            {group.list.map((entry) => {
              const id = entry.operation.operationId
              const isOpen = id === open
              return (
                <li key={id} className={isOpen ? 'on' : ''}>
                  <button type="button" className="opline" aria-expanded={isOpen} onClick={() => { setUrl({ op: isOpen ? undefined : id }) }}>
                    <span className="method mono">{entry.method}</span><span className="mono trunc">{entry.path}</span><span className="second trunc">{entry.operation.summary}</span>
                  </button>
                  {isOpen && <Detail doc={doc} base={base} entry={entry} />}
                </li>
              )
            })}
          </ul>
        </Section>
      ))}
    </>
  )
}

const tokens: Record<string, string> = { apiKey: 'an API key’s token', accessToken: 'the user’s access token', webhookToken: 'the webhook’s token' }

function Detail({ doc, base, entry }: { doc: Doc; base: string; entry: Entry }) {
  const { operation, method, path } = entry
  const params = parametersOf(doc, operation)
  const body = bodyOf(doc, operation)
  const inPath = params.filter((p) => p.in === 'path')
  const scheme = Object.keys(operation.security[0] ?? {})[0]
  const [ids, setIds] = useState<Record<string, string>>({})
  const filled = path.replace(/\{(\w+)\}/g, (all, name: string) => (ids[name] ? encodeURIComponent(ids[name]) : all))
  const token = scheme === undefined ? null : undefined // a webhook's token is taken as a bearer, too
  const answers = Object.entries(operation.responses)
  const good = answers.find(([status]) => status.startsWith('2'))
  const goodSchema = good && responseOf(doc, good[1]).content?.['application/json']?.schema
  const data = goodSchema && resolve(doc, goodSchema).properties?.['data']
  return (
    <div className="opdetail">
      <div className="opleft">
        {operation.description && <p className="second">{operation.description}</p>}
        {inPath.length > 0 && inPath.map((p) => (
          <label key={p.name} className="opid"><span className="mono">{`{${p.name}}`}</span><input className="input mono" placeholder="put an id into the samples" value={ids[p.name] ?? ''} onChange={(e) => { setIds({ ...ids, [p.name]: e.target.value.trim() }) }} /></label>
        ))}
        {params.some((p) => p.in !== 'path') && <FieldList title="Parameters" doc={doc} rows={params.filter((p) => p.in !== 'path').map((p) => ({ name: p.name, schema: p.schema, required: p.required ?? false, about: p.description }))} />}
        {body && <FieldList title="Body" doc={doc} rows={Object.entries(body.properties ?? {}).map(([name, schema]) => ({ name, schema, required: body.required?.includes(name) ?? false }))} />}
        {data && <Answer doc={doc} status={good[0]} schema={data} />}
        <p className="second errs">Errors: {answers.filter(([status]) => !status.startsWith('2')).map(([status, r]) => <Chip key={status}><span title={responseOf(doc, r).description}>{status}</span></Chip>)}</p>
      </div>
      <div className="opright">
        <UseIt title="Request" request={{ method, url: base + filled + (method === 'GET' && params.some((p) => p.name === 'limit') ? '?limit=10' : ''), token, body: body ? exampleOf(doc, body) : undefined }} />
        {token === undefined && <p className="second s12">Put {tokens[scheme ?? ''] ?? 'the token'} into <code>GATEHOUSE_TOKEN</code>.</p>}
      </div>
    </div>
  )
}

function Answer({ doc, status, schema }: { doc: Doc; status: string; schema: Schema }) {
  const item = resolve(doc, schema).items
  const of = resolve(doc, item ?? schema)
  const rows = Object.entries(of.properties ?? {}).map(([name, s]) => ({ name, schema: s, required: false }))
  if (rows.length === 0) return <p className="second">Answers {status}. {of.description}</p>
  return <FieldList title={`Answer ${status}: data is ${item ? 'a list of' : 'an object with'}`} doc={doc} rows={rows} />
}
