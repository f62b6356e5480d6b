import { describe, expect, it } from 'vitest'
import type { AutomationValue } from '../../app/build/objects'
import { freeId, insertNode, moveNode, nodeAt, reachAt, readValue, removeNode, setNode, valueText } from './model'

const flow: AutomationValue = {
  input_schema: [{ name: 'email', type: 'text' }],
  nodes: [
    { id: 'known', type: 'record.list', entity: 'contact', where: { email: '{{inputs.email}}' } },
    { id: 'new', type: 'if', when: 'len(known.records) == 0', then: [{ id: 'made', type: 'record.create', entity: 'contact', fields: {} }], else: [{ id: 'each', type: 'each', in: '{{known.records}}', as: 'c', do: [{ id: 'inner', type: 'set', values: { last: '{{c.id}}' } }] }] },
    { id: 'out', type: 'output', set: {} },
  ],
}

describe('paths', () => {
  it('find, set, insert, move and remove nodes at any depth, and leave the flow as it was', () => {
    const before = JSON.stringify(flow)
    expect(nodeAt(flow, 'nodes[1].else[0].do[0]')?.id).toBe('inner')
    expect(nodeAt(setNode(flow, 'nodes[1].then[0]', { type: 'fail', message: 'x' }), 'nodes[1].then[0]')?.type).toBe('fail')
    const [more, at] = insertNode(flow, 'nodes[1].then', 1, { id: 'x', type: 'fail' })
    expect([at, nodeAt(more, at)?.id]).toEqual(['nodes[1].then[1]', 'x'])
    const [created] = insertNode({ nodes: [{ type: 'if', when: 'true', then: [] }] }, 'nodes[0].else', 0, { id: 'y', type: 'fail' })
    expect(nodeAt(created, 'nodes[0].else[0]')?.id).toBe('y')
    const [moved, to] = moveNode(flow, 'nodes[2]', -1)
    expect([to, moved.nodes.map((n) => n.id)]).toEqual(['nodes[1]', ['known', 'out', 'new']])
    expect(moveNode(flow, 'nodes[0]', -1)[1]).toBe('nodes[0]')
    expect(removeNode(flow, 'nodes[1].else[0].do[0]').nodes[1]?.['else']).toEqual([{ id: 'each', type: 'each', in: '{{known.records}}', as: 'c', do: [] }])
    expect(JSON.stringify(flow)).toBe(before)
  })
  it('give new nodes names that are free', () => { expect([freeId(flow, 'record.create'), freeId(flow, 'fail'), freeId(flow, 'record.list')]).toEqual(['made2', 'fail', 'known2']) })
})

describe('reachAt', () => {
  const paths = (at: string) => reachAt(flow, at, undefined).map((r) => r.path)
  it('has inputs, results before, items around and vars', () => {
    expect(paths('nodes[0]')).toEqual(['inputs.email', 'vars.last', 'event.id', 'event.kind'])
    expect(paths('nodes[1].else[0].do[0]')).toContain('c')
    expect(paths('nodes[1].else[0].do[0]')).toContain('made.id')
    expect(paths('nodes[2]')).not.toContain('c')
  })
})

describe('values', () => {
  it('come back as they were', () => {
    for (const v of ['text', '5', 'true', '"quoted"', '{{inputs.a}}', '{"a":1}', 'a {{inputs.b}} c', 5, true, null, { a: [1] }, [1], '', '[not json', '{{a}}{{b}}']) {
      expect(readValue(valueText(v)), JSON.stringify(v)).toEqual(v)
    }
  })
})
