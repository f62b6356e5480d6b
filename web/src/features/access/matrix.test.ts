import { describe, expect, it } from 'vitest'
import { cellState, changedRights, editsField, grantWords, readsField, setField, setVerb, type EntityGrant } from './matrix'

const fields = ['name', 'amount', 'margin']

describe('the rights of a permission set', () => {
  it('a field that is not named is read and edited', () => {
    expect(readsField({ read: true }, 'name')).toBe(true)
    expect(editsField({ update: true, fields: { name: { read: true } } }, 'name')).toBe(false)
  })

  it('to edit is to read, and not to read is not to edit', () => {
    const hidden = setField({ read: true, update: true }, 'margin', 'read', false)
    expect(hidden?.fields).toEqual({ margin: { read: false } })
    const edited = setField(hidden, 'margin', 'edit', true)
    expect(edited).toEqual({ read: true, update: true })
    const readOnly = setField(edited, 'margin', 'edit', false)
    expect(readOnly?.fields).toEqual({ margin: { read: true } })
    expect(setField(readOnly, 'margin', 'read', true)?.fields).toEqual({ margin: { read: true } })
  })

  it('an arch is half open when some fields are left out', () => {
    const grant: EntityGrant = { read: true, update: true, fields: { margin: { read: true } } }
    expect(cellState(grant, 'read', fields)).toBe('open')
    expect(cellState(grant, 'update', fields)).toBe('part')
    expect(cellState(grant, 'delete', fields)).toBe('none')
    expect(grantWords(grant, fields)).toBe('reads all 3 fields, edits 2 of 3 fields')
    expect(grantWords({ read: true, update: true }, fields)).toBe('all 3 fields')
  })

  it('a grant of nothing is left out', () => {
    expect(setVerb({ read: true }, 'read', false)).toBeUndefined()
  })

  it('names what two sets differ in', () => {
    const was = { name: 's', entities: { deal: { read: true } } }
    const is = { name: 's', system: ['manage_users'], entities: { deal: { read: true, update: true, fields: { margin: { read: false } } } } }
    expect(changedRights(was, is)).toEqual(['deal.update', 'deal.margin', 'system permissions'])
  })
})
