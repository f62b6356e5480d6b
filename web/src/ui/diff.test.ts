import { describe, expect, it } from 'vitest'
import { differences } from './conflict'
import { lineDiff } from './diff'

const join = (before: string, after: string) => lineDiff(before, after).map((l) => l.op + l.text).join('|')

describe('lineDiff', () => {
  it.each([
    ['a\nb\nc', 'a\nb\nc', ' a| b| c'],
    ['a\nb\nc', 'a\nx\nc', ' a|-b|+x| c'],
    ['', 'a', '+a'],
    ['a', '', '-a'],
    ['a\nb', 'b\na', '-a| b|+a'],
    ['a\na\na', 'a\na', ' a| a|-a'],
  ])('%j to %j', (before, after, want) => { expect(join(before, after)).toBe(want) })
})

describe('differences', () => {
  it('names the paths that differ, on either side', () => {
    expect(differences({ a: 1, b: { c: [1], d: 2 } }, { a: 1, b: { c: [2] }, e: null })).toEqual([
      { path: 'b.c', theirs: '[1]', yours: '[2]' }, { path: 'b.d', theirs: '2', yours: undefined }, { path: 'e', theirs: undefined, yours: 'null' },
    ])
  })
})
