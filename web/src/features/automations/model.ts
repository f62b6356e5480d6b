import type { NodeType, Names } from '../../app/build/names'
import type { AutomationValue, FlowNode } from '../../app/build/objects'

/** The members of a node that hold nodes. */
export const branches = ['then', 'else', 'do'] as const

/** One step on the way to a node: the list that it is in, and its place there. */
interface At { list: string; index: number }

/** parsePath reads a path like nodes[1].then[0]; null for anything else. */
export function parsePath(path: string): At[] | null {
  const steps = path.split('.').map((part) => /^(nodes|then|else|do)\[(\d+)\]$/.exec(part))
  if (steps.some((s) => s === null)) return null
  return steps.map((s) => ({ list: s?.[1] ?? '', index: Number(s?.[2]) }))
}

const listOf = (holder: Readonly<Record<string, unknown>>, list: string): readonly FlowNode[] => (Array.isArray(holder[list]) ? (holder[list] as FlowNode[]) : [])

/** nodeAt gives the node at a path. */
export function nodeAt(flow: AutomationValue, path: string): FlowNode | undefined {
  let holder: Readonly<Record<string, unknown>> = { nodes: flow.nodes }
  let node: FlowNode | undefined
  for (const at of parsePath(path) ?? []) {
    node = listOf(holder, at.list)[at.index]
    if (!node) return undefined
    holder = node
  }
  return node
}

function change(holder: Readonly<Record<string, unknown>>, way: readonly At[], list: string, edit: (nodes: FlowNode[]) => FlowNode[]): Record<string, unknown> {
  const [next, ...rest] = way
  if (!next) return { ...holder, [list]: edit([...listOf(holder, list)]) }
  const nodes = listOf(holder, next.list).map((n, i) => (i === next.index ? (change(n, rest, list, edit) as FlowNode) : n))
  return { ...holder, [next.list]: nodes }
}

function editList(flow: AutomationValue, way: readonly At[], list: string, edit: (nodes: FlowNode[]) => FlowNode[]): AutomationValue {
  return { ...flow, nodes: listOf(change({ nodes: flow.nodes }, way, list, edit), 'nodes') as FlowNode[] }
}

/** setNode puts a node in the place of the one at a path. */
export function setNode(flow: AutomationValue, path: string, node: FlowNode): AutomationValue {
  const way = parsePath(path)
  const last = way?.pop()
  if (!way || !last) return flow
  return editList(flow, way, last.list, (nodes) => nodes.map((n, i) => (i === last.index ? node : n)))
}

/** removeNode takes the node at a path out, with what is in it. An else without nodes goes. */
export function removeNode(flow: AutomationValue, path: string): AutomationValue {
  const way = parsePath(path)
  const last = way?.pop()
  if (!way || !last) return flow
  return editList(flow, way, last.list, (nodes) => nodes.filter((_, i) => i !== last.index))
}

/** insertNode puts a node into a list, like nodes or nodes[1].then, before the one at index. It gives the new node's path. */
export function insertNode(flow: AutomationValue, list: string, index: number, node: FlowNode): [AutomationValue, string] {
  const cut = list.lastIndexOf('.')
  const way = cut < 0 ? [] : parsePath(list.slice(0, cut)) ?? []
  return [editList(flow, way, list.slice(cut + 1), (nodes) => [...nodes.slice(0, index), node, ...nodes.slice(index)]), `${list}[${index}]`]
}

/** moveNode puts the node at a path one place up or down in its list. */
export function moveNode(flow: AutomationValue, path: string, by: 1 | -1): [AutomationValue, string] {
  const node = nodeAt(flow, path)
  const way = parsePath(path)
  const last = way?.at(-1)
  if (!node || !last) return [flow, path]
  const to = last.index + by
  const list = path.replace(/\[\d+\]$/, '')
  const holder = way && way.length > 1 ? nodeAt(flow, path.slice(0, path.lastIndexOf('.'))) : { nodes: flow.nodes }
  if (to < 0 || !holder || to >= listOf(holder, last.list).length) return [flow, path]
  return insertNode(removeNode(flow, path), list, to, node)
}

/** walk visits every node in the order in which they run, each with its path. */
export function walk(flow: AutomationValue, visit: (node: FlowNode, path: string) => void): void {
  const list = (nodes: readonly FlowNode[], at: string) => {
    nodes.forEach((n, i) => {
      const path = `${at}[${i}]`
      visit(n, path)
      for (const b of branches) if (Array.isArray(n[b])) list(n[b] as FlowNode[], `${path}.${b}`)
    })
  }
  list(flow.nodes, 'nodes')
}

/** freeId gives a name for a new node that no other has. */
export function freeId(flow: AutomationValue, type: string): string {
  const stem = { 'record.create': 'made', 'record.get': 'found', 'record.list': 'known', 'record.update': 'changed', 'record.upsert': 'kept', 'record.delete': 'gone', component: 'result', if: 'decision' }[type] ?? type.replace(/^.*\./, '')
  const taken = new Set<string>()
  walk(flow, (n) => { if (n.id) taken.add(n.id); if (typeof n['as'] === 'string') taken.add(n['as']) })
  if (!taken.has(stem)) return stem
  for (let i = 2; ; i++) if (!taken.has(`${stem}${i}`)) return `${stem}${i}`
}

/** newNode makes a node of a type that can be saved as soon as its names are filled in. */
export function newNode(flow: AutomationValue, type: NodeType, names: Names | undefined): FlowNode {
  // A name is for what later steps read, and for a decision that a trace tells of.
  const node: FlowNode = { ...(type.readable || type.type === 'if' ? { id: freeId(flow, type.type) } : {}), type: type.type }
  for (const m of type.members) {
    if (m.kind === 'entity') node[m.name] = names?.entities.find((e) => e.name !== 'user')?.name ?? ''
    else if (m.kind === 'component') node[m.name] = names?.components[0]?.name ?? ''
    else if (m.kind === 'nodes') { if (m.name !== 'else') node[m.name] = [] }
    else if (m.kind === 'choice') node[m.name] = m.values?.[0] ?? ''
    else if (m.kind === 'name') node[m.name] = 'item'
    else if (m.required && ['values', 'outputs', 'fields'].includes(m.kind)) node[m.name] = {}
    else if (m.required) node[m.name] = ''
  }
  return node
}

/** A name that a place of the flow may read, with what it is. */
export interface Reach { path: string; note: string }

/** reachAt lists the names that the node at a path may read: inputs, vars, the event, results of nodes before it, items around it. */
export function reachAt(flow: AutomationValue, path: string, names: Names | undefined): Reach[] {
  const reach: Reach[] = (flow.input_schema ?? []).map((d) => ({ path: `inputs.${d.name}`, note: d.type }))
  const vars = new Set<string>()
  let before = true
  const results: Reach[] = []
  walk(flow, (n, at) => {
    if (at === path) before = false
    if (n.type === 'set' && n['values'] && typeof n['values'] === 'object') for (const name of Object.keys(n['values'])) vars.add(name)
    // What is inside an enclosing node runs before its end, but the node itself has no result to read there.
    if (!before || !n.id || path.startsWith(`${at}.`)) return
    results.push(...resultsOf(n, names))
  })
  const items: Reach[] = []
  const way = path.split('.')
  for (let i = 1; i < way.length; i++) {
    const around = nodeAt(flow, way.slice(0, i).join('.'))
    if (around?.type === 'each' && typeof around['as'] === 'string') items.push({ path: around['as'], note: 'item' })
  }
  return [...reach, ...items, ...[...vars].map((v) => ({ path: `vars.${v}`, note: 'set before' })), ...results, { path: 'event.id', note: 'webhook' }, { path: 'event.kind', note: 'webhook' }]
}

function resultsOf(n: FlowNode, names: Names | undefined): Reach[] {
  const id = n.id ?? ''
  const fields = names?.entities.find((e) => e.name === n['entity'])?.fields ?? []
  switch (n.type) {
    case 'record.create': case 'record.get': case 'record.update': case 'record.upsert':
      return [{ path: `${id}.id`, note: 'record id' }, ...fields.slice(0, 30).map((f) => ({ path: `${id}.${f.name}`, note: f.type }))]
    case 'record.list': return [{ path: `${id}.records`, note: 'list' }, { path: `${id}.records.0.id`, note: 'first record' }, { path: `${id}.hasMore`, note: 'boolean' }]
    case 'record.delete': return [{ path: `${id}.id`, note: 'record id' }]
    case 'component': return [{ path: id, note: 'what it returned' }, ...(names?.components.find((c) => c.name === n['component'])?.outputs ?? []).map((o) => ({ path: `${id}.${o.name}`, note: o.type }))]
    default: return []
  }
}

const single = /^\{\{[^{}]*\}\}$/

/** valueText writes a value of a node as it is typed in a field: text as it is, anything else as JSON, and text that would be read as JSON in quotes. */
export function valueText(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value !== 'string') return JSON.stringify(value)
  return typeof readValue(value) === 'string' && !/^".*"$/s.test(value) ? value : JSON.stringify(value)
}

/** readValue reads it back: a number, true, false, null, a list, an object or a quoted text as JSON, else text. */
export function readValue(text: string): unknown {
  const trimmed = text.trim()
  if (single.test(trimmed)) return trimmed
  if (/^(-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null)$|^["[{]/.test(trimmed) && !trimmed.startsWith('{{')) {
    try { return JSON.parse(trimmed) as unknown } catch { return text }
  }
  return text
}

/** summary says a node in a line. */
export function summary(n: FlowNode): string {
  const keys = (m: string) => (n[m] && typeof n[m] === 'object' ? Object.keys(n[m]) : [])
  const text = (m: string) => (typeof n[m] === 'string' ? n[m] : n[m] === undefined ? '' : JSON.stringify(n[m]))
  switch (n.type) {
    case 'record.create': return `${text('entity')}, ${Array.isArray(n['fields']) ? count(n['fields'].length, 'record') : typeof n['fields'] === 'string' ? n['fields'] : count(keys('fields').length, 'field')}`
    case 'record.upsert': return `${text('entity')} by ${text('by')}, ${count(keys('fields').length, 'field')}`
    case 'record.update': return `${text('entity')} ${text('record_id')}, ${count(keys('fields').length, 'field')}`
    case 'record.list': return keys('where').length > 0 ? `${text('entity')} where ${keys('where').join(', ')}` : text('entity')
    case 'record.get': case 'record.delete': return `${text('entity')} ${text('record_id')}`
    case 'record.share': case 'record.unshare': return `${text('entity')} with ${text('user') || text('role')}`
    case 'component': return text('component')
    case 'set': return keys('values').join(', ')
    case 'output': return keys('set').join(', ')
    case 'if': return text('when')
    case 'each': return `${text('as')} in ${text('in')}`
    case 'fail': return text('message')
    default: return ''
  }
}

const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`
