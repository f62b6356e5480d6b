import type { AutomationValue, FlowNode } from '../../app/build/objects'

export const W = 236
export const H = 58
const gapY = 44
const gapX = 40
const branchY = 18 // more room where a line has words
const pad = 22

/** A place where a node may be put in: before the one at index of a list. */
export interface Slot { list: string; index: number }

/** What is drawn: nodes, the points where branches meet, and frames around bodies. */
export interface Box { id: string; kind: 'trigger' | 'node' | 'join' | 'way' | 'end' | 'frame'; x: number; y: number; width: number; height: number; node?: FlowNode; label?: string }
export interface Line { id: string; from: string; to: string; slot?: Slot; label?: string }
export interface Drawing { boxes: Box[]; lines: Line[]; width: number; height: number }

const listOf = (n: FlowNode, member: string): FlowNode[] => (Array.isArray(n[member]) ? (n[member] as FlowNode[]) : [])

function widthOf(nodes: readonly FlowNode[]): number {
  return Math.max(W, ...nodes.map((n) => {
    if (n.type === 'if') return Math.max(W, branch(listOf(n, 'then')) + gapX + branch(listOf(n, 'else')))
    if (n.type === 'each') return widthOf(listOf(n, 'do')) + 2 * pad
    return W
  }))
}
const branch = (nodes: readonly FlowNode[]) => (nodes.length === 0 ? 120 : widthOf(nodes))

interface From { id: string; label?: string | undefined }

/** draw places a flow from top to bottom: branches side by side, the body of an each in a frame. */
export function draw(flow: AutomationValue): Drawing {
  const boxes: Box[] = []
  const lines: Line[] = []
  const connect = (from: From, to: string, slot?: Slot) => { lines.push({ id: `${from.id}>${to}${from.label ?? ''}`, from: from.id, to, ...(slot ? { slot } : {}), ...(from.label ? { label: from.label } : {}) }) }

  /** lay places a list under a point; it gives where the list ends. */
  const lay = (nodes: readonly FlowNode[], list: string, cx: number, top: number, from: From): { y: number; from: From } => {
    let y = top
    let last = from
    if (nodes.length === 0 && list !== 'nodes') {
      // A branch without steps still has its own line, and a place to put one in.
      const way = `${list}.way`
      boxes.push({ id: way, kind: 'way', x: cx - 0.5, y, width: 1, height: 1 })
      connect(from, way, { list, index: 0 })
      return { y: y + 22, from: { id: way } }
    }
    nodes.forEach((node, index) => {
      const id = `${list}[${index}]`
      boxes.push({ id, kind: 'node', x: cx - W / 2, y, width: W, height: H, node })
      connect(last, id, { list, index })
      y += H + gapY
      last = { id }
      if (node.type === 'if') {
        const then = listOf(node, 'then')
        y += branchY
        const otherwise = listOf(node, 'else')
        const left = branch(then)
        const right = branch(otherwise)
        const begin = cx - (left + gapX + right) / 2
        const a = lay(then, `${id}.then`, begin + left / 2, y, { id, label: 'then' })
        const b = lay(otherwise, `${id}.else`, begin + left + gapX + right / 2, y, { id, label: 'else' })
        y = Math.max(a.y, b.y, y + 20)
        const join = `${id}.join`
        boxes.push({ id: join, kind: 'join', x: cx - 4, y, width: 8, height: 8 })
        connect(a.from, join, then.length > 0 ? { list: `${id}.then`, index: then.length } : undefined)
        connect(b.from, join, otherwise.length > 0 ? { list: `${id}.else`, index: otherwise.length } : undefined)
        y += 8 + gapY - 12
        last = { id: join }
      }
      if (node.type === 'each') {
        const body = listOf(node, 'do')
        y += branchY
        const width = widthOf(body) + 2 * pad
        const top = y - 16
        const inside = lay(body, `${id}.do`, cx, y, { id, label: `each ${typeof node['as'] === 'string' ? node['as'] : 'item'}` })
        y = Math.max(inside.y, y + 20)
        const join = `${id}.join`
        boxes.push({ id: join, kind: 'join', x: cx - 4, y, width: 8, height: 8 })
        connect(inside.from, join, body.length > 0 ? { list: `${id}.do`, index: body.length } : undefined)
        boxes.push({ id: `${id}.frame`, kind: 'frame', x: cx - width / 2, y: top, width, height: y + 14 - top })
        y += 8 + gapY - 8
        last = { id: join }
      }
    })
    return { y, from: last }
  }

  const whole = widthOf(flow.nodes)
  boxes.push({ id: 'trigger', kind: 'trigger', x: whole / 2 - W / 2, y: 0, width: W, height: H })
  const end = lay(flow.nodes, 'nodes', whole / 2, H + gapY, { id: 'trigger' })
  boxes.push({ id: 'end', kind: 'end', x: whole / 2 - 24, y: end.y, width: 48, height: 22 })
  connect(end.from, 'end', { list: 'nodes', index: flow.nodes.length })
  return { boxes, lines, width: whole, height: end.y + 22 }
}
