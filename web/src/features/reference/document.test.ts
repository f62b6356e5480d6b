import { describe, expect, it } from 'vitest'
import { bodyOf, entriesOf, exampleOf, parametersOf, typeWords, type Doc, type Schema } from './document'

const doc: Doc = {
  openapi: '3.1.0', info: { title: 'T', version: '1', description: '' }, servers: [{ url: 'https://t.example/public/v1' }],
  tags: [{ name: 'contact', description: 'records' }, { name: 'empty', description: '' }],
  paths: {
    '/data/contact/{id}': {
      get: { tags: ['contact'], operationId: 'contact.get', summary: 'Read', parameters: [{ $ref: '#/components/parameters/id' } as never], responses: {}, security: [] },
      patch: { tags: ['contact'], operationId: 'contact.update', summary: 'Change', requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/contact.update' } } } }, responses: {}, security: [] },
    },
  },
  components: {
    schemas: { 'contact.update': { type: 'object', required: ['name'], properties: { name: { type: 'string' }, stage: { type: ['string', 'null'], enum: ['new', null] }, account: { type: 'string', format: 'uuid' } } } },
    parameters: { id: { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } } },
    responses: {},
  },
}

describe('an OpenAPI document', () => {
  it('is listed by tag, without empty ones', () => {
    expect(entriesOf(doc).map((t) => [t.tag, t.list.map((e) => `${e.method} ${e.path}`)])).toEqual([['contact', ['GET /data/contact/{id}', 'PATCH /data/contact/{id}']]])
  })
  it('has its references followed', () => {
    const operations = doc.paths['/data/contact/{id}']
    expect(parametersOf(doc, operations!['get']!)[0]?.name).toBe('id')
    expect(bodyOf(doc, operations!['patch']!)?.required).toEqual(['name'])
  })
  it('gives examples that its schemas take, without invented references', () => {
    expect(exampleOf(doc, { $ref: '#/components/schemas/contact.update' })).toEqual({ name: 'example name', stage: 'new' })
    const cases: [Schema, unknown][] = [[{ type: ['number', 'null'] }, 42], [{ type: 'string', format: 'date' }, '2026-01-31'], [{ type: 'array', items: { type: 'string', enum: ['a'] } }, ['a']], [{ type: 'integer', minimum: 1, default: 50 }, 50]]
    for (const [schema, want] of cases) expect(exampleOf(doc, schema)).toEqual(want)
  })
  it('has its types in words', () => {
    expect(typeWords(doc, { type: ['string', 'null'], enum: ['new', null] })).toBe('one of new or null')
    expect(typeWords(doc, { type: 'array', items: { type: 'string', format: 'uuid' } })).toBe('list of uuid')
    expect(typeWords(doc, { type: ['object', 'array'] })).toBe('object or array')
  })
})
