import { afterEach, describe, expect, it, vi } from 'vitest'
import { ask, call, onSignedOut, urlOf } from './client'
import { ApiError } from './error'

const answer = (status: number, body: unknown, headers: Record<string, string> = {}) => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers })
const session = { data: { id: '1' } }

afterEach(() => { onSignedOut(() => Promise.resolve(false)); vi.unstubAllGlobals() })

describe('call', () => {
  it('gives what the server refused as a value, with its fields and the request id', async () => {
    vi.stubGlobal('fetch', vi.fn(() => Promise.resolve(answer(422, { error: { code: 'VALIDATION', message: 'some members are wrong', details: { fields: { email: 'the value is taken', n: 1 } } } }, { 'X-Request-Id': 'r1', 'Retry-After': '4' }))))
    const result = await call('POST password/forgot', { body: { email: 'x' } })
    expect(result.ok).toBe(false)
    if (result.ok) return
    expect(result.error).toMatchObject({ status: 422, code: 'VALIDATION', requestId: 'r1', retryAfter: 4 })
    expect(result.error.fields).toEqual({ email: 'the value is taken' })
    expect(result.error.conflict).toBeUndefined()
  })
  it('repeats a call that met the end of the session, once somebody signed in again', async () => {
    const fetched = vi.fn().mockResolvedValueOnce(answer(401, { error: { code: 'UNAUTHORIZED', message: 'sign in' } })).mockResolvedValueOnce(answer(200, { data: [] }))
    vi.stubGlobal('fetch', fetched)
    onSignedOut(() => Promise.resolve(true))
    await expect(ask('GET account/sessions')).resolves.toEqual([])
    expect(fetched).toHaveBeenCalledTimes(2)
  })
  it('does not ask at the door itself', async () => {
    vi.stubGlobal('fetch', vi.fn(() => Promise.resolve(answer(401, { error: { code: 'INVALID_CREDENTIALS', message: 'wrong' } }))))
    const asked = vi.fn(() => Promise.resolve(true))
    onSignedOut(asked)
    await expect(ask('POST session', { body: { email: 'a', password: 'b' } })).rejects.toMatchObject({ code: 'INVALID_CREDENTIALS' })
    expect(asked).not.toHaveBeenCalled()
  })
  it('says that nobody answered, also in the middle of an answer', async () => {
    vi.stubGlobal('fetch', vi.fn(() => Promise.reject(new TypeError('Failed to fetch'))))
    await expect(ask('GET session')).rejects.toMatchObject({ code: 'OFFLINE', status: 0 })
    vi.stubGlobal('fetch', vi.fn(() => Promise.resolve({ ok: true, status: 200, headers: new Headers(), text: () => Promise.reject(new TypeError('network error')) })))
    await expect(ask('GET session')).rejects.toMatchObject({ code: 'OFFLINE' })
  })
  it('throws what stopped it', async () => {
    const stop = new AbortController()
    stop.abort()
    vi.stubGlobal('fetch', vi.fn(() => Promise.reject(new DOMException('stopped', 'AbortError'))))
    await expect(ask('GET session', { signal: stop.signal })).rejects.not.toBeInstanceOf(ApiError)
  })
  it('does not take a page for an answer', async () => {
    vi.stubGlobal('fetch', vi.fn(() => Promise.resolve(answer(502, '<html>bad gateway</html>'))))
    await expect(ask('GET session')).rejects.toMatchObject({ code: 'UNREADABLE', status: 502 })
  })
  it('sends JSON only with a body', async () => {
    const fetched = vi.fn((_: string, init: RequestInit) => { void init; return Promise.resolve(answer(200, session)) })
    vi.stubGlobal('fetch', fetched)
    await ask('DELETE session')
    await ask('POST password/forgot', { body: { email: 'x' } })
    expect(fetched.mock.calls.map(([url, init]) => [url, init.method, init.body, (init.headers as Record<string, string>)['Content-Type']])).toEqual([
      ['/admin/v1/session', 'DELETE', undefined, undefined], ['/admin/v1/password/forgot', 'POST', '{"email":"x"}', 'application/json'],
    ])
  })
})

describe('urlOf', () => {
  it('encodes names of the path and leaves empty values out', () => {
    expect(urlOf('GET data/{entity}/{id}', { entity: 'a/b', id: '?' }, { limit: 5, cursor: '', on: true, none: undefined })).toBe('/admin/v1/data/a%2Fb/%3F?limit=5&on=true')
  })
})

describe('conflict', () => {
  it('has both sides of a 409', () => {
    expect(new ApiError({ status: 409, code: 'CONFLICT', message: '', details: { stored: { a: 1 }, asked: { a: 2 } } }).conflict).toEqual({ stored: { a: 1 }, asked: { a: 2 } })
  })
})
