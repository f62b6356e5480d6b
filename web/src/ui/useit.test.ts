import { describe, expect, it } from 'vitest'
import { curlOf, fetchOf, goOf } from './useit'

const create = { method: 'POST', url: "http://demo.localhost:8080/public/v1/data/contact?x='y'", body: { first_name: "O'Hara", note: '`"\\' } }

describe('samples', () => {
  it('quotes for the shell', () => {
    expect(curlOf(create)).toBe(`curl -sS -X POST 'http://demo.localhost:8080/public/v1/data/contact?x='\\''y'\\''' \\
  -H "Authorization: Bearer $GATEHOUSE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  --data-binary '{"first_name":"O'\\''Hara","note":"\`\\"\\\\"}'`)
  })
  it('leaves the header out for an endpoint without a key', () => {
    expect(curlOf({ method: 'GET', url: 'http://h/', token: null })).toBe("curl -sS 'http://h/'")
  })
  it('writes JavaScript that parses', () => {
    const text = fetchOf(create)
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is only parsed
    expect(() => new Function(`return async () => { ${text} }`)).not.toThrow()
    expect(text).toContain('process.env.GATEHOUSE_TOKEN')
  })
  it('writes a known token into all three', () => {
    for (const write of [curlOf, fetchOf, goOf]) expect(write({ ...create, token: 'svc_api_1' })).toContain('Bearer svc_api_1')
  })
  it('escapes a Go string that has a backquote', () => {
    expect(goOf(create)).toContain('strings.NewReader("{\\n')
  })
})
