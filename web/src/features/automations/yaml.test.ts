import { afterEach, describe, expect, it, vi } from 'vitest'
import { fromYaml, toYaml } from './yaml'

afterEach(() => { vi.restoreAllMocks() })

describe('a flow as YAML', () => {
  it('is read as it was written', () => {
    const value = { input_schema: [{ name: 'n', type: 'number' as const }], nodes: [{ id: 'out', type: 'output', set: { '1': '{{inputs.n}}' } }] }
    expect(fromYaml(toYaml(value))).toEqual({ ok: true, value })
  })
  it.each([
    ['nodes: [', 1, /./],
    ['nodes: []\nx:\n  {{7*7}}: 1', 3, /text as a key/],
    ['nodes: []\n? [a]\n: b', 2, /text as a key/],
    ['nodes: &a []\noutputs: *a', 2, /no aliases/],
    ['nodes: []\noutputs: *missing', 2, /no aliases/],
    ['nodes: []\nwhen: !js 1', 2, /Unresolved tag/],
    ['nodes: []\n---\nnodes: []', 2, /one document/],
    ['- a', 1, /members/],
    ['nodes: {}', 1, /list of steps/],
  ])('says what is wrong with %j, and where, without a word in the browser\'s console', (text, line, message) => {
    const spoken = [vi.spyOn(console, 'warn'), vi.spyOn(process, 'emitWarning')]
    expect(fromYaml(text)).toEqual({ ok: false, line, message: expect.stringMatching(message) as string })
    for (const spy of spoken) expect(spy).not.toHaveBeenCalled()
  })
})
