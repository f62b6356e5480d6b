import { parseDocument, stringify } from 'yaml'
import type { AutomationValue } from '../../app/build/objects'

/** toYaml writes a flow as it stands in a manifest, without its name. */
export function toYaml(value: AutomationValue): string { return stringify(value, { lineWidth: 120, flowCollectionPadding: false, defaultStringType: 'PLAIN' }) }

/** fromYaml reads it back: the flow, or the first mistake with its line. */
export function fromYaml(text: string): { ok: true; value: AutomationValue } | { ok: false; message: string; line: number } {
  const document = parseDocument(text, { prettyErrors: true })
  const wrong = document.errors[0]
  if (wrong) return { ok: false, message: wrong.message.split('\n')[0]?.replace(/ at line.*$/, '') ?? 'not YAML', line: wrong.linePos?.[0].line ?? 1 }
  const value: unknown = document.toJS({ maxAliasCount: 0 })
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return { ok: false, message: 'expected members like nodes and outputs', line: 1 }
  const { nodes } = value as { nodes?: unknown }
  if (!Array.isArray(nodes) || nodes.some((n) => n === null || typeof n !== 'object' || typeof (n as { type?: unknown }).type !== 'string')) return { ok: false, message: 'expected nodes as a list of steps, each with a type', line: 1 }
  return { ok: true, value: value as AutomationValue }
}
