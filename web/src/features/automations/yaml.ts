import { LineCounter, parseDocument, stringify, visit } from 'yaml'
import type { AutomationValue } from '../../app/build/objects'

/** said has our words for mistakes that the parser describes in terms of its own interface. */
const said: Partial<Record<string, string>> = { MULTIPLE_DOCS: 'expected one document', NON_STRING_KEY: 'expected a text as a key' }

/** toYaml writes a flow as it stands in a manifest, without its name. */
export function toYaml(value: AutomationValue): string { return stringify(value, { lineWidth: 120, flowCollectionPadding: false, defaultStringType: 'PLAIN' }) }

/** fromYaml reads it back: the flow, or the first mistake with its line. */
export function fromYaml(text: string): { ok: true; value: AutomationValue } | { ok: false; message: string; line: number } {
  const lines = new LineCounter()
  const document = parseDocument(text, { stringKeys: true, logLevel: 'error', lineCounter: lines })
  const wrong = document.errors[0] ?? document.warnings[0]
  if (wrong) return { ok: false, message: said[wrong.code] ?? wrong.message.split('\n')[0]?.replace(/ at line.*$/, '') ?? 'not YAML', line: wrong.linePos?.[0].line ?? 1 }
  let alias: number | undefined
  visit(document, { Alias: (_, node) => { alias = lines.linePos(node.range?.[0] ?? 0).line; return visit.BREAK } })
  if (alias !== undefined) return { ok: false, message: 'expected no aliases (*name): write the value out', line: alias }
  const value: unknown = document.toJS()
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return { ok: false, message: 'expected members like nodes and outputs', line: 1 }
  const { nodes } = value as { nodes?: unknown }
  if (!Array.isArray(nodes) || nodes.some((n) => n === null || typeof n !== 'object' || typeof (n as { type?: unknown }).type !== 'string')) return { ok: false, message: 'expected nodes as a list of steps, each with a type', line: 1 }
  return { ok: true, value: value as AutomationValue }
}
