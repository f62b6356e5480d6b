import { IconBraces, IconCalendar, IconCalendarTime, IconHash, IconLetterT, IconLink, IconList, IconListCheck, IconToggleLeft } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { DataField } from '../../api/admin'
import { paths } from '../../app/paths'
import { Link } from '../../ui/link'
import { Chip } from '../../ui/list'
import { Null } from '../../ui/table'
import { Time } from '../../ui/time'
import { referenceOf, textOf } from './queries'

const icons: Record<string, typeof IconLetterT> = {
  text: IconLetterT, number: IconHash, boolean: IconToggleLeft, date: IconCalendar, datetime: IconCalendarTime,
  select: IconList, multiselect: IconListCheck, reference: IconLink, multireference: IconLink, json: IconBraces,
}

/** TypeIcon stands before a field's API name. */
export function TypeIcon({ type }: { type: string }): ReactNode {
  const Icon = icons[type] ?? IconLetterT
  return <Icon size={13} stroke={1.7} aria-label={type} />
}

/** widthOf is the width of a field's column. */
export function widthOf(field: DataField): number {
  switch (field.type) {
    case 'number': return 120
    case 'boolean': return 96
    case 'date': return 120
    case 'datetime': return 150
    case 'select': return 130
    case 'json': return 220
    default: return field.name.length > 14 ? 200 : 180
  }
}

/** Value shows a field's value; long text is cut, a reference is a link. */
export function Value({ field, value, labelOf, full }: { field: DataField; value: unknown; labelOf?: (id: string) => string | undefined; full?: boolean }): ReactNode {
  if (value === null || value === undefined || value === '') return <Null />
  switch (field.type) {
    case 'boolean': return value === true ? 'yes' : 'no'
    case 'number': return typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: 20 }) : textOf(value)
    case 'date': return <time dateTime={textOf(value)}>{textOf(value)}</time>
    case 'datetime': return <Time at={textOf(value)} form={full ? 'full' : 'minute'} />
    case 'multiselect': return Array.isArray(value) ? <span className="row wrapnone">{value.map((v) => <Chip key={textOf(v)}>{textOf(v)}</Chip>)}</span> : textOf(value)
    case 'multireference': return Array.isArray(value) ? <>{value.map((v, i) => <span key={textOf(v)}>{i > 0 && ', '}<Reference field={field} id={textOf(v)} labelOf={labelOf} /></span>)}</> : textOf(value)
    case 'reference': return <Reference field={field} id={textOf(value)} labelOf={labelOf} />
    case 'json': return full ? <pre className="src wrap">{JSON.stringify(value, null, 2)}</pre> : <code className="trunc">{JSON.stringify(value).slice(0, 200)}</code>
    default: return full ? <span className="prewrap">{textOf(value)}</span> : textOf(value).slice(0, 300)
  }
}

function Reference({ field, id, labelOf }: { field: DataField; id: string; labelOf: ((id: string) => string | undefined) | undefined }) {
  const entity = referenceOf(field)
  const label = labelOf?.(id)
  const words = label ?? <span className="mono">{id.slice(0, 8)}…</span>
  if (!entity) return words
  return <Link to={entity === 'user' ? paths.users(id) : paths.record(entity, id)} title={id}>{words}</Link>
}
