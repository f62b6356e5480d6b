import { paths } from '../paths'
import type { AutomationValue, EndpointValue, FlowNode, Stored } from './objects'

/** One object that uses another. */
export interface Use { label: string; to: string }

/** nodesOf lists all nodes of a flow, those inside others too. */
export function nodesOf(nodes: readonly FlowNode[]): FlowNode[] {
  return nodes.flatMap((n) => [n, ...['then', 'else', 'do'].flatMap((m) => (Array.isArray(n[m]) ? nodesOf(n[m] as FlowNode[]) : []))])
}

/** usesOf finds for each component which endpoints and automations call it. */
export function usesOf(automations: readonly Stored<AutomationValue>[], endpoints: readonly Stored<EndpointValue>[]): Map<string, Use[]> {
  const all = new Map<string, Use[]>()
  const add = (name: string, use: Use) => { all.set(name, [...(all.get(name) ?? []), use]) }
  for (const e of endpoints) {
    if ('component' in e.value.target) add(e.value.target.component, { label: `endpoint ${e.name}`, to: paths.endpoints(e.name) })
    if (e.value.verifier) add(e.value.verifier, { label: `verifier of ${e.name}`, to: paths.endpoints(e.name) })
  }
  for (const a of automations) {
    const called = new Set(nodesOf(a.value.nodes).map((n) => n['component']).filter((c) => typeof c === 'string'))
    for (const name of called) add(name, { label: `automation ${a.name}`, to: paths.automations(a.name) })
  }
  return all
}
