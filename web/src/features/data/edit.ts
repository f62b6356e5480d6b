import type { DataEntity } from '../../api/admin'

/** The fields of a record that were edited, by name. */
export type Edits = Record<string, unknown>

/** shownOf gives the value of a field with the edits over what is stored. */
export function shownOf(name: string, stored: Readonly<Record<string, unknown>>, edits: Edits): unknown {
  return name in edits ? edits[name] : stored[name] ?? null
}

/** edited sets one field; a value that is the stored one is no edit. */
export function edited(edits: Edits, name: string, value: unknown, stored: Readonly<Record<string, unknown>>): Edits {
  const next = { ...edits }
  if (JSON.stringify(value ?? null) === JSON.stringify(stored[name] ?? null)) delete next[name]
  else next[name] = value ?? null
  return next
}

/** pick takes some members of a record. */
export function pick(row: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, row[name] ?? null]))
}

/** missing says which required fields of a new record have no value. */
export function missing(entity: DataEntity, edits: Edits): Record<string, string> {
  return Object.fromEntries(entity.fields.filter((f) => f.required && f.edit && (edits[f.name] === undefined || edits[f.name] === null)).map((f) => [f.name, 'required']))
}
