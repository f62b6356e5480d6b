import { describe, expect, it } from 'vitest'
import { headersOf, recipes } from './recipes'

describe('headersOf', () => {
  it('reads one header a line, with colons in the value', () => {
    expect(headersOf('Stripe-Signature: t=1,v1=a:b\n\n  Host : acme.example ')).toEqual({ headers: [{ name: 'Stripe-Signature', value: 't=1,v1=a:b' }, { name: 'Host', value: 'acme.example' }], wrong: 0 })
  })
  it('names the first line that is no header', () => {
    expect(headersOf('A: 1\nPOST /x HTTP/1.1\nno header').wrong).toBe(2)
  })
})

describe('recipes', () => {
  it('each has a verifier, and a body that is JSON', () => {
    for (const r of recipes) {
      expect(r.source, r.label).toContain('export default function handler')
      expect(() => { JSON.parse(r.body) }, r.label).not.toThrow()
    }
  })
})
