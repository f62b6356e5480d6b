import { snippetCompletion, type Completion, type CompletionContext, type CompletionResult, type CompletionSource } from '@codemirror/autocomplete'
import { localCompletionSource } from '@codemirror/lang-javascript'
import type { EntityName, Names } from '../../app/build/names'
import type { Declaration } from '../../app/build/objects'

const method = (label: string, template: string, detail: string, info: string): Completion => snippetCompletion(template, { label, detail, info, type: 'function' })

/** What components may call (contract J4 to J6). */
const records: readonly Completion[] = [
  method('get', 'get("${entity}", ${id})', 'record or null', 'The record; null when it is absent or hidden.'),
  method('list', 'list("${entity}", {where: {${}}, limit: ${50}})', '{records, nextCursor}', 'Records whose indexed or unique fields have these values.'),
  method('create', 'create("${entity}", {${}})', 'record', 'Makes a record.'),
  method('update', 'update("${entity}", ${id}, {${}})', 'record', 'Changes these fields.'),
  method('upsert', 'upsert("${entity}", "${field}", {${}})', 'record', 'Changes the record with this value of a unique field, or makes one.'),
  method('createMany', 'createMany("${entity}", ${list})', '[record]', 'Makes up to 200 records, all or none.'),
  method('updateMany', 'updateMany("${entity}", ${list})', '[record]', 'Changes up to 200 records, a list of {id, fields}, all or none.'),
  method('delete', 'delete("${entity}", ${id})', '{id, deleted: true}', 'Deletes a record.'),
  method('share', 'share("${entity}", ${id}, {user: ${user}, access: "read"})', 'share', 'Shares a record with a user or a role.'),
  method('unshare', 'unshare("${entity}", ${id}, {user: ${user}})', '{user, role, deleted}', 'Takes a share back.'),
]
const context: readonly Completion[] = [
  { label: 'user', detail: '{id, email}', info: 'The user that the component runs as.', type: 'property' },
  { label: 'tenant', detail: 'text', type: 'property' },
  { label: 'requestId', detail: 'text', info: 'Finds the request in the audit log.', type: 'property' },
  { label: 'event', detail: '{id, kind} or null', info: 'The webhook’s event.', type: 'property' },
]
const ofUser: readonly Completion[] = [{ label: 'id', type: 'property' }, { label: 'email', type: 'property' }]
const ofEvent: readonly Completion[] = [{ label: 'id', type: 'property' }, { label: 'kind', type: 'property' }]
const globals: readonly Completion[] = [
  { label: 'records', detail: 'the tenant’s records', type: 'variable' },
  method('fail', 'fail("${message}", {status: ${422}, code: "${CODE}"})', 'ends the run', 'Ends the run with this message, status (400 to 599) and code. Nothing is kept.'),
  method('hmacSha256', 'hmacSha256(${key}, ${data})', 'text', 'HMAC-SHA256 in hex, base64 or base64url (third argument).'),
  method('hmacSha1', 'hmacSha1(${key}, ${data})', 'text', 'HMAC-SHA1, for providers that have nothing better.'),
  method('ed25519Verify', 'ed25519Verify(${publicKey}, ${data}, ${signature})', 'boolean', 'Whether the signature is right. Key and signature are bytes, hex or base64.'),
  method('ecdsaP256Verify', 'ecdsaP256Verify(${publicKey}, ${data}, ${signature})', 'boolean', 'Whether the signature of SHA-256 is right. Key and signature are bytes or base64.'),
  method('respond', 'respond({status: ${200}, headers: {"Content-Type": "${text/plain}"}, body: ${text}})', 'an answer', 'Returned, it is the whole answer to the call.'),
  method('safeCompare', 'safeCompare(${a}, ${b})', 'boolean', 'Compares in constant time.'),
  method('checkTimestampFresh', 'checkTimestampFresh(${unixSeconds}, ${300})', 'boolean', 'Whether a time is at most this many seconds away.'),
  method('console.log', 'console.log(${})', '', 'Is kept with the run.'),
]
const config: readonly Completion[] = [
  { label: 'slug', type: 'property' }, { label: 'webhook_secret', type: 'property' }, { label: 'webhook_secrets', detail: '[current, previous]', type: 'property' },
]
const verifier: readonly Completion[] = [
  { label: 'rawBody', detail: 'text', type: 'property' }, { label: 'rawBytes', detail: 'bytes', type: 'property' },
  { label: 'headers', detail: 'names in lower case', type: 'property' }, { label: 'config', detail: 'slug and secrets', type: 'property' },
  { label: 'method', detail: 'POST or GET', type: 'property' }, { label: 'query', detail: 'names and values', type: 'property' },
  { label: 'url', detail: 'the endpoint’s address, with the query', type: 'property' },
]

/** completionFor offers what a component may use: records, ctx, the helpers, and the tenant's own entity types, fields and inputs. */
export function completionFor(names: () => Names | undefined, declared: () => readonly Declaration[]): CompletionSource {
  return (at) => {
    const line = at.state.doc.lineAt(at.pos)
    const before = line.text.slice(0, at.pos - line.from)
    return member(at, before, declared()) ?? entity(at, before, names()) ?? field(at, names()) ?? variable(at) ?? null
  }
}

const after = (at: CompletionContext, from: number, options: readonly Completion[]): CompletionResult => ({ from, options: [...options], validFor: /^[\w$]*$/, ...(at.explicit ? {} : {}) })

function member(at: CompletionContext, before: string, declared: readonly Declaration[]): CompletionResult | undefined {
  const found = /([\w$.]+)\.([\w$]*)$/.exec(before)
  if (!found) return undefined
  const owner = found[1] ?? ''
  const lists: Record<string, readonly Completion[]> = {
    records, ctx: context, 'ctx.user': ofUser, 'ctx.event': ofEvent, config,
    inputs: [...declared.map((d) => ({ label: d.name, detail: d.required ? `${d.type}, required` : d.type, type: 'property' })), ...verifier],
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
  const call = /records\.(create|update|list)\(\s*["'`](\w+)["'`]((?:(?!records\.)[\s\S])*)$/.exec(text)
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
  if (!word && !at.explicit) return undefined
  const own = localCompletionSource(at)
  const extra: Completion[] = [{ label: 'inputs', type: 'variable' }, { label: 'ctx', type: 'variable' }]
  return after(at, word?.from ?? at.pos, [...(own?.options ?? []), ...globals, ...extra.filter((e) => !own?.options.some((o) => o.label === e.label))])
}
