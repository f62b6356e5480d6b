import { expect, it } from 'vitest'
import type { AutomationValue } from '../../app/build/objects'
import { draw } from './layout'

const flow: AutomationValue = {
  nodes: [
    { id: 'a', type: 'if', when: 'true', then: [{ type: 'each', in: 'inputs.l', as: 'x', do: [{ type: 'fail', message: 'm' }] }] },
    { id: 'b', type: 'output', set: {} },
  ],
}

it('draws every node once, apart from each other, with a place to put one in on every line', () => {
  const d = draw(flow)
  const nodes = d.boxes.filter((b) => b.kind === 'node')
  expect(nodes.map((b) => b.id)).toEqual(['nodes[0]', 'nodes[0].then[0]', 'nodes[0].then[0].do[0]', 'nodes[1]'])
  for (const a of nodes) for (const b of nodes) {
    if (a !== b) expect(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y, `${a.id} over ${b.id}`).toBe(true)
  }
  expect(new Set(d.lines.map((l) => l.id)).size).toBe(d.lines.length)
  const slots = d.lines.filter((l) => l.slot).map((l) => `${l.slot?.list ?? ''} ${l.slot?.index ?? ''}`)
  for (const s of ['nodes 0', 'nodes 1', 'nodes 2', 'nodes[0].then 0', 'nodes[0].then 1', 'nodes[0].else 0', 'nodes[0].then[0].do 0', 'nodes[0].then[0].do 1']) expect(slots).toContain(s)
})
