import { describe, expect, it } from 'vitest'
import { conditionsOf, whereOf, whichWords, whomWords } from './rules'

describe('a sharing rule', () => {
  it('is said in words', () => {
    expect(whichWords({ entity: 'order', where: { account: '{{user.account}}', paid: true }, access: 'read' })).toBe('where account is the viewer’s account and paid is true')
    expect(whichWords({ entity: 'order', owned_by_role: 'sales', access: 'read' })).toBe('owned by sales')
    expect(whomWords({ entity: 'order', share_with: 'external', access: 'read' })).toBe('external users')
  })

  it('goes through the form and back, by the types of its fields', () => {
    const where = { stage: 'won', score: 7, paid: true, account: '{{user.account}}' }
    const types: Record<string, string> = { stage: 'select', score: 'number', paid: 'boolean', account: 'reference' }
    expect(whereOf(conditionsOf({ entity: 'deal', where, access: 'read' }), (f) => types[f])).toEqual(where)
  })
})
