import { useQuery } from '@tanstack/react-query'
import { ask, askPage, type Gives, type MetaOf } from '../../api/client'
import type { DataEntity, DataField } from '../../api/admin'
import { asError } from '../../api/error'

/** A record: its members by name. */
export type Row = Gives<'GET data/{entity}'>[number]

/** textOf writes a value: a text as it is, anything else as JSON, nothing for null. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export const idOf = (row: Row): string => textOf(row['id'])

/** useEntities gives the entity types that the viewer may use, and the roles that they may share with. */
export function useEntities() {
  return useQuery({
    queryKey: ['data', 'entities'], staleTime: 30_000,
    queryFn: async ({ signal }) => {
      const page = await askPage('GET data', { signal })
      return { list: page.rows, roles: page.meta.roles, publicHere: page.meta.publicHere }
    },
  })
}

/** A record as it is read by id: with its version, and what the viewer may do with it. */
export interface Look { row: Row; meta: MetaOf<'GET data/{entity}/{id}'> }

export const lookKey = (entity: string, id: string) => ['data', 'record', entity, id] as const

export async function look(entity: string, id: string, signal?: AbortSignal): Promise<Look> {
  const page = await askPage('GET data/{entity}/{id}', { params: { entity, id }, signal })
  return { row: page.rows, meta: page.meta }
}

export function useLook(entity: string, id: string) {
  return useQuery({ queryKey: lookKey(entity, id), queryFn: ({ signal }) => look(entity, id, signal), retry: (n, e) => n < 2 && asError(e).isOffline })
}

/** useLabels names records by id. Those that the viewer may not see, and whose type they may not read, have no name. */
export function useLabels(entity: string, ids: readonly string[]): (id: string) => string | undefined {
  const wanted = [...new Set(ids)].sort().slice(0, 100)
  const query = useQuery({
    queryKey: ['data', 'labels', entity, wanted], enabled: wanted.length > 0, staleTime: 30_000, retry: false,
    queryFn: async ({ signal }) => new Map((await ask('GET labels', { query: { entity, ids: wanted.join(',') }, signal })).map((l) => [l.id, l.label])),
  })
  return (id) => query.data?.get(id)
}

/** findLabels searches records of an entity type by what they are called. */
export async function findLabels(entity: string, text: string, signal: AbortSignal): Promise<{ value: string; label: string }[]> {
  const list = await ask('GET labels', { query: { entity, search: text || undefined }, signal })
  return list.map((l) => ({ value: l.id, label: l.label }))
}

/** titleOf is what a record is called: as the server's labels. */
export function titleOf(entity: DataEntity, row: Row): string {
  const texts = entity.fields.filter((f) => f.type === 'text').map((f) => f.name)
  const text = (name: string) => textOf(row[name]).trim()
  const known = [['name'], ['first_name', 'last_name'], ['title'], ['label'], ['subject']].map((names) => names.filter((n) => texts.includes(n))).find((names) => names.length > 0)
  const parts = known ?? texts.slice(0, 1)
  return parts.map(text).filter(Boolean).join(' ') || idOf(row)
}

/** referenceOf is the entity type that a field points at, users included. */
export const referenceOf = (field: DataField): string | undefined => (field.type === 'reference' || field.type === 'multireference' ? field.entity ?? undefined : undefined)
