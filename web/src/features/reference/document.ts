/** What the page reads of an OpenAPI 3.1 document. The server makes it; see docs/contract.md, S18. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  enum?: unknown[]
  const?: unknown
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  oneOf?: Schema[]
  allOf?: Schema[]
  readOnly?: boolean
  minimum?: number
  maximum?: number
  default?: unknown
}

export interface Parameter { $ref?: string; name: string; in: 'path' | 'query' | 'header'; required?: boolean; description?: string; schema: Schema }
export interface Response { $ref?: string; description: string; content?: Record<string, { schema: Schema }> }

export interface Operation {
  tags: string[]
  operationId: string
  summary: string
  description?: string
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, Response>
  security: Record<string, unknown>[]
}

export interface Doc {
  openapi: string
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; parameters: Record<string, Parameter>; responses: Record<string, Response> }
}

/** One operation with its place. */
export interface Entry { method: string; path: string; operation: Operation }

/** entriesOf lists the operations of a document by tag, in the order of the document. */
export function entriesOf(doc: Doc): { tag: string; about: string; list: Entry[] }[] {
  const all = Object.entries(doc.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })))
  return doc.tags.map((t) => ({ tag: t.name, about: t.description, list: all.filter((e) => e.operation.tags.includes(t.name)) })).filter((t) => t.list.length > 0)
}

/** resolve follows a reference to a schema, once. */
export function resolve(doc: Doc, schema: Schema): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '')
  return name === undefined ? schema : doc.components.schemas[name] ?? {}
}

export function parametersOf(doc: Doc, operation: Operation): Parameter[] {
  return (operation.parameters ?? []).map((p) => (p.$ref === undefined ? p : doc.components.parameters[p.$ref.replace('#/components/parameters/', '')] ?? p))
}

export function responseOf(doc: Doc, response: Response): Response {
  return response.$ref === undefined ? response : doc.components.responses[response.$ref.replace('#/components/responses/', '')] ?? response
}

/** bodyOf is the schema of the JSON body that an operation takes. */
export function bodyOf(doc: Doc, operation: Operation): Schema | undefined {
  const schema = operation.requestBody?.content['application/json']?.schema
  return schema && resolve(doc, schema)
}

/** typeWords says what values a schema takes: "text", "one of new, won", "list of …". */
export function typeWords(doc: Doc, given: Schema): string {
  const schema = resolve(doc, given)
  if (given.$ref) return given.$ref.replace('#/components/schemas/', '')
  const types = (Array.isArray(schema.type) ? schema.type : schema.type === undefined ? [] : [schema.type]).filter((t) => t !== 'null')
  const orNull = Array.isArray(schema.type) && schema.type.includes('null') ? ' or null' : ''
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return `one of ${schema.enum.filter((v) => v !== null).map(String).join(', ')}${orNull}`
  if (types.length === 1 && types[0] === 'array') return `list of ${schema.items ? typeWords(doc, schema.items) : 'values'}${orNull}`
  return (types.length === 0 ? 'any value' : types.map((t) => (t === 'string' && schema.format ? schema.format : t)).join(' or ')) + orNull
}

/** exampleOf makes a value that the schema takes. Required members of an object come first, then others up to a few. */
export function exampleOf(doc: Doc, given: Schema, name = '', depth = 0): unknown {
  const schema = resolve(doc, given)
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined) return schema.default
  if (schema.enum) return schema.enum.find((v) => v !== null) ?? null
  if (schema.oneOf?.[0]) return exampleOf(doc, schema.oneOf[0], name, depth)
  const type = Array.isArray(schema.type) ? schema.type.find((t) => t !== 'null') : schema.type
  switch (type ?? '') {
    case 'object': {
      const required = schema.required ?? []
      const all = Object.entries(schema.properties ?? {})
      const wanted = [...all.filter(([n]) => required.includes(n)), ...all.filter(([n, s]) => !required.includes(n) && n !== 'owner_id' && !isReference(s)).slice(0, Math.max(0, 3 - required.length))]
      return depth > 3 ? {} : Object.fromEntries(wanted.map(([n, s]) => [n, exampleOf(doc, s, n, depth + 1)]))
    }
    case 'array': return schema.items && depth < 4 ? [exampleOf(doc, schema.items, name, depth + 1)] : []
    case 'number': return 42
    case 'integer': return Math.max(1, schema.minimum ?? 1)
    case 'boolean': return true
    case 'string': return textExample(schema, name)
    default: return {}
  }
}

function isReference(schema: Schema): boolean { return schema.format === 'uuid' || schema.items?.format === 'uuid' }

function textExample(schema: Schema, name: string): string {
  switch (schema.format ?? '') {
    case 'date': return '2026-01-31'
    case 'date-time': return '2026-01-31T12:00:00Z'
    case 'uuid': return '01a1fcd5-0000-7000-8000-000000000000'
    default:
  }
  if (/password/i.test(name)) return 'a long enough password'
  if (/e-?mail/i.test(name)) return 'ada@example.com'
  if (/^access$/.test(name)) return 'read'
  return name === '' ? 'text' : `example ${name.replaceAll('_', ' ')}`
}
