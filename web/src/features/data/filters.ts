import type { DataField } from '../../api/admin'
import type { Search } from '../../ui/url'

/** A condition of a list (contract P7), under the parameter name that it has in the address and in the API. */
export interface Condition {
  name: `filter[${string}]`
  value: string
  /** field is undefined where the page cannot offer the condition: in a group, or on a field that is not there. */
  field: DataField | undefined
  op: string
}

const none = { required: false, unique: false, search: false, options: [], entity: null, edit: false }
const scalar = ['eq', 'ne', 'in', 'nin']
const ranges = ['lt', 'lte', 'gt', 'gte']

/** What every record has beside its fields (contract P7, P13). */
export const createdAt: DataField = { ...none, name: 'created_at', type: 'datetime', filter: true, sort: true, operators: [...scalar, ...ranges] }
export const updatedAt: DataField = { ...createdAt, name: 'updated_at', filter: false }
const columns: readonly DataField[] = [
  createdAt, updatedAt,
  { ...none, name: 'owner_id', type: 'reference', entity: 'user', filter: true, sort: false, operators: [...scalar, 'is_null'] },
  { ...none, name: 'id', type: 'id', filter: true, sort: false, operators: scalar },
]

/** fieldsOf gives what lists of an entity type may be filtered by. */
export const fieldsOf = (fields: readonly DataField[]): readonly DataField[] => [...fields, ...columns.filter((c) => !fields.some((f) => f.name === c.name))]

const form = /^filter\[([^[\]]*)\](?:\[([^[\]]+)\])?$/

/** conditionsOf reads the conditions in an address. Those that the page cannot offer have no field, and are asked all the same. */
export function conditionsOf(search: Search, fields: readonly DataField[]): Condition[] {
  const out: Condition[] = []
  for (const [name, given] of Object.entries(search)) {
    const value = Array.isArray(given) ? given[0] : given
    if (!name.startsWith('filter[') || !name.endsWith(']') || !value) continue
    const [, of, op = 'eq'] = form.exec(name) ?? []
    const field = fields.find((f) => f.name === of)
    out.push({ name: name as Condition['name'], value, op, field: field?.operators.includes(op) ? field : undefined })
  }
  return out
}

/** nameOf gives the parameter of a condition: for equality the short form. */
export const nameOf = (field: string, op: string): Condition['name'] => (op === 'eq' ? `filter[${field}]` : `filter[${field}][${op}]`)

/** queryOf gives the conditions as the API takes them. */
export const queryOf = (conditions: readonly Condition[]): Record<Condition['name'], string> => Object.fromEntries(conditions.map((c) => [c.name, c.value]))

/** aboutOf names the field of a condition, also of one that the page cannot offer; else its parameter. */
export const aboutOf = ({ field, name }: Condition): string => field?.name ?? /^filter(?:\[or\]\[\d\])?\[([^[\]]+)\](?:\[[^[\]]+\])?$/.exec(name)?.[1] ?? name

/** faultOf gives the API's words about a condition; it names fields, and parameters that it could not read. */
export const faultOf = (condition: Condition, faults: Readonly<Record<string, string>>): string | undefined => faults[condition.name] ?? faults[aboutOf(condition)]

/** An operator as it is chosen; value is set where it has no other. */
export interface Choice { key: string; op: string; words: string; value?: string }

const words: Record<string, string> = { eq: 'is', ne: 'is not', in: 'is one of', nin: 'is none of', prefix: 'begins with', contains: 'contains' }
const compared: Record<string, Record<string, string>> = {
  number: { lt: 'is less than', lte: 'is at most', gt: 'is more than', gte: 'is at least' },
  date: { lt: 'is before', lte: 'is on or before', gt: 'is after', gte: 'is on or after' },
  datetime: { lt: 'is before', lte: 'is at or before', gt: 'is after', gte: 'is at or after' },
  text: { lt: 'comes before', lte: 'comes before or is', gt: 'comes after', gte: 'comes after or is' },
  multiselect: { contains: 'has' },
}

/** A new filter begins with the first that fits its field: few look for the very second in which something happened. */
const ranked = ['eq', 'ne', 'contains', 'prefix', 'in', 'nin', 'gte', 'gt', 'lte', 'lt']
const rankedOf = (type: string) => (type === 'datetime' ? ['gte', 'gt', 'lte', 'lt', ...scalar] : ranked)

/** choicesOf gives the operators of a field, without those that are taken: an address has each once for a field. */
export function choicesOf(field: DataField, taken: readonly string[] = []): Choice[] {
  const fit = rankedOf(field.type).filter((op) => field.operators.includes(op) && !taken.includes(op) && !(field.type === 'boolean' && ['in', 'nin'].includes(op)))
  const out: Choice[] = fit.map((op) => ({ key: op, op, words: compared[field.type]?.[op] ?? words[op] ?? op }))
  if (field.operators.includes('is_null') && !taken.includes('is_null')) out.push({ key: 'unset', op: 'is_null', value: 'true', words: 'is not set' }, { key: 'set', op: 'is_null', value: 'false', words: 'is set' })
  return out
}

/** choiceOf gives the operator of a condition as it is chosen. */
export function choiceOf({ field, op, value }: Condition): Choice {
  const all = field ? choicesOf(field) : []
  return all.find((c) => c.op === op && (c.value === undefined || c.value === value)) ?? { key: op, op, words: words[op] ?? op }
}

export const takesList = (op: string): boolean => op === 'in' || op === 'nin'

/** listOf reads the operands of in and nin, which are a line of CSV; undefined where it is none. */
export function listOf(text: string): string[] | undefined {
  const out: string[] = []
  for (let rest = text; ;) {
    const part = /^(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/.exec(rest)
    if (!part) return undefined
    out.push(part[1]?.replaceAll('""', '"') ?? part[2] ?? '')
    if (part[3] === '') return out
    rest = rest.slice(part[0].length)
  }
}

/** listText writes them. */
export const listText = (values: readonly string[]): string => values.map((v) => (/[",]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v)).join(',')

/** operandsOf gives the operands of a condition, each as text. */
export const operandsOf = ({ op, value }: Pick<Condition, 'op' | 'value'>): string[] => (takesList(op) ? listOf(value) ?? [value] : [value])

/** searchOf gives a search as the API takes it (contract P15) while it is typed: the last word is the beginning of one, unless a space ends it. */
export const searchOf = (text: string | undefined): string | undefined => (text === undefined ? undefined : /[\p{L}\p{N}\p{M}]{2}$/u.test(text) ? `${text}*` : text)

/** One key of an order. */
export interface SortKey { by: string; desc: boolean }

/** sortOf reads an order, "a,-b"; without one it is newest first. */
export function sortOf(text = ''): readonly [SortKey, ...SortKey[]] {
  const keys = text.split(',').filter(Boolean).map((k): SortKey => (k.startsWith('-') ? { by: k.slice(1), desc: true } : { by: k, desc: false }))
  const [first = { by: 'created_at', desc: true }, ...others] = keys
  return [first, ...others]
}

/** turned gives the order after a press on a column's head: ascending, descending, newest first, which is no sort in the address. */
export function turned(now: SortKey, by: string): string | undefined {
  if (now.by !== by) return by
  if (by === 'created_at') return now.desc ? by : undefined
  return now.desc ? undefined : `-${by}`
}

/** sortWords says an order: "city, then amount descending". */
export const sortWords = (keys: readonly SortKey[]): string => keys.map((k) => (k.desc ? `${k.by} descending` : k.by)).join(', then ')

/**
 * foundFrom loads the page at a cursor, and goes on while nothing is on it and the list goes on: of a list that is looked through
 * record by record a page may be empty (contract P10). It gives up after some pages: the last is given then.
 */
export async function foundFrom<P extends { rows: readonly unknown[]; meta: { nextCursor: string | null } }>(load: (cursor: string | undefined) => Promise<P>, cursor: string | undefined, most = 10): Promise<P> {
  let page = await load(cursor)
  for (let i = 1; i < most && page.rows.length === 0 && page.meta.nextCursor !== null; i++) page = await load(page.meta.nextCursor)
  return page
}
