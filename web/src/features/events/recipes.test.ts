import { describe, expect, it } from 'vitest'
import { der, headersOf, recipes } from './recipes'

describe('headersOf', () => {
  it('reads one header a line, with colons in the value', () => {
    expect(headersOf('Stripe-Signature: t=1,v1=a:b\n\n  Host : acme.example ')).toEqual({ headers: [{ name: 'Stripe-Signature', value: 't=1,v1=a:b' }, { name: 'Host', value: 'acme.example' }], wrong: 0 })
  })
  it('names the first line that is no header', () => {
    expect(headersOf('A: 1\nPOST /x HTTP/1.1\nno header').wrong).toBe(2)
  })
})

describe('recipes', () => {
  it('each has a verifier, and a body that is JSON or, for Twilio, a form', () => {
    for (const r of recipes) {
      expect(r.source, r.label).toContain('export default function handler')
      if (r.key !== 'twilio') expect(() => { JSON.parse(r.body) }, r.label).not.toThrow()
    }
  })
  it('signs for Twilio as its documentation does', async () => {
    const made = await recipes.find((r) => r.key === 'twilio')?.sign('12345', 'Digits=1234&To=%2B18005551212&From=%2B14158675309&Caller=%2B14158675309&CallSid=CA1234567890ABCDE', 'https://mycompany.com/myapp.php?foo=1&bar=2')
    expect(made?.headers).toEqual([['X-Twilio-Signature', 'RSOYDt4T1cUTdK1PDd93/VVr8B8=']])
  })
  it('writes a signature in ASN.1, with a zero before a number that would be negative and none that is not needed', () => {
    const raw = new Uint8Array(64)
    raw[0] = 0x80; raw[31] = 1; raw[62] = 0x7f; raw[63] = 2
    expect([...der(raw)].map((b) => b.toString(16).padStart(2, '0')).join('')).toBe(`302702210080${'00'.repeat(30)}0102027f02`)
  })
})
