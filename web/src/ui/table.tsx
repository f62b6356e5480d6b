import { IconArrowDown, IconArrowUp, IconChevronLeft, IconChevronRight } from '@tabler/icons-react'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type MouseEvent, type ReactNode } from 'react'
import type { ApiError } from '../api/error'
import { Button } from './button'
import { ErrorState, Skeleton } from './states'

/** One column. narrow says where its cell stands at 360: a row has two lines, title … end over sub … subend; the others are left out. */
export interface Column<Row> {
  key: string
  head: ReactNode
  /** icon of the type, before the API name. */
  icon?: ReactNode
  cell: (row: Row) => ReactNode
  /** width in px; without one the column takes what is left. */
  width?: number
  /** numbers stand right. */
  num?: boolean
  mono?: boolean
  /** sort names what the list is sorted by at a press on the head. */
  sort?: string
  narrow?: 'title' | 'end' | 'sub' | 'subend'
}

export interface DataTableProps<Row> {
  /** label names the list for a screen reader. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[] | undefined
  rowKey: (row: Row) => string
  /** onOpen is called for a click on a row and for Enter; without it rows are not to be opened. */
  onOpen?: (row: Row) => void
  /** selected is the key of the row whose drawer or detail is open. */
  selected?: string | undefined
  /** detail draws what opens under a row; expanded says for which. */
  detail?: (row: Row) => ReactNode
  expanded?: string | undefined
  /** twoLine rows are 46 high, with a sub line in their first cell. */
  twoLine?: boolean
  /** fresh rows are tinted for a moment: the live tail. */
  fresh?: (row: Row) => boolean
  loading?: boolean
  error?: ApiError | undefined
  /** what could not be loaded, in words, for the error. */
  what?: string
  onRetry?: () => void
  /** empty stands in place of no rows. */
  empty?: ReactNode
  footer?: ReactNode
  /** onScroll tells how far the list is from its top, e.g. to hold a live tail. */
  onScroll?: (top: number) => void
  /** sorted is what the list is sorted by; onSort is called for a press on the head of a column that has sort. */
  sorted?: { by: string; desc: boolean }
  onSort?: (by: string) => void
  /** check draws a box before each row. */
  check?: { has: (key: string) => boolean; toggle: (key: string) => void; all: () => void; every: boolean; some: boolean }
}

const interactive = 'a,button,input,label,select,textarea,summary,[role=menuitem],[role=option]'

/**
 * DataTable is every list: virtual rows under a sticky head, arrow keys to move, Enter to open. The focused row is kept by its key
 * through a reload. Its head and rows stand in a scrolling frame that fills the page.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowKey, onOpen, selected, detail, expanded, twoLine, fresh, loading, error, empty, footer, check } = props
  const frame = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState<string>()
  const wantFocus = useRef(false)
  const list = rows ?? []
  const height = twoLine ? 46 : 34
  const virtual = useVirtualizer({
    count: list.length, getScrollElement: () => frame.current, estimateSize: () => height, overscan: 14,
    getItemKey: (i) => { const row = list[i]; return row === undefined ? i : rowKey(row) },
    initialRect: { width: 1000, height: 800 },
  })
  const activeIndex = Math.max(0, list.findIndex((row) => rowKey(row) === active))
  const items = virtual.getVirtualItems()

  useLayoutEffect(() => {
    if (!wantFocus.current) return
    const row = frame.current?.querySelector<HTMLElement>(`tr[data-index="${activeIndex}"]`)
    if (row) { wantFocus.current = false; row.focus({ preventScroll: true }) }
  })
  const count = list.length
  const first = list[0] === undefined ? undefined : rowKey(list[0])
  useEffect(() => { frame.current?.scrollTo({ top: 0 }) }, [label])
  const move = (to: number) => {
    const at = Math.min(count - 1, Math.max(0, to))
    const row = list[at]
    if (row === undefined) return
    wantFocus.current = true
    setActive(rowKey(row))
    virtual.scrollToIndex(at, { align: 'auto' })
  }
  const onKey = (event: KeyboardEvent<HTMLTableElement>) => {
    if ((event.target as HTMLElement).tagName !== 'TR') return
    const steps: Record<string, number> = { ArrowDown: activeIndex + 1, j: activeIndex + 1, ArrowUp: activeIndex - 1, k: activeIndex - 1, Home: 0, End: count - 1, PageDown: activeIndex + 15, PageUp: activeIndex - 15 }
    const to = steps[event.key]
    const row = list[activeIndex]
    if (to !== undefined) { event.preventDefault(); move(to) }
    else if (event.key === 'Enter' && onOpen && row !== undefined) { event.preventDefault(); onOpen(row) }
    else if (event.key === ' ' && check && row !== undefined) { event.preventDefault(); check.toggle(rowKey(row)) }
  }
  const onClick = (row: Row) => (event: MouseEvent) => {
    setActive(rowKey(row))
    if (!onOpen || (event.target as HTMLElement).closest(interactive) || window.getSelection()?.toString()) return
    onOpen(row)
  }
  const role = onOpen ? 'grid' : 'table'
  const rowsTakeFocus = onOpen !== undefined && count > 0 // else the frame does, so that the keyboard can scroll it
  const cellRole = onOpen ? 'gridcell' : 'cell'
  const before = items[0]?.start ?? 0
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  const span = columns.length + (check ? 1 : 0)

  return (
    <div className="tablebox">
      <div className="tblframe" ref={frame} onScroll={props.onScroll ? (e) => { props.onScroll?.(e.currentTarget.scrollTop) } : undefined} tabIndex={rowsTakeFocus ? undefined : 0} role={rowsTakeFocus ? undefined : 'group'} aria-label={rowsTakeFocus ? undefined : label}>
        {/* eslint-disable jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/no-redundant-roles -- the table takes the keys of its rows; at 360 it is laid out as a grid, where the roles of a table must be said */}
        <table className={`tbl fix ${twoLine ? 'two' : ''} ${onOpen ? 'opens' : ''} ${check ? 'checks' : ''}`} role={role} aria-label={label} aria-rowcount={count + 1} aria-busy={loading || undefined} onKeyDown={onKey}>
          <colgroup>{check && <col style={{ width: 48 }} />}{columns.map((c) => <col key={c.key} style={c.width ? { width: c.width } : undefined} />)}</colgroup>
          <thead role="rowgroup">
            <tr role="row" aria-rowindex={1}>
              {check && <th role="columnheader" scope="col"><input type="checkbox" className="check" aria-label="Choose all rows" checked={check.every} ref={(box) => { if (box) box.indeterminate = check.some && !check.every }} onChange={check.all} /></th>}
              {columns.map((c) => <Head key={c.key} column={c} sorted={props.sorted} onSort={props.onSort} />)}
            </tr>
          </thead>
          {before > 0 && <tbody aria-hidden="true"><tr className="space"><td colSpan={span} style={{ height: before }} /></tr></tbody>}
          {items.map((item) => {
            const row = list[item.index]
            if (row === undefined) return null
            const key = rowKey(row)
            const on = key === selected || key === expanded
            return (
              <tbody key={item.key} role="rowgroup" data-index={item.index} ref={virtual.measureElement}>
                <tr role="row" data-index={item.index} data-key={key} aria-rowindex={item.index + 2} aria-selected={onOpen ? on : undefined}
                  className={`${on ? 'on' : ''} ${fresh?.(row) ? 'fresh' : ''}`} tabIndex={onOpen || check ? (item.index === activeIndex ? 0 : -1) : undefined}
                  onFocus={(e) => { if (e.target === e.currentTarget) setActive(key) }} onClick={onClick(row)}>
                  {check && <td role={cellRole} className="n-check"><input type="checkbox" className="check" aria-label={`Choose ${key}`} tabIndex={-1} checked={check.has(key)} onChange={() => { check.toggle(key) }} /></td>}
                  {columns.map((c) => <td role={cellRole} key={c.key} className={`${c.num ? 'num' : ''} ${c.mono ? 'mono' : ''} n-${c.narrow ?? 'out'}`}>{c.cell(row)}</td>)}
                </tr>
                {detail && key === expanded && <tr role="row" className="det"><td role={cellRole} colSpan={span}>{detail(row)}</td></tr>}
              </tbody>
            )
          })}
          {after > 0 && <tbody aria-hidden="true"><tr className="space"><td colSpan={span} style={{ height: after }} /></tr></tbody>}
        </table>
        {/* eslint-enable */}
        {loading && rows === undefined && <Skeleton rows={10} label={`Loading ${label}`} />}
        {error && <div className="pad tblstate"><ErrorState what={props.what ?? `${label} could not be loaded.`} error={error} onRetry={props.onRetry} /></div>}
        {!error && rows !== undefined && first === undefined && empty}
      </div>
      {footer && <div className="foot">{footer}</div>}
    </div>
  )
}

/** Head is the head of a column: of one that the list can be sorted by, a button. */
function Head<Row>({ column: { head, icon, num, sort }, sorted, onSort }: { column: Column<Row> } & Pick<DataTableProps<Row>, 'sorted' | 'onSort'>) {
  const words = <>{icon}<span className="trunc">{head}</span></>
  if (sort === undefined || !onSort) return <th role="columnheader" scope="col" className={num ? 'num' : ''}><span className="row">{words}</span></th>
  const on = sorted?.by === sort
  const Arrow = sorted?.desc ? IconArrowDown : IconArrowUp
  return (
    <th role="columnheader" scope="col" className={num ? 'num' : ''} aria-sort={!on ? 'none' : sorted.desc ? 'descending' : 'ascending'}>
      <button type="button" className={`row sorts ${on ? 'on' : ''}`} onClick={() => { onSort(sort) }}>{words}<Arrow className="dir" stroke={1.7} aria-hidden /></button>
    </th>
  )
}

/** Null stands for a value that is not there. */
export function Null() { return <span className="null" aria-label="none">–</span> }

/** Pager is the foot of a list paged by cursor: where it stands, Previous and Next, never page numbers. */
export function Pager({ from, count, hasMore, hasPrevious, onPrevious, onNext, children, newer }: { from: number; count: number; hasMore: boolean; hasPrevious: boolean; onPrevious: () => void; onNext: () => void; children?: ReactNode; newer?: boolean }) {
  return (
    <>
      <span role="status">{count === 0 ? 'Nothing' : `${from.toLocaleString('en')} to ${(from + count - 1).toLocaleString('en')}`}{children && <span className="hide-s"> · {children}</span>}</span>
      <span className="grow" />
      {(hasPrevious || hasMore) && <>
        <Button small disabled={!hasPrevious} onClick={onPrevious} icon={<IconChevronLeft size={14} stroke={1.7} aria-hidden />}>{newer ? 'Newer' : 'Previous'}</Button>
        <Button small disabled={!hasMore} onClick={onNext}>{newer ? 'Older' : 'Next'}<IconChevronRight size={14} stroke={1.7} aria-hidden /></Button>
      </>}
    </>
  )
}
