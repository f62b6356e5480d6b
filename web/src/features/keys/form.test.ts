import { describe, expect, it } from 'vitest'
import { changesOf, emptyForm, limitOf, lines } from './form'

describe('the form of a key', () => {
  it('names only what was changed', () => {
    expect(changesOf(emptyForm, emptyForm)).toEqual({})
    expect(changesOf(emptyForm, { ...emptyForm, origins: ' https://a.example \n\n', expires: '2030-01-31' })).toEqual({ corsAllowedOrigins: ['https://a.example'], expiresAt: '2030-01-31T23:59:59Z' })
    expect(changesOf({ ...emptyForm, expires: '2030-01-31' }, emptyForm)).toEqual({ expiresAt: '' })
  })
  it('leaves what is no number to the server', () => {
    expect([limitOf('12'), limitOf(''), limitOf('1.5'), limitOf('x')]).toEqual([12, 0, 0, 0])
  })
  it('reads one entry a line', () => { expect(lines('a\r\n b \n\n')).toEqual(['a', 'b']) })
})
