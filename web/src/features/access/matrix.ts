import type { ArchState } from '../../ui/arch'

/** The rights of a permission set on one entity type, as the configuration has them. A field that is not named is read and edited. */
export interface EntityGrant { create?: boolean; read?: boolean; update?: boolean; delete?: boolean; assign_owner?: boolean; fields?: Record<string, FieldGrant> }
export interface FieldGrant { read?: boolean; edit?: boolean }

/** A permission set as the configuration has it. */
export interface SetValue { name: string; system?: string[]; all_entity_access?: boolean; entities?: Record<string, EntityGrant> }

export const verbs = ['create', 'read', 'update', 'delete'] as const
export type Verb = (typeof verbs)[number]

/** readsField and editsField say what a grant gives on one field, if the verb itself is given. Edit implies read. */
export function readsField(grant: EntityGrant, field: string): boolean { const f = grant.fields?.[field]; return f === undefined || !!f.read || !!f.edit }
export function editsField(grant: EntityGrant, field: string): boolean { const f = grant.fields?.[field]; return f === undefined || !!f.edit }

/** cellState is the arch of a verb: open, in part when some fields are left out, or not allowed. */
export function cellState(grant: EntityGrant | undefined, verb: Verb, fields: readonly string[]): ArchState {
  if (!grant?.[verb]) return 'none'
  if (verb === 'delete') return 'open'
  const has = verb === 'read' ? readsField : editsField
  return fields.every((f) => has(grant, f)) ? 'open' : 'part'
}

/** setVerb gives or takes a verb. A grant without any right is left out. */
export function setVerb(grant: EntityGrant | undefined, verb: Verb | 'assign_owner', on: boolean): EntityGrant | undefined {
  const next: EntityGrant = { ...grant }
  if (on) next[verb] = true
  else delete next[verb]
  return tidy(next)
}

/** setField gives or takes read or edit of one field: to edit is to read, and not to read is not to edit. */
export function setField(grant: EntityGrant | undefined, field: string, right: 'read' | 'edit', on: boolean): EntityGrant | undefined {
  const base = grant ?? {}
  const read = right === 'read' ? on : on || readsField(base, field)
  const edit = right === 'edit' ? on : on && editsField(base, field)
  const fields = { ...base.fields }
  if (read && edit) delete fields[field]
  else fields[field] = edit ? { read: true, edit: true } : { read }
  const next: EntityGrant = { ...base, fields }
  if (Object.keys(fields).length === 0) delete next.fields
  return tidy(next)
}

function tidy(grant: EntityGrant): EntityGrant | undefined {
  return verbs.some((v) => grant[v]) || grant.assign_owner || grant.fields ? grant : undefined
}

/** grantWords says in a few words what a grant gives: "reads 7 of 8 fields", "all 9 fields". */
export function grantWords(grant: EntityGrant | undefined, fields: readonly string[]): string {
  if (!grant || !verbs.some((v) => grant[v])) return 'nothing'
  const all = fields.length
  const some = (n: number) => (n === all ? `all ${all} fields` : `${n} of ${all} fields`)
  const reads = fields.filter((f) => readsField(grant, f)).length
  const edits = fields.filter((f) => editsField(grant, f)).length
  const parts: string[] = []
  if (grant.read) parts.push(`reads ${some(reads)}`)
  if (grant.create || grant.update) parts.push(`edits ${some(edits)}`)
  if (grant.assign_owner) parts.push('names owners')
  if (parts.length === 0) parts.push('deletes')
  return grant.read && grant.update && reads === all && edits === all && !grant.assign_owner ? `all ${all} fields` : parts.join(', ')
}

/** changedRights lists what two permission sets differ in, as "entity.verb" and "entity.field". */
export function changedRights(was: SetValue, is: SetValue): string[] {
  const out: string[] = []
  const names = new Set([...Object.keys(was.entities ?? {}), ...Object.keys(is.entities ?? {})])
  for (const name of names) {
    const a = was.entities?.[name] ?? {}
    const b = is.entities?.[name] ?? {}
    for (const verb of [...verbs, 'assign_owner'] as const) if (!!a[verb] !== !!b[verb]) out.push(`${name}.${verb}`)
    for (const field of new Set([...Object.keys(a.fields ?? {}), ...Object.keys(b.fields ?? {})])) {
      if (readsField(a, field) !== readsField(b, field) || editsField(a, field) !== editsField(b, field)) out.push(`${name}.${field}`)
    }
  }
  const system = (s: SetValue) => [...(s.system ?? [])].sort().join()
  if (system(was) !== system(is)) out.push('system permissions')
  if (!!was.all_entity_access !== !!is.all_entity_access) out.push('all_entity_access')
  return out
}
