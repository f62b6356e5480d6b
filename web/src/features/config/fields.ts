/** A field as the manifest has it. Members that this page does not know stay as they are. */
export interface FieldValue { name: string; type: string; required?: boolean; unique?: boolean; indexed?: boolean; searchable?: boolean; managed?: boolean; options?: string[]; entity?: string; renamed_from?: string; [member: string]: unknown }

export interface EntityValue { name: string; label: string; sharing: unknown; keep?: string; fields: FieldValue[]; [member: string]: unknown }

/** A field that is being edited: was is its stored name, "" for one that is new. key stays the same while it is edited. */
export interface FieldRow { key: string; was: string; value: FieldValue }

/** An entity that is being edited; base is what the edit began from. keep is undefined until it is edited. */
export interface EntityEdit { label: string; sharing: unknown; keep?: string; rows: FieldRow[]; base: EntityValue }

/** editOf begins an edit of what is stored. */
export function editOf(value: EntityValue): EntityEdit {
  return { base: value, label: value.label, sharing: value.sharing, rows: value.fields.map((field) => ({ key: field.name, was: field.name, value: field })) }
}

/** valueOf is what the edit makes of what is stored: a field with another name says which it was. */
export function valueOf(stored: EntityValue, edit: EntityEdit): EntityValue {
  const value: EntityValue = { ...stored, label: edit.label, sharing: edit.sharing, fields: fieldsOf(edit.rows) }
  const keep = keepOf(stored, edit)
  if (keep) value.keep = keep
  else delete value.keep
  return value
}

/** keepOf is how long records are kept by the edit, "" for ever. */
export function keepOf(stored: EntityValue, edit: EntityEdit): string { return (edit.keep ?? stored.keep ?? '').trim() }

/** fieldsOf are the fields of the rows, as the manifest has them: what says nothing is left out. */
export function fieldsOf(rows: readonly FieldRow[]): FieldValue[] {
  return rows.map(({ was, value }) => {
    const field: FieldValue = { ...value }
    delete field.renamed_from
    for (const name of ['required', 'unique', 'indexed', 'searchable', 'managed']) if (!field[name]) delete field[name]
    if (field.type !== 'text') delete field.searchable
    if (!takesOptions(field.type)) delete field.options
    if (!refers(field.type)) delete field.entity
    if (was !== '' && was !== field.name) field.renamed_from = was
    return field
  })
}

export const takesOptions = (type: string) => type === 'select' || type === 'multiselect'
export const refers = (type: string) => type === 'reference' || type === 'multireference'

/** changes counts what an edit changes: fields that are new, changed or gone, and the entity's own members. */
export function changes(stored: EntityValue, edit: EntityEdit): number {
  const was = new Map(stored.fields.map((f) => [f.name, JSON.stringify(f)]))
  const gone = stored.fields.filter((f) => !edit.rows.some((row) => row.was === f.name)).length
  const changed = fieldsOf(edit.rows).filter((f, i) => was.get(edit.rows[i]?.was ?? '') !== JSON.stringify(f)).length
  const order = gone + changed === 0 && edit.rows.some((row, i) => stored.fields[i]?.name !== row.was) ? 1 : 0
  return gone + changed + order + (edit.label === stored.label ? 0 : 1) + (keepOf(stored, edit) === (stored.keep ?? '') ? 0 : 1) + (JSON.stringify(edit.sharing) === JSON.stringify(stored.sharing) ? 0 : 1)
}

/** newRow is a field that is new: its name is free. */
export function newRow(rows: readonly FieldRow[], key: string): FieldRow {
  let name = 'new_field'
  for (let n = 2; rows.some((row) => row.value.name === name); n++) name = `new_field_${n}`
  return { key, was: '', value: { name, type: 'text' } }
}

/** problemOf is the index of the field that a problem's path names, and the member in it. */
export function problemOf(path: string): { field: number; member: string } | undefined {
  const found = /(?:^|\.)(?:fields)?\[(\d+)\](?:\.(\w+))?/.exec(path)
  return found ? { field: Number(found[1]), member: found[2] ?? '' } : undefined
}

/** merged puts an edit on top of what somebody else saved meanwhile: theirs where only they changed something, else the edit's. */
export function merged(theirs: EntityValue, edit: EntityEdit): EntityEdit {
  const { base } = edit
  const was = new Map(base.fields.map((f) => [f.name, JSON.stringify(f)]))
  const mine = new Map(edit.rows.filter((row) => row.was !== '').map((row) => [row.was, row]))
  const touched = (row: FieldRow) => JSON.stringify(fieldsOf([row])[0]) !== was.get(row.was)
  const rows: FieldRow[] = theirs.fields.flatMap((field) => {
    const row = mine.get(field.name)
    if (row && touched(row)) return [row]
    if (!row && was.get(field.name) === JSON.stringify(field)) return [] // removed by the edit, as it was
    return [{ key: field.name, was: field.name, value: field }]
  })
  const known = new Set(theirs.fields.map((f) => f.name))
  // What they removed and the edit changed is new again, with its values.
  const again = edit.rows.filter((row) => row.was !== '' && !known.has(row.was) && touched(row)).map((row) => ({ ...row, was: '' }))
  return {
    base: theirs, label: edit.label === base.label ? theirs.label : edit.label,
    ...(keepOf(base, edit) === (base.keep ?? '') ? {} : { keep: keepOf(base, edit) }),
    sharing: JSON.stringify(edit.sharing) === JSON.stringify(base.sharing) ? theirs.sharing : edit.sharing,
    rows: [...rows, ...again, ...edit.rows.filter((row) => row.was === '')],
  }
}
