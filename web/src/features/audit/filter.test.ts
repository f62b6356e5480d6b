import { describe, expect, it } from 'vitest'
import { filterOf, rangeOf, searched, zoomOf } from './filter'

describe('the filters of the audit log', () => {
  it('tells a request id, an address and a path apart', () => {
    expect(searched('01A206AA-cd75-771a-89d8-35b34468a472')).toEqual({ requestId: '01a206aa-cd75-771a-89d8-35b34468a472' })
    expect(searched(' 203.0.113.7 ')).toEqual({ ip: '203.0.113.7' })
    expect(searched('2001:db8::1')).toEqual({ ip: '2001:db8::1' })
    expect(searched('/data/contact')).toEqual({ path: '/data/contact' })
    expect(searched('  ')).toEqual({})
  })
  it('reads the address', () => {
    expect(filterOf({ status: 'errors', user: 'u', q: '/x', after: 'c' })).toEqual({ status: 'errors', user: 'u', path: '/x' })
    expect([rangeOf({}), rangeOf({ range: '7d' }), rangeOf({ range: 'constructor' })]).toEqual(['24h', '7d', '24h'])
    expect(zoomOf({ from: 'x', to: 'y' })).toBeUndefined()
  })
})
