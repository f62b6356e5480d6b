import { describe, expect, it } from 'vitest'
import { safeNext } from './next'

describe('safeNext', () => {
  it.each([
    [undefined, '/'],
    ['/settings/api-keys?row=1', '/settings/api-keys?row=1'],
    ['/admin/settings/api-keys', '/settings/api-keys'],
    ['//evil.example', '/'],
    ['/admin//evil.example', '/'],
    ['https://evil.example', '/'],
    ['/\\evil.example', '/'],
    ['javascript:alert(1)', '/'],
    ['/sign-in?next=/sign-in', '/'],
  ])('%s goes to %s', (next, want) => { expect(safeNext(next)).toBe(want) })
})
