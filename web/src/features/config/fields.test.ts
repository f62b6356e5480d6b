import { expect, test } from 'vitest'
import { changes, editOf, fieldsOf, merged, newRow, problemOf, valueOf, type EntityValue } from './fields'

const stored: EntityValue = { name: 'contact', label: 'Contact', sharing: 'private', other: 1, fields: [{ name: 'email', type: 'text', unique: true }, { name: 'stage', type: 'select', options: ['a'] }] }

test('an edit that changes nothing is what is stored', () => {
  expect(valueOf(stored, editOf(stored))).toEqual(stored)
  expect(changes(stored, editOf(stored))).toBe(0)
})

test('a field with another name says which it was, and what does not fit its type is left out', () => {
  const edit = editOf(stored)
  const [first, second] = edit.rows
  if (!first || !second) throw new Error('rows')
  edit.rows = [{ ...first, value: { ...first.value, name: 'mail', unique: false } }, { ...second, value: { ...second.value, type: 'text' } }, newRow(edit.rows, 'n')]
  expect(fieldsOf(edit.rows)).toEqual([{ name: 'mail', type: 'text', renamed_from: 'email' }, { name: 'stage', type: 'text' }, { name: 'new_field', type: 'text' }])
  expect(changes(stored, edit)).toBe(3)
})

test('how long records are kept is edited, and taken away', () => {
  const edit = { ...editOf(stored), keep: ' 90d ' }
  const kept = valueOf(stored, edit)
  expect(kept).toEqual({ ...stored, keep: '90d' })
  expect(changes(stored, edit)).toBe(1)
  expect(valueOf(kept, editOf(kept))).toEqual(kept)
  expect(valueOf(kept, { ...editOf(kept), keep: '' })).toEqual(stored)
  expect(valueOf({ ...stored, keep: '30d' }, merged({ ...stored, keep: '30d' }, edit)).keep).toBe('90d')
  expect(valueOf({ ...stored, keep: '30d' }, merged({ ...stored, keep: '30d' }, editOf(stored))).keep).toBe('30d')
})

test('the path of a problem names a field', () => {
  expect(problemOf('fields[2].type')).toEqual({ field: 2, member: 'type' })
  expect(problemOf('[1]')).toEqual({ field: 1, member: '' })
  expect(problemOf('label')).toBeUndefined()
})

test('an edit goes on over what somebody else saved', () => {
  const edit = editOf(stored)
  const [first, second] = edit.rows
  if (!first || !second) throw new Error('rows')
  edit.rows = [{ ...first, value: { ...first.value, required: true } }, { key: 'n', was: '', value: { name: 'city', type: 'text' } }]
  const theirs: EntityValue = { ...stored, label: 'Person', fields: [...stored.fields, { name: 'phone', type: 'text' }] }
  const both = merged(theirs, edit)
  expect(valueOf(theirs, both)).toEqual({ ...theirs, fields: [{ name: 'email', type: 'text', unique: true, required: true }, { name: 'phone', type: 'text' }, { name: 'city', type: 'text' }] })
  expect(second.was).toBe('stage') // it was removed by the edit, and nobody else had changed it
})
