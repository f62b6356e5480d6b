import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import type { CreatedKey, KeyInfo } from '../../api/admin'
import { Button } from '../../ui/button'
import { useDrawer } from '../../ui/drawer'
import { Person } from '../../ui/face'
import { Meter } from '../../ui/list'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, Null, Pager, type Column } from '../../ui/table'
import { Ago, Time } from '../../ui/time'
import { useUrlValue } from '../../ui/url'
import { CreateKey } from './create'
import { KeyDrawer } from './detail'
import { MadeKey } from './made'
import { useKey, useKeys } from './queries'
import './keys.css'

const soon = 14 * 86_400_000

/** whoOf names the user of a key: by name, else by address, else by id. */
function whoOf(k: KeyInfo): string { return k.user.name ?? k.user.email ?? `${k.user.id.slice(0, 8)}…` }

function first(list: readonly string[]) { return list.length === 0 ? <Null /> : <span className="trunc">{list[0]}{list.length > 1 && <span className="muted"> +{list.length - 1}</span>}</span> }

function Expires({ at }: { at: string | null }) {
  if (!at) return <span className="second">never</span>
  const left = new Date(at).getTime() - Date.now()
  return <span className={left < 0 ? 'bad' : left < soon ? 'warn' : ''}>{left < 0 && 'expired '}<Time at={at} form="day" /></span>
}

const columns: readonly Column<KeyInfo>[] = [
  { key: 'name', head: 'Name', narrow: 'title', cell: (k) => <><b>{k.name}</b><span className="sub mono">{k.prefix}…</span></> },
  { key: 'user', head: 'Acts as', width: 190, narrow: 'sub', cell: (k) => <Person name={whoOf(k)} /> },
  { key: 'minute', head: 'This minute', width: 172, cell: (k) => <span className="row"><Meter value={k.usedThisMinute} max={k.rateLimitPerMinute} label={`${k.usedThisMinute} of ${k.rateLimitPerMinute} requests this minute`} /><span className={k.usedThisMinute >= k.rateLimitPerMinute ? 'bad med' : ''}>{k.usedThisMinute.toLocaleString('en')}</span><span className="muted">of {k.rateLimitPerMinute.toLocaleString('en')}</span></span> },
  { key: 'origins', head: 'Origins', width: 210, cell: (k) => first(k.corsAllowedOrigins) },
  { key: 'addresses', head: 'Addresses', width: 150, mono: true, cell: (k) => first(k.ipAllowlist) },
  { key: 'expires', head: 'Expires', width: 130, narrow: 'subend', cell: (k) => <Expires at={k.expiresAt} /> },
  { key: 'used', head: 'Last used', width: 140, num: true, narrow: 'end', cell: (k) => (k.usedThisMinute >= k.rateLimitPerMinute ? <span className="bad">now, at its limit</span> : <Ago at={k.lastUsedAt} />) },
]

/** API keys: the list, one key in a drawer, and a new one with its token in its row. */
export default function KeysPage() {
  const list = useKeys()
  const drawer = useDrawer()
  const [asked, setAsked] = useUrlValue('new')
  const [made, setMade] = useState<CreatedKey>()
  const rows = made && list.rows && !list.rows.some((k) => k.id === made.key.id) ? [made.key, ...list.rows] : list.rows
  const listed = rows?.find((k) => k.id === drawer.key)
  const { key: single } = useKey(listed || drawer.key === undefined ? undefined : drawer.key)
  const open = listed ?? single ?? undefined
  const begin = () => { setAsked('1', { push: true }) }
  return (
    <Page title="API keys" flush hint="A key acts as one user: it sees and may do what that user sees and may do."
      acts={<Button kind={rows?.length === 0 ? 'plain' : 'main'} icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={begin} disabled={made !== undefined}>New key</Button>}>
      <>
        <DataTable label="API keys" columns={columns} rows={rows} rowKey={(k) => k.id} twoLine loading={list.loading} error={list.error} onRetry={() => { void list.query.refetch() }}
          what="The API keys could not be loaded." onOpen={(k) => { if (k.id !== made?.key.id) drawer.open(k.id) }} selected={drawer.key}
          expanded={made?.key.id} detail={(k) => (made?.key.id === k.id ? <MadeKey made={made} onDone={() => { setMade(undefined); void list.query.refetch() }} /> : null)}
          empty={<Empty title="No keys yet" action={<Button kind="main" onClick={begin}>Make the first key</Button>}>A program that calls the API needs a key. It acts as a user, and nothing it does goes beyond what that user may do.</Empty>}
          footer={<Pager {...list.pager}><span className="muted hide-s">A lost token can’t be shown again: delete the key and make a new one.</span></Pager>} />
        {asked && !made && <CreateKey onClose={() => { setAsked(undefined) }} onDone={(key) => { setMade(key); setAsked(undefined) }} />}
        {!asked && open && (
          <KeyDrawer key={open.id} info={open} onClose={drawer.close} onStep={(by) => {
            const next = rows?.[(rows.findIndex((k) => k.id === open.id)) + by]
            if (next) drawer.open(next.id)
          }} />
        )}
      </>
    </Page>
  )
}
