import { describe, expect, it } from 'vitest'
import { edited, missing, pick, shownOf } from './edit'

describe('edits of a record', () => {
  const stored = { name: 'Ada', tags: ['a', 'b'], note: null }
  it('are the fields that differ from what is stored', () => {
    let edits = edited({}, 'name', 'Grace', stored)
    edits = edited(edits, 'note', 'x', stored)
    expect(edits).toEqual({ name: 'Grace', note: 'x' })
    expect(shownOf('name', stored, edits)).toBe('Grace')
    expect(shownOf('tags', stored, edits)).toEqual(['a', 'b'])
  })
  it('end when the value is the stored one again', () => {
    expect(edited({ name: 'Grace' }, 'name', 'Ada', stored)).toEqual({})
    expect(edited({}, 'tags', ['a', 'b'], stored)).toEqual({})
    expect(edited({ note: 'x' }, 'note', null, stored)).toEqual({})
  })
  it('clear a field with null', () => { expect(edited({}, 'name', null, stored)).toEqual({ name: null }) })
  it('name both sides of a conflict alike', () => { expect(pick(stored, ['name', 'unknown'])).toEqual({ name: 'Ada', unknown: null }) })
  it('lack required fields', () => {
    const field = { type: 'text', required: true, unique: false, filter: false, sort: false, search: false, operators: [], options: [], entity: null, edit: true }
    const entity = { name: 'c', label: 'C', sharing: 'private', may: { create: true, read: true, update: true, delete: true, setOwner: false }, fields: [{ ...field, name: 'a' }, { ...field, name: 'b', required: false }] }
    expect(missing(entity, {})).toEqual({ a: 'required' })
    expect(missing(entity, { a: 'x' })).toEqual({})
  })
})
