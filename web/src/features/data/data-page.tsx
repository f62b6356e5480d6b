import './data.css'
import { useQuery } from '@tanstack/react-query'
import { IconArrowDown, IconArrowUp, IconArrowsSort, IconColumns3, IconDownload, IconFileSpreadsheet, IconPlus, IconUpload } from '@tabler/icons-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Menu } from '@mantine/core'
import { ask, askPage } from '../../api/client'
import type { DataEntity, DataField, ListMeta } from '../../api/admin'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { useDrawer } from '../../ui/drawer'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { clearPage, usePaged } from '../../ui/paged'
import { Empty, ErrorState, Waiting } from '../../ui/states'
import { DataTable, Pager, type Column } from '../../ui/table'
import { useParam, useUrl, useUrlValue } from '../../ui/url'
import { TypeIcon, Value, widthOf } from './cells'
import { CreateDrawer } from './create-drawer'
import { conditionsOf, createdAt, fieldsOf, foundFrom, queryOf, searchOf, sortOf, sortWords, turned, updatedAt, type SortKey } from './filters'
import { ExportDrawer } from './export-drawer'
import { RecordFilters } from './filter-bar'
import { ImportDrawer } from './import-drawer'
import { idOf, referenceOf, titleOf, useEntities, useLabels, type Row, textOf } from './queries'
import { RecordDrawer } from './record-drawer'
import { Refused } from './refused'
import { foundWords } from './words'

const pageSize = 100

/** DataPage browses the records of one entity type. */
export default function DataPage() {
  const name = useParam('entity')
  const entities = useEntities()
  const entity = entities.data?.list.find((e) => e.name === name)
  if (entities.error) return <Page title={name}><ErrorState what="The entity types could not be loaded." error={asError(entities.error)} onRetry={() => void entities.refetch()} /></Page>
  if (!entities.data) return <Waiting />
  if (!entity) return <Page title={name}><Empty title={`There is no entity type ${name}`} arch="shut" action={<Link className="btn" to="/data">Other records</Link>}>No entity type has the name {name}, or no permission set opens it to you.</Empty></Page>
  return <Records key={name} entity={entity} roles={entities.data.roles} />
}

const kinds: Record<string, string> = { private: 'private by default', public_read: 'read by all staff by default', public_read_write: 'read and changed by all staff by default' }

function Records({ entity, roles }: { entity: DataEntity; roles: readonly string[] }) {
  const [url, setUrl] = useUrl()
  const fields = useMemo(() => fieldsOf(entity.fields), [entity])
  const conditions = conditionsOf(url, fields)
  const filters = queryOf(conditions)
  const [sort] = useUrlValue('sort')
  const order = sortOf(sort)
  const [typed] = useUrlValue('search')
  const search = searchOf(typed)
  const onSort = (by: string) => { setUrl({ sort: turned(order[0], by), ...clearPage }) }
  const drawer = useDrawer()
  const list = usePaged<Row, ListMeta>({
    key: ['data', 'list', entity.name, filters, search, sort], enabled: entity.may.read,
    load: (from, signal) => foundFrom((cursor) => askPage('GET data/{entity}', { params: { entity: entity.name }, query: { ...filters, search, sort, limit: pageSize, cursor }, signal }), from),
  })
  const count = useQuery({
    queryKey: ['data', 'count', entity.name, filters, search], enabled: entity.may.read, staleTime: 15_000, retry: false,
    queryFn: ({ signal }) => ask('GET count', { query: { entity: entity.name, search, ...filters }, signal }),
  })
  const filtered = conditions.length > 0 || search !== undefined
  const refused = list.error?.status === 400 ? list.error : undefined
  const columns = useColumns(entity, list.rows)
  const keys = useMemo(() => (list.rows ?? []).map(idOf), [list.rows])
  const [creating, importing, exporting] = [drawer.key === 'new', drawer.key === 'import', drawer.key === 'export']
  const at = drawer.key === undefined ? -1 : keys.indexOf(drawer.key)
  const step = (by: 1 | -1) => { const to = keys[at + by]; if (to) drawer.open(to) }
  const shown = !refused && count.data && foundWords(count.data, filtered)
  return (
    <>
      <Page title={entity.name} flush count={<>{shown}{shown && ' · '}{kinds[entity.sharing] ?? 'follows its parent'}</>}
        acts={<>
          <FileMenu entity={entity} onOpen={drawer.open} />
          {entity.may.create && <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { drawer.open('new') }}>New {entity.name}</Button>}
        </>}>
        {entity.may.read ? (
          <>
            <RecordFilters fields={fields} conditions={conditions} search={typed} faults={refused?.fields ?? {}} right={<><OrderMenu fields={fields} order={order[0]} onSort={onSort} />{columns.menu}</>} />
            <DataTable<Row> label={`Records of ${entity.name}`} columns={columns.shown} rows={refused ? [] : list.rows} rowKey={idOf} selected={drawer.key} onOpen={(row) => { drawer.open(idOf(row)) }}
              sorted={order[0]} onSort={onSort}
              loading={list.loading} error={refused ? undefined : list.error} what="The records could not be loaded." onRetry={() => void list.query.refetch()}
              empty={refused ? <Refused error={refused} onNewest={() => { setUrl({ sort: undefined, ...clearPage }) }} onFirst={() => { setUrl(clearPage) }} />
                : list.pager.hasMore ? <Empty title="Nothing found so far" action={<Button onClick={list.pager.onNext}>Look on</Button>}>Many records were looked at, and none of them matches. There are more.</Empty>
                : filtered ? <Empty title="No record matches">Nothing that you may see has these values.</Empty>
                : <Empty title={`No ${entity.name} yet`} action={entity.may.create && <Button kind="main" onClick={() => { drawer.open('new') }}>New {entity.name}</Button>}>Records that you own, and those that are shared with you, stand here.</Empty>}
              footer={<Pager {...list.pager}>{list.loading && list.rows ? <span className="muted">loading</span> : sort === undefined ? undefined : `sorted by ${sortWords(order)}`}</Pager>} />
          </>
        ) : <Empty title={`You may create ${entity.name}, not read it`} arch="part">A permission set gives you create and not read on this entity type.</Empty>}
      </Page>
      {creating && <CreateDrawer entity={entity} onClose={drawer.close} onCreated={(id) => { if (entity.may.read) drawer.open(id); else drawer.close() }} />}
      {importing && <ImportDrawer entity={entity} onClose={drawer.close} />}
      {exporting && <ExportDrawer entity={entity} query={{ ...filters, search, sort }} filtered={filtered} onClose={drawer.close} />}
      {drawer.key !== undefined && !creating && !importing && !exporting && <RecordDrawer key={drawer.key} entity={entity} roles={roles} id={drawer.key} onClose={drawer.close} onStep={at >= 0 ? step : undefined} />}
    </>
  )
}

const hiddenKey = (entity: string) => `gatehouse.columns.${entity}`

/** useColumns gives the columns of the fields that are shown, which is kept in this browser, and the menu to choose them. */
function useColumns(entity: DataEntity, rows: readonly Row[] | undefined): { shown: readonly Column<Row>[]; menu: React.ReactNode } {
  const [hidden, setHidden] = useState<readonly string[]>(() => {
    try { const kept: unknown = JSON.parse(localStorage.getItem(hiddenKey(entity.name)) ?? '["updated_at"]'); return Array.isArray(kept) ? kept.map(String) : [] } catch { return [] }
  })
  const first = useRef(true)
  useEffect(() => {
    if (first.current) { first.current = false; return }
    try { localStorage.setItem(hiddenKey(entity.name), JSON.stringify(hidden)) } catch { /* storage is full or off: the choice lives on in the page */ }
  }, [hidden, entity.name])
  const fields = entity.fields
  const toggle = (name: string) => { setHidden(hidden.includes(name) ? hidden.filter((n) => n !== name) : [...hidden, name]) }
  const columns: Column<Row>[] = fields.filter((f) => !hidden.includes(f.name)).map((f, i) => ({
    key: f.name, ...(f.sort && { sort: f.name }), head: f.name, icon: <TypeIcon type={f.type} />, width: i === 0 ? Math.max(widthOf(f), 220) : widthOf(f), num: f.type === 'number' || f.type === 'datetime' || f.type === 'date',
    narrow: i === 0 ? 'title' : i === 1 ? 'end' : i === 2 ? 'sub' : undefined,
    cell: (row) => (referenceOf(f) ? <ReferenceCell field={f} row={row} rows={rows} /> : <Value field={f} value={row[f.name]} />),
  }))
  if (columns.length === 0) columns.push({ key: 'id', head: 'id', mono: true, cell: (row) => titleOf(entity, row), narrow: 'title' })
  const time = (field: DataField): Column<Row> => ({ key: field.name, head: field.name, sort: field.name, icon: <TypeIcon type="datetime" />, width: 150, num: true, cell: (row) => <Value field={field} value={row[field.name]} /> })
  if (!hidden.includes('updated_at')) columns.push(time(updatedAt))
  columns.push({ ...time(createdAt), narrow: 'subend' })
  const menu = (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Menu.Target><Button kind="quiet" icon={<IconColumns3 size={16} stroke={1.7} aria-hidden />}>Columns</Button></Menu.Target>
      <Menu.Dropdown>
        {[...fields, updatedAt].map((f) => <Menu.Item key={f.name} role="menuitemcheckbox" aria-checked={!hidden.includes(f.name)} leftSection={<input type="checkbox" className="check" tabIndex={-1} readOnly aria-hidden checked={!hidden.includes(f.name)} />} onClick={() => { toggle(f.name) }}>{f.name}</Menu.Item>)}
      </Menu.Dropdown>
    </Menu>
  )
  return { shown: columns, menu }
}

/** FileMenu opens the import and the export of records. */
function FileMenu({ entity, onOpen }: { entity: DataEntity; onOpen: (what: 'import' | 'export') => void }) {
  const { create, read, update } = entity.may
  if (!create && !read && !update) return null
  return (
    <Menu position="bottom-end">
      <Menu.Target><Button icon={<IconFileSpreadsheet size={16} stroke={1.7} aria-hidden />}>File</Button></Menu.Target>
      <Menu.Dropdown>
        {read && <Menu.Item leftSection={<IconDownload size={16} stroke={1.7} aria-hidden />} onClick={() => { onOpen('export') }}>Export records</Menu.Item>}
        {(create || update) && <Menu.Item leftSection={<IconUpload size={16} stroke={1.7} aria-hidden />} onClick={() => { onOpen('import') }}>Import records</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  )
}

/** OrderMenu sorts where the heads of the columns have no room. */
function OrderMenu({ fields, order, onSort }: { fields: readonly DataField[]; order: SortKey; onSort: (by: string) => void }) {
  const Arrow = order.desc ? IconArrowDown : IconArrowUp
  return (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Menu.Target><Button kind="quiet" className="onlynarrow" icon={<IconArrowsSort size={16} stroke={1.7} aria-hidden />}>Order</Button></Menu.Target>
      <Menu.Dropdown className="fieldmenu">
        {fields.filter((f) => f.sort).map((f) => <Menu.Item key={f.name} onClick={() => { onSort(f.name) }} rightSection={f.name === order.by && <Arrow size={16} stroke={1.7} aria-label={order.desc ? 'descending' : 'ascending'} />}>{f.name}</Menu.Item>)}
      </Menu.Dropdown>
    </Menu>
  )
}

/** ReferenceCell names the record of a reference; the labels of a page are asked for at once. */
function ReferenceCell({ field, row, rows }: { field: DataField; row: Row; rows: readonly Row[] | undefined }) {
  const ids = useMemo(() => (rows ?? []).flatMap((r) => { const v = r[field.name]; return Array.isArray(v) ? v.map(textOf) : v ? [textOf(v)] : [] }), [rows, field.name])
  const labelOf = useLabels(field.entity ?? '', ids)
  return <Value field={field} value={row[field.name]} labelOf={labelOf} />
}
