import { IconClock, IconTrash } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { Plan } from '../../app/objects'
import type { PlanItem, PlanOp } from '../../ui/plan'
import { countWords } from '../../ui/time'
import { groups, kindWords } from './kinds'
import { block, inline } from './lines'

type Change = Plan['changes'][number]
type Difference = Change['differences'][number]

const ops: Record<string, PlanOp> = { create: 'add', update: 'change', delete: 'remove' }

/** sides writes what differs as two texts, a path a line. */
export function sides(differences: readonly Difference[]): { before: string; after: string } {
  const line = (path: string, value: unknown) => (value === null || value === undefined ? [] : [typeof value === 'string' && value.includes('\n') ? `${path}:\n${value}` : `${path}: ${inline(value)}`])
  return { before: differences.flatMap((d) => line(d.path, d.before)).join('\n'), after: differences.flatMap((d) => line(d.path, d.after)).join('\n') }
}

/** whatOf says a change in a few words. */
export function whatOf(change: { action: string; differences: readonly Difference[]; after: unknown }): string {
  if (change.action === 'update') return change.differences.length === 1 ? change.differences[0]?.text ?? '' : `${change.differences.length} differences`
  const fields = (change.after as { fields?: unknown[] } | null)?.fields
  return Array.isArray(fields) ? `${fields.length} ${fields.length === 1 ? 'field' : 'fields'}` : ''
}

/** said leaves out the members of an object that say nothing. */
function said(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== '' && !(Array.isArray(one) && one.length === 0)))
}

/** itemOf is one change as the plan and the history draw it. */
export function itemOf(change: { action: string; kind: string; name: string; before: unknown; after: unknown; differences: readonly Difference[] }, key: string, notes: PlanItem['notes'] = []): PlanItem {
  const update = change.action === 'update'
  const both = update ? sides(change.differences) : { before: change.before === null ? '' : block(said(change.before)), after: change.after === null ? '' : block(said(change.after)) }
  return { key, op: ops[change.action] ?? 'change', kind: kindWords(change.kind), name: change.kind === 'user_fields' ? 'user' : change.name, what: whatOf(change), ...both, notes }
}

/** planGroups puts the changes of a plan under their headings, with what each costs and takes. */
export function planGroups(plan: Plan): { title: string; items: PlanItem[] }[] {
  return groups.map((group) => ({
    title: group.title,
    items: plan.changes.filter((c) => group.kinds.includes(c.kind)).map((c) => itemOf(c, `${c.kind}/${c.object}/${c.name}`, notesOf(plan, c))),
  }))
}

function notesOf(plan: Plan, change: Change): NonNullable<PlanItem['notes']> {
  const entity = change.kind === 'user_fields' ? '' : change.name
  if (change.kind !== 'entity' && change.kind !== 'user_fields') return []
  return [
    ...plan.effect.reindexed.filter((v) => v.entity === entity).map((v) => ({ icon: <IconClock size={14} stroke={1.7} aria-hidden />, text: v.hidden ? 'Looks at its records again. Reads and writes go on meanwhile.' : `Looks at ${countWords(v.records, v.more)} ${v.records === 1 ? 'record' : 'records'} again. Reads and writes go on meanwhile.` })),
    ...plan.effect.fields.filter((f) => f.entity === entity).map((f) => ({ warn: true, icon: <IconTrash size={14} stroke={1.7} aria-hidden />, text: goneWords(f) })),
  ]
}

/** goneWords says what becomes of a field's values. */
export function goneWords(f: Plan['effect']['fields'][number]): string {
  if (f.hidden) return `${f.field} goes. Values that are stored are kept, and are back when the field is.`
  if (f.holding === 0) return `${f.field} goes. None of ${countWords(f.of)} holds a value.`
  return `${f.field} goes. ${countWords(f.holding)} of ${countWords(f.of)} hold a value: it is kept, and is back when the field is.`
}

/** looks lists what a plan takes from somebody, as lines to look at before it is applied. */
export function looks(plan: Plan): ReactNode[] {
  const named = (of: { count: number; names: string[] }, one: string, many: string) => {
    const names = of.names ?? []
    return of.count === 0 ? [] : [<span key={many}><b>{countWords(of.count)} {of.count === 1 ? one : many}</b>{names.length > 0 && <>: <span className="mono">{names.join(', ')}{of.count > names.length ? ` and ${of.count - names.length} more` : ''}</span></>}</span>]
  }
  return [
    ...named(plan.effect.losing, 'user may do less', 'users may do less'),
    ...named(plan.effect.keys, 'API key stops', 'API keys stop'),
    ...named(plan.effect.endpoints, 'custom endpoint stops for its callers', 'custom endpoints stop for their callers'),
    ...plan.effect.fields.map((f) => <span key={`${f.entity}.${f.field}`}>{goneWords(f)}</span>),
    ...plan.gone.filter((line) => line.startsWith('user ')).map((line) => <span key={line}>{line} goes</span>),
    ...plan.warnings.map((line) => <span key={line}>{line}</span>),
  ]
}

/** weighty reports whether a plan is worth a look before it is made: it takes something, or looks at records. */
export function weighty(plan: Plan): boolean { return looks(plan).length > 0 || plan.effect.reindexed.length > 0 || plan.changes.some((c) => c.action === 'delete') }
