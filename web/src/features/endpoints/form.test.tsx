import { expect, it } from 'vitest'
import { fitting } from './form'

it('fitting keeps what goes with the way of calling', () => {
  const all = { target: { component: 'a' }, reply: 'receipt', verifier: 'v', webhook_secret: 's', previous_webhook_secret: '', allow_get: true, external_users: true, rate_limit_per_minute: 5, max_body_bytes: 7 } as const
  expect(fitting({ ...all, auth: 'api_key' })).toEqual({ target: { component: 'a' }, auth: 'api_key', external_users: true, max_body_bytes: 7 })
  expect(fitting({ ...all, auth: 'token' })).toEqual({ target: { component: 'a' }, auth: 'token', reply: 'receipt', rate_limit_per_minute: 5, max_body_bytes: 7 })
  expect(fitting({ ...all, auth: 'signed' })).toEqual({ target: { component: 'a' }, auth: 'signed', reply: 'receipt', verifier: 'v', webhook_secret: 's', previous_webhook_secret: '', allow_get: true, rate_limit_per_minute: 5, max_body_bytes: 7 })
})
