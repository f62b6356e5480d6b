import './config.css'
import { IconPlus, IconUsers } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ask, type Gives } from '../../api/client'
import { asError } from '../../api/error'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, Null } from '../../ui/table'
import { countWords } from '../../ui/time'
import { useGo } from '../../ui/url'
import { NewEntity } from './new-entity'
import { useWork, WorkNote } from './work'

type Line = Gives<'GET entities'>[number]

/** Entities lists the entity types with what hangs on each. */
export default function Entities() {
  const query = useQuery({ queryKey: ['entities'], queryFn: ({ signal }) => ask('GET entities', { signal }) })
  const work = useWork()
  const go = useGo()
  const [making, setMaking] = useState(false)
  const rows = query.data
  return (
    <Page title="Entities and fields" flush count={rows && (rows.length === 1 ? '1 entity' : `${rows.length} entities`)}
      hint="What kinds of records there are, and what each has."
      acts={<>
        <Button icon={<IconUsers size={16} stroke={1.7} aria-hidden />} onClick={() => { go(paths.entities('user')) }}>Fields of users</Button>
        <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setMaking(true) }}>New entity</Button>
      </>}>
      {work.data && <div className="pad"><WorkNote work={work.data} /></div>}
      <DataTable<Line> label="Entities" rows={rows} rowKey={(row) => row.name} onOpen={(row) => { go(paths.entities(row.name)) }}
        loading={query.isFetching} error={query.error ? asError(query.error) : undefined} onRetry={() => { void query.refetch() }}
        empty={<Empty title="No entities yet" action={<Button kind="main" onClick={() => { setMaking(true) }}>New entity</Button>}>An entity is a kind of record: a contact, an order. Its fields say what each record has.</Empty>}
        columns={[
          { key: 'name', head: 'Entity', narrow: 'title', cell: (row) => <Link to={paths.entities(row.name)}><b className="mono">{row.name}</b></Link> },
          { key: 'label', head: 'Label', narrow: 'sub', cell: (row) => row.label },
          { key: 'sharing', head: 'Default for others', width: 170, cell: (row) => sharingWords(row.sharing) },
          { key: 'fields', head: 'Fields', num: true, width: 90, cell: (row) => countWords(row.fields) },
          { key: 'indexed', head: 'Indexed', num: true, width: 90, cell: (row) => countWords(row.indexed) },
          { key: 'rules', head: 'Sharing rules', num: true, width: 120, cell: (row) => countWords(row.rules) },
          { key: 'records', head: 'Records', num: true, width: 130, narrow: 'end', cell: (row) => row.records ? <Link to={paths.entity(row.name)}>{countWords(row.records.count, row.records.more)}</Link> : <Null /> },
        ]} />
      {making && <NewEntity onClose={() => { setMaking(false) }} />}
    </Page>
  )
}

const words: Record<string, string> = { private: 'private', public_read: 'may read', public_read_write: 'may read and change' }

/** sharingWords says an entity's default in words. */
export function sharingWords(sharing: string): string { return words[sharing] ?? sharing.replaceAll('_', ' ') }
