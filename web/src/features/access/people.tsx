import { askPage, type Gives, type MetaOf } from '../../api/client'
import { useSession } from '../../app/session'
import { Arch } from '../../ui/arch'
import { useDrawer } from '../../ui/drawer'
import { Person } from '../../ui/face'
import { FilterBar, type FilterDef } from '../../ui/filters'
import { usePaged } from '../../ui/paged'
import { Empty } from '../../ui/states'
import { DataTable, Pager, type Column } from '../../ui/table'
import { Time } from '../../ui/time'
import { useUrl } from '../../ui/url'
import { UserDrawer } from './user-drawer'

export type UserLine = Gives<'GET users'>[number]

/** UserState says in a word and an arch whether a user may act. */
export function UserState({ user }: { user: Pick<UserLine, 'active' | 'pending'> }) {
  if (user.active) return <span className="row"><Arch state="open" />active</span>
  if (user.pending) return <span className="row"><Arch state="hold" />waits for activation</span>
  return <span className="row"><Arch state="shut" />deactivated</span>
}

const columns = (external: boolean): readonly Column<UserLine>[] => [
  { key: 'name', head: 'Name', cell: (u) => <Person name={u.name || u.email} />, width: 240, narrow: 'title' },
  { key: 'email', head: 'E-mail', cell: (u) => <span className="trunc">{u.email}</span>, narrow: 'sub' },
  { key: 'state', head: 'State', cell: (u) => <UserState user={u} />, width: 190, narrow: 'end' },
  { key: 'role', head: 'Role', cell: (u) => (u.owner ? <b>owner</b> : u.role || <span className="muted">–</span>), width: 160, narrow: 'subend' },
  { key: 'sets', head: 'Permission sets', cell: (u) => (u.permissionSets.length ? <span className="trunc">{u.permissionSets.join(', ')}</span> : <span className="muted">none</span>), width: external ? 160 : 220 },
  { key: 'created', head: 'Since', cell: (u) => <Time at={u.createdAt} form="day" />, width: 120 },
]

const filters: readonly FilterDef[] = [
  { name: 'active', label: 'State', options: [{ value: 'true', label: 'active' }, { value: 'false', label: 'not active' }] },
]

/** PeopleList lists users of a type, with the drawer of the one in the address. */
export function PeopleList({ type, empty, noun }: { type: 'internal' | 'external'; empty: React.ReactNode; noun: string }) {
  const [url] = useUrl()
  const drawer = useDrawer('row')
  const session = useSession()
  const text = (name: string) => (typeof url[name] === 'string' ? url[name] : undefined)
  const query = { type, search: text('search'), active: text('active'), limit: 50 }
  const page = usePaged<UserLine, MetaOf<'GET users'>>({ key: ['users', query], load: async (cursor, signal) => askPage('GET users', { query: { ...query, cursor }, signal }) })
  const step = (by: 1 | -1) => {
    const list = page.rows ?? []
    const next = list[list.findIndex((u) => u.email === drawer.key) + by]
    if (next) drawer.open(next.email)
  }
  return (
    <>
      <FilterBar defs={filters} search="search" searchLabel="Name or e-mail" />
      <DataTable label={noun} columns={columns(type === 'external')} rows={page.rows} rowKey={(u) => u.email} onOpen={(u) => { drawer.open(u.email) }} selected={drawer.key}
        loading={page.loading} error={page.error} what={`${noun} could not be loaded.`} onRetry={() => void page.query.refetch()}
        empty={query.search || query.active ? <Empty title="Nobody matches" /> : empty} footer={<Pager {...page.pager} />} />
      {drawer.key !== undefined && <UserDrawer key={drawer.key} email={drawer.key} line={page.rows?.find((u) => u.email === drawer.key)} type={type} onStep={step} onClose={drawer.close} self={session.user.email === drawer.key} />}
    </>
  )
}
