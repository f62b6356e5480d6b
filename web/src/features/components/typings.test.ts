import { CompletionContext } from '@codemirror/autocomplete'
import { EditorState } from '@codemirror/state'
import { expect, it } from 'vitest'
import { completionFor, templates } from './complete'
import { parse, typings } from './typings'

it('reads variables, functions, classes and interfaces', () => {
  const found = parse(`
/** Who calls. */
interface Context {
  readonly user: { readonly id: string };
  /** Where. */
  readonly tenant: string;
}
type Bytes = string | ArrayBuffer;
declare const box: {
  /** Takes one. */
  take<E extends Name>(entity: E, options?: {
    where?: Map<string, number>; limit?: number;
  }): { list: E[] };
  size: number;
};
/** A digest. */
declare function digest(data: Bytes, key: { a: string, b: number }, encoding?: string): string;
declare const config: Readonly<Record<string, any>>;
declare class Place {
  constructor(text: string);
  static parse(text: string): Place | null;
  host: string;
}
`)
  expect(found.globals.map((g) => [g.name, g.kind, g.params])).toEqual([['box', 'variable', []], ['digest', 'function', ['data', 'key']], ['config', 'variable', []], ['Place', 'class', []]])
  expect(found.members['Context']?.map((m) => [m.name, m.type, m.doc])).toEqual([['user', '{ readonly id: string }', ''], ['tenant', 'string', 'Where.']])
  expect(found.members['box']?.map((m) => [m.name, m.kind, m.params, m.type])).toEqual([['take', 'function', ['entity'], '{ list: E[] }'], ['size', 'property', [], 'number']])
  expect(found.members['Place']?.map((m) => m.name)).toEqual(['parse', 'host'])
  expect(found.globals[1]?.doc).toBe('A digest.')
})

it('knows what the declarations of components have', () => {
  expect(typings.members['records']?.map((m) => m.name)).toEqual(['get', 'list', 'create', 'update', 'delete', 'createMany', 'updateMany', 'upsert', 'share', 'unshare'])
  expect(typings.members['Context']?.map((m) => m.name)).toEqual(['user', 'tenant', 'requestId', 'event'])
  expect(typings.members['Delivery']?.map((m) => m.name)).toContain('rawBody')
  expect(typings.globals.map((g) => g.name)).toEqual(expect.arrayContaining(['records', 'config', 'fail', 'respond', 'sha256', 'hmacSha1', 'URL', 'URLSearchParams', 'console', 'crypto']))
})

it('has templates for names that there are', () => {
  const names = [...typings.globals.map((g) => g.name), ...(typings.members['records'] ?? []).map((m) => `records.${m.name}`), 'console.log']
  for (const name of Object.keys(templates)) expect(names).toContain(name)
})

it('offers what stands behind a name', async () => {
  const complete = completionFor(() => undefined, () => ({ inputs: [{ name: 'amount', type: 'number', required: true }], config: ['tax'], secrets: ['PAYMENT_KEY'] }))
  const offered = async (doc: string) => (await complete(new CompletionContext(EditorState.create({ doc }), doc.length, true)))?.options.map((o) => o.label) ?? []
  expect(await offered('secrets.')).toEqual(['PAYMENT_KEY'])
  expect(await offered('config.')).toContain('tax')
  expect(await offered('inputs.')).toEqual(expect.arrayContaining(['amount', 'rawBody']))
  expect(await offered('ctx.')).toContain('requestId')
  expect(await offered('crypto.')).toContain('randomUUID')
  expect(await offered('URL.')).toEqual(['canParse', 'parse'])
  expect(await offered('sha')).toContain('sha256')
  expect(await offered('nothing.')).toEqual([])
})
