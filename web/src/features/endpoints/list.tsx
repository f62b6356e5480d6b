import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { NewName } from '../../app/build/new-name'
import { RunStatus } from '../../app/build/runs'
import { paths } from '../../app/paths'
import { ask, type Gives } from '../../api/client'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, Null } from '../../ui/table'
import { Time } from '../../ui/time'
import { useGo, useUrl } from '../../ui/url'
import { modes } from './modes'
import '../../app/build/build.css'

type Line = Gives<'GET endpoints'>[number]

/** The custom endpoints of the tenant. */
export default function Endpoints() {
  const list = useQuery({ queryKey: ['endpoints'], queryFn: ({ signal }) => ask('GET endpoints', { signal }) })
  const [url, setUrl] = useUrl()
  const [typed, setTyped] = useState('')
  const go = useGo()
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setUrl({ new: '1' }) }}>New endpoint</Button>
  const made = (slug: string) => {
    const target = typeof url['component'] === 'string' ? `&component=${encodeURIComponent(url['component'])}` : typeof url['automation'] === 'string' ? `&automation=${encodeURIComponent(url['automation'])}` : ''
    go(`${paths.endpoints(slug)}?new=1${target}`)
  }
  return (
    <Page title="Custom endpoints" flush count={list.data ? `${list.data.length}` : undefined} acts={add} hint="Addresses of your own under /public/v1/custom: each runs a logic component or an automation.">
      {url['new'] && <NewName what="endpoint" taken={list.data?.map((e) => e.slug) ?? []} name={typed} onName={setTyped} onClose={() => { setUrl({ new: undefined }) }} onMade={made} />}
      <DataTable<Line> label="Custom endpoints" rows={list.data} rowKey={(e) => e.slug} loading={list.isFetching} error={list.error ? asError(list.error) : undefined} onRetry={() => void list.refetch()} onOpen={(e) => { go(paths.endpoints(e.slug)) }}
        columns={[
          { key: 'slug', head: 'Slug', narrow: 'title', cell: (e) => <Link to={paths.endpoints(e.slug)} className="med mono">{e.slug}</Link> },
          { key: 'target', head: 'Runs', width: 200, narrow: 'sub', cell: (e) => <Link className="mono" to={e.target.kind === 'component' ? paths.components(e.target.name) : paths.automations(e.target.name)}>{e.target.name}</Link> },
          { key: 'auth', head: 'Who can call it', width: 240, cell: (e) => <>{modes[e.auth] ?? e.auth}{!e.ready && <span className="warn"> {e.auth === 'token' ? 'no token yet' : 'no secret yet'}</span>}</> },
          { key: 'time', head: 'Last run', width: 130, narrow: 'subend', cell: (e) => <Time at={e.lastRun?.startedAt} /> },
          { key: 'outcome', head: 'Outcome', width: 220, narrow: 'end', cell: (e) => (e.lastRun ? <RunStatus run={e.lastRun} /> : <Null />) },
        ]}
        empty={<Empty title="No endpoints yet" action={add}>Publish a component or an automation at an address of its own: for your app, a form, or a provider’s webhook.</Empty>} />
    </Page>
  )
}
