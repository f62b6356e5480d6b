import { describe, expect, it } from 'vitest'
import type { Explained, ExplainedVerb, ExplainedWay } from '../../api/admin'
import { foundWords, verdictOf } from './words'

const verb = (over: Partial<ExplainedVerb>): ExplainedVerb => ({ verb: 'read', allowed: true, code: null, status: 200, sets: ['work'], reached: true, ...over })
const way: ExplainedWay = { cause: 'owner', opens: ['read'], reasons: [{ text: 'the user owns it', opens: ['read'], role: null, set: null }], more: 0, closed: null, near: false }
const answer = (over: Partial<Explained>): Explained => ({
  user: { id: '1', email: 'rosa@t.example', name: 'Rosa', type: 'internal', role: 'rep', active: true, owner: false, sets: ['work'] },
  owner: '2', verbs: [verb({})], ways: [way], fields: [{ name: 'phone', read: ['work'], edit: [] }], openings: [], ...over,
})

describe('the verdict', () => {
  it('says yes, and by what', () => { expect(verdictOf(answer({}), 'contact', 'read', undefined)).toMatchObject({ yes: true, text: 'Yes. Rosa can read this contact.', why: 'The user owns it.' }) })
  it('says no, with the answer of the API', () => {
    const no = verdictOf(answer({ verbs: [verb({ allowed: false, reached: false, code: 'NOT_FOUND', status: 404 })], ways: [] }), 'contact', 'read', undefined)
    expect(no.yes).toBe(false)
    expect(no.text).toBe('No. Rosa can’t read this contact.')
    expect(no.why).toContain('The API answers 404 NOT_FOUND.')
  })
  it('tells a missing permission from a missing share', () => {
    const why = (sets: string[], reached: boolean) => verdictOf(answer({ verbs: [verb({ allowed: false, sets, reached, code: 'FORBIDDEN', status: 403 })] }), 'contact', 'read', undefined).why
    expect(why([], true)).toContain('no permission set allows it')
    expect(why([], false)).toContain('nothing shares this one')
    expect(why(['work'], false)).toContain('nothing opens this one to Rosa')
  })
  it('is about one field when one is asked about', () => {
    expect(verdictOf(answer({}), 'contact', 'read', 'phone')).toMatchObject({ yes: true, text: 'Yes. Rosa can read phone of this contact.' })
    expect(verdictOf(answer({ verbs: [verb({ verb: 'update' })] }), 'contact', 'update', 'phone')).toMatchObject({ yes: false, fieldOpen: false })
  })
  it('does not say yes for a user who is deactivated', () => {
    const asleep = answer({})
    expect(verdictOf({ ...asleep, user: { ...asleep.user, active: false } }, 'contact', 'read', undefined).yes).toBe('part')
  })
})

describe('foundWords', () => {
  it.each([
    [1, false, false, '1 record'], [1200, false, false, '1,200 records'], [10_000, true, false, 'over 10,000 records'],
    [1, false, true, '1 that matches'], [0, false, true, '0 that match'], [10_000, true, true, 'over 10,000 that match'], [1, true, true, 'at least 1 that match'],
  ])('%i, more %s, filtered %s', (count, more, filtered, words) => { expect(foundWords({ count, more }, filtered)).toBe(words) })
})
