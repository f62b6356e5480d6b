import { describe, expect, it } from 'vitest'
import type { DataField } from '../../api/admin'
import { choiceOf, choicesOf, conditionsOf, createdAt, faultOf, fieldsOf, foundFrom, listOf, listText, nameOf, operandsOf, queryOf, searchOf, sortOf, sortWords, turned } from './filters'

const scalar = ['eq', 'ne', 'in', 'nin']
const ranges = ['lt', 'lte', 'gt', 'gte']
const field = (name: string, type: string, operators: string[], more: Partial<DataField> = {}): DataField => ({ name, type, required: false, unique: false, filter: true, sort: true, search: false, options: [], entity: null, edit: true, operators: [...operators, 'is_null'], ...more })
const city = field('city', 'text', [...scalar, ...ranges, 'prefix', 'contains'])
const tier = field('tier', 'select', scalar)
const size = field('size', 'number', [...scalar, ...ranges], { filter: false })
const active = field('active', 'boolean', scalar)
const due = field('due', 'date', [...scalar, ...ranges])
const tags = field('tags', 'multiselect', ['contains'])
const extra = field('extra', 'json', [])
const fields = fieldsOf([city, tier, size, active])

describe('conditions in the address', () => {
  it('are read as they are, equality in both forms, and written back', () => {
    const search = { 'filter[tier]': 'gold', 'filter[size][gte]': '10', 'filter[city][in]': 'Oslo,"Rome, Italy"', 'filter[created_at][lt]': '2026-01-31T12:00:00Z' }
    const read = conditionsOf({ row: 'x', ...search, sort: 'city', 'filter[city]': '' }, fields)
    expect(read.map((c) => [c.field?.name, c.op, ...operandsOf(c)])).toEqual([['tier', 'eq', 'gold'], ['size', 'gte', '10'], ['city', 'in', 'Oslo', 'Rome, Italy'], ['created_at', 'lt', '2026-01-31T12:00:00Z']])
    expect(queryOf(read)).toEqual(search)
    expect(conditionsOf({ 'filter[tier][eq]': 'gold' }, fields)[0]).toMatchObject({ name: 'filter[tier][eq]', op: 'eq', field: tier })
  })
  it('are asked for also where the page cannot offer them: groups, fields and operators that are not there', () => {
    const search = { 'filter[or][0][tier]': 'gold', 'filter[or][1][city][prefix]': 'O', 'filter[nope]': '1', 'filter[tier][gt]': 'a' }
    const read = conditionsOf(search, fields)
    expect(read.map((c) => c.field)).toEqual([undefined, undefined, undefined, undefined])
    expect(queryOf(read)).toEqual(search)
  })
  it('have the words of the API that are about them', () => {
    const [group, nope, list] = conditionsOf({ 'filter[or][0][size][gt]': '1', 'filter[nope]': '1', 'filter[city][in]': '"' }, fields)
    const faults = { size: 'is not indexed', nope: 'unknown field', 'filter[city][in]': 'expected values' }
    expect([group, nope, list].map((c) => c && faultOf(c, faults))).toEqual(['is not indexed', 'unknown field', 'expected values'])
    expect(conditionsOf({ 'filter[tier]': 'gold' }, fields).map((c) => faultOf(c, faults))).toEqual([undefined])
  })
  it('take the parameter of the short form for equality', () => {
    expect([nameOf('tier', 'eq'), nameOf('tier', 'ne')]).toEqual(['filter[tier]', 'filter[tier][ne]'])
  })
})

describe('operators', () => {
  const words = (f: DataField, taken?: string[]) => choicesOf(f, taken).map((c) => c.words)
  it('are those of the type, in words', () => {
    expect(words(city)).toEqual(['is', 'is not', 'contains', 'begins with', 'is one of', 'is none of', 'comes after or is', 'comes after', 'comes before or is', 'comes before', 'is not set', 'is set'])
    expect(words(size)).toEqual(['is', 'is not', 'is one of', 'is none of', 'is at least', 'is more than', 'is at most', 'is less than', 'is not set', 'is set'])
    expect(words(tier)).toEqual(['is', 'is not', 'is one of', 'is none of', 'is not set', 'is set'])
    expect(words(active)).toEqual(['is', 'is not', 'is not set', 'is set'])
    expect(words(due).slice(4, 8)).toEqual(['is on or after', 'is after', 'is on or before', 'is before'])
    expect(words(tags)).toEqual(['has', 'is not set', 'is set'])
    expect(words(extra)).toEqual(['is not set', 'is set'])
    expect(words(createdAt)).toEqual(['is at or after', 'is after', 'is at or before', 'is before', 'is', 'is not', 'is one of', 'is none of'])
  })
  it('are not offered twice for a field', () => {
    expect(words(tier, ['eq', 'is_null'])).toEqual(['is not', 'is one of', 'is none of'])
    expect(words(extra, ['is_null'])).toEqual([])
  })
  it('have one choice for each value of is_null', () => {
    expect(conditionsOf({ 'filter[tier][is_null]': 'true', 'filter[city][is_null]': 'false' }, fields).map((c) => choiceOf(c).key)).toEqual(['unset', 'set'])
    expect(conditionsOf({ 'filter[tier][is_null]': 'perhaps' }, fields).map((c) => choiceOf(c).words)).toEqual(['is_null'])
  })
})

describe('operands in a list', () => {
  it.each([[['a', 'b']], [['a,b', 'c']], [['say "a"', '']], [['']], [[' a ', '#']]])('%j come back', (values) => { expect(listOf(listText(values))).toEqual(values) })
  it('are none where a quotation mark stands alone', () => { expect([listOf('"a'), listOf('a"b'), listOf('"a"b')]).toEqual([undefined, undefined, undefined]) })
})

describe('a search', () => {
  it('ends, while it is typed, with the beginning of a word', () => {
    expect([undefined, 'acme', 'acme co', 'acme ', 'a', 'b é', 'Ünü', 'pu*', 'x-'].map(searchOf)).toEqual([undefined, 'acme*', 'acme co*', 'acme ', 'a', 'b é', 'Ünü*', 'pu*', 'x-'])
  })
})

describe('the order', () => {
  it('is newest first without one, else as in the address', () => {
    expect(sortOf()).toEqual([{ by: 'created_at', desc: true }])
    expect(sortOf('city,-size')).toEqual([{ by: 'city', desc: false }, { by: 'size', desc: true }])
    expect(sortWords(sortOf('city,-size'))).toBe('city, then size descending')
  })
  it('turns at a head: ascending, descending, newest first', () => {
    const presses = (by: string) => { let sort: string | undefined; return [1, 2, 3].map(() => (sort = turned(sortOf(sort)[0], by))) }
    expect(presses('city')).toEqual(['city', '-city', undefined])
    expect(presses('created_at')).toEqual(['created_at', undefined, 'created_at'])
    expect(turned({ by: 'size', desc: true }, 'city')).toBe('city')
  })
})

describe('foundFrom', () => {
  const pages: Record<string, { rows: string[]; meta: { nextCursor: string | null } }> = {
    0: { rows: [], meta: { nextCursor: '1' } }, 1: { rows: [], meta: { nextCursor: '2' } }, 2: { rows: ['r'], meta: { nextCursor: '3' } }, 3: { rows: [], meta: { nextCursor: null } },
  }
  const asked: string[] = []
  const load = (cursor = '0') => { asked.push(cursor); return Promise.resolve(pages[cursor] ?? { rows: [], meta: { nextCursor: 'x' } }) }
  it('goes on from empty pages to the next record, or to the end, or gives up', async () => {
    expect((await foundFrom(load, undefined)).rows).toEqual(['r'])
    expect(await foundFrom(load, '3')).toEqual(pages[3])
    expect(asked.splice(0)).toEqual(['0', '1', '2', '3'])
    expect((await foundFrom(load, 'x', 4)).meta.nextCursor).toBe('x')
    expect(asked).toHaveLength(4)
  })
})
