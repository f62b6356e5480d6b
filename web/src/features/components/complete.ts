import { snippetCompletion, type Completion, type CompletionContext, type CompletionResult, type CompletionSource } from '@codemirror/autocomplete'
import { localCompletionSource } from '@codemirror/lang-javascript'
import type { EntityName, Names } from '../../app/build/names'
import type { Declaration } from '../../app/build/objects'
import { typings, type Member } from './typings'

/** templates are how a call is begun where its parameters alone would say too little. */
export const templates: Readonly<Record<string, string>> = {
  'records.get': 'get("${entity}", ${id})', 'records.list': 'list("${entity}", {where: {${}}, limit: ${50}})', 'records.create': 'create("${entity}", {${}})',
  'records.update': 'update("${entity}", ${id}, {${}})', 'records.upsert': 'upsert("${entity}", "${field}", {${}})', 'records.delete': 'delete("${entity}", ${id})',
  'records.createMany': 'createMany("${entity}", ${list})', 'records.updateMany': 'updateMany("${entity}", ${list})',
  'records.share': 'share("${entity}", ${id}, {user: ${user}, access: "read"})', 'records.unshare': 'unshare("${entity}", ${id}, {user: ${user}})',
  'fail': 'fail("${message}", {status: ${422}, code: "${CODE}"})', 'respond': 'respond({status: ${200}, headers: {"Content-Type": "${text/plain}"}, body: ${text}})',
  'checkTimestampFresh': 'checkTimestampFresh(${unixSeconds}, ${300})', 'console.log': 'console.log(${})',
}

/** offered makes completions of members; owner is what stands before their names. */
function offered(list: readonly Member[] | undefined, owner = ''): Completion[] {
  return (list ?? []).map((m) => {
    const rest = { label: m.name, detail: m.type.length > 40 ? `${m.type.slice(0, 39)}…` : m.type, type: m.kind, ...(m.doc === '' ? {} : { info: m.doc }) }
    const template = templates[owner + m.name] ?? (m.kind === 'function' ? `${m.name}(${m.params.map((p) => `\${${p}}`).join(', ')})` : undefined)
    return template === undefined ? rest : snippetCompletion(template, rest)
  })
}

const properties = (names: readonly string[], detail: string): Completion[] => names.map((label) => ({ label, detail, type: 'property' }))

const ofRecords = offered(typings.members['records'], 'records.')
const globals: readonly Completion[] = [
  ...offered(typings.globals.filter((g) => g.name !== 'console')),
  snippetCompletion(templates['console.log'] ?? '', { label: 'console.log', type: 'function', info: 'What is printed is kept with the run.' }),
]
const owners: Readonly<Record<string, readonly Completion[]>> = {
  'records': ofRecords, 'ctx': offered(typings.members['Context']), 'ctx.user': properties(['id', 'email'], 'text'), 'ctx.event': properties(['id', 'kind'], 'text'),
  'crypto': offered(typings.members['crypto']), 'console': properties(['debug', 'log', 'info', 'warn', 'error'], ''), 'URL': offered(typings.members['URL']?.filter((m) => m.kind === 'function' && /^(canParse|parse)$/.test(m.name))),
}
const delivery = offered(typings.members['Delivery'])
const ofVerifiersConfig = properties(['slug', 'webhook_secret', 'webhook_secrets'], 'of a webhook’s verifier')

/** Own is what the component declares itself. */
export interface Own { inputs: readonly Declaration[]; config: readonly string[]; secrets: readonly string[] }

/** completionFor offers what a component may use: what the declarations have, the tenant's entity types and fields, and its own inputs, config and secrets. */
export function completionFor(names: () => Names | undefined, own: () => Own): CompletionSource {
  return (at) => {
    const line = at.state.doc.lineAt(at.pos)
    const before = line.text.slice(0, at.pos - line.from)
    return member(at, before, own()) ?? entity(at, before, names()) ?? field(at, names()) ?? variable(at) ?? null
  }
}

const after = (at: CompletionContext, from: number, options: readonly Completion[]): CompletionResult => ({ from, options: [...options], validFor: /^[\w$]*$/, ...(at.explicit ? {} : {}) })

function member(at: CompletionContext, before: string, own: Own): CompletionResult | undefined {
  const found = /([\w$.]+)\.([\w$]*)$/.exec(before)
  if (!found) return undefined
  const owner = found[1] ?? ''
  const lists: Record<string, readonly Completion[]> = {
    ...owners, secrets: properties(own.secrets, 'text'), config: [...properties(own.config, ''), ...ofVerifiersConfig],
    inputs: [...own.inputs.map((d) => ({ label: d.name, detail: d.required ? `${d.type}, required` : d.type, type: 'property' })), ...delivery],
  }
  const options = lists[owner]
  return options ? after(at, at.pos - (found[2] ?? '').length, options) : undefined
}

function entity(at: CompletionContext, before: string, names: Names | undefined): CompletionResult | undefined {
  const found = /records\.\w+\(\s*["'`]([\w]*)$/.exec(before)
  if (!found || !names) return undefined
  return after(at, at.pos - (found[1] ?? '').length, names.entities.map((e) => ({ label: e.name, detail: `${e.fields.length} fields`, type: 'class' })))
}

/** field offers the fields of the entity type of the call that the cursor is in. */
function field(at: CompletionContext, names: Names | undefined): CompletionResult | undefined {
  const word = at.matchBefore(/[\w$]*/)
  const text = at.state.doc.sliceString(Math.max(0, at.pos - 2000), at.pos)
  const call = /records\.(create|update|upsert|list)\(\s*["'`](\w+)["'`]((?:(?!records\.)[\s\S])*)$/.exec(text)
  if (!call || !names) return undefined
  const rest = call[3] ?? ''
  if (!/[{,]\s*[\w$]*$/.test(rest) || depth(rest) < 1) return undefined
  const of: EntityName | undefined = names.entities.find((e) => e.name === call[2])
  if (!of || (!at.explicit && word?.from === word?.to)) return undefined
  const filter = call[1] === 'list'
  if (filter && !/where\s*:\s*\{[^}]*$/.test(rest)) return after(at, word?.from ?? at.pos, [{ label: 'where', type: 'property', apply: 'where: {' }, { label: 'sort', type: 'property', apply: 'sort: [' }, { label: 'search', type: 'property', apply: 'search: "' }, { label: 'fields', type: 'property', apply: 'fields: [' }, { label: 'limit', type: 'property' }, { label: 'cursor', type: 'property' }])
  return after(at, word?.from ?? at.pos, of.fields.filter((f) => !filter || f.indexed).map((f) => ({ label: f.name, detail: f.required ? `${f.type}, required` : f.type, type: 'property', apply: `${f.name}: ` })))
}

function depth(text: string): number {
  let n = 0
  for (const c of text) n += c === '{' ? 1 : c === '}' ? -1 : 0
  return n
}

function variable(at: CompletionContext): CompletionResult | undefined {
  const word = at.matchBefore(/[\w$]+/)
  if ((!word && !at.explicit) || at.matchBefore(/\.[\w$]*/)) return undefined
  const own = localCompletionSource(at)
  const extra: Completion[] = [{ label: 'inputs', type: 'variable' }, { label: 'ctx', type: 'variable' }, { label: 'secrets', type: 'variable' }]
  return after(at, word?.from ?? at.pos, [...(own?.options ?? []), ...globals, ...extra.filter((e) => !own?.options.some((o) => o.label === e.label))])
}
