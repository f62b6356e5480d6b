import { useQuery, useQueryClient } from '@tanstack/react-query'
import { ask, askPage, type Gives } from '../api/client'
import { asError, type ApiError } from '../api/error'
import { useLasting } from './lasting'

/** Kinds of objects of the configuration, as the server names them. */
export type ObjectKind =
  | 'tenant' | 'entity' | 'user_fields' | 'role' | 'permission_set' | 'sharing_rule' | 'user'
  | 'module' | 'logic_component' | 'automation' | 'custom_endpoint' | 'email_template'

/** One object as it is stored, with the version that an edit is made against. */
export interface Stored<T> { name: string; version: string; value: T }

/** absent is the version of an object that does not exist. */
export const absent = 'absent'

/** Plan is what a change would do; Applied what it did, or the work that goes on with it. */
export type Plan = Gives<'POST config/plan'>
export type Applied = Gives<'POST config/apply'>

/** What one save changes: value null removes the object, or deactivates a user. */
export interface Edit { kind: ObjectKind; name?: string; value?: unknown; against?: string; activate?: boolean }

export const objectsKey = (kind: ObjectKind) => ['config', kind] as const

/** useObjects lists all objects of a kind by name. A tenant has some hundred of a kind; the bound ends a list that never does. */
export function useObjects<T>(kind: ObjectKind, enabled = true) {
  return useQuery({
    queryKey: objectsKey(kind), enabled,
    queryFn: async ({ signal }) => {
      const all: Stored<T>[] = []
      let cursor: string | undefined
      for (let page = 0; page < 20; page++) {
        const { rows, meta } = await askPage('GET config/{kind}', { params: { kind }, query: { limit: 200, cursor }, signal })
        all.push(...rows.map((o) => ({ name: o.name, version: o.version, value: o.value as T })))
        cursor = meta.nextCursor ?? undefined
        if (cursor === undefined) break
      }
      return all
    },
  })
}

/** useObject loads one object; null data stands for one that does not exist. */
export function useObject<T>(kind: ObjectKind, name: string, enabled = true) {
  return useQuery({
    queryKey: [...objectsKey(kind), name], enabled,
    queryFn: async ({ signal }): Promise<Stored<T> | null> => {
      try {
        const found = await ask('GET config/{kind}/{name}', { params: { kind, name }, signal })
        return { name: found.name, version: found.version, value: found.value as T }
      } catch (thrown) {
        if (asError(thrown).isMissing) return null
        throw thrown
      }
    },
  })
}

/** planOf asks what edits would do, and changes nothing. */
export async function planOf(edits: readonly Edit[]): Promise<Plan> { return ask('POST config/plan', { body: { edits: [...edits] } }) }

/** useSave makes edits, all or none, and loads anew what they touch. */
export function useSave() {
  const client = useQueryClient()
  return useLasting<Applied, ApiError, readonly Edit[]>({
    mutationFn: async (edits) => {
      try { return await ask('POST config/apply', { body: { edits: [...edits] } }) } catch (thrown) { throw asError(thrown) }
    },
    onSuccess: async () => {
      await Promise.all(['config', 'users', 'entities', 'names', 'endpoints', 'history', 'keys', 'work'].map((key) => client.invalidateQueries({ queryKey: [key] })))
    },
  })
}

/** One thing that a refused save says is wrong: a path in the object, the words, and the line of a source. */
export interface Problem { path: string; line: number; message: string }

/** problemsOf reads them from the error of a plan or a save. */
export function problemsOf(error: ApiError | undefined): Problem[] {
  const list = error?.details['problems']
  if (!Array.isArray(list)) return []
  return list.flatMap((one: unknown) => {
    if (one === null || typeof one !== 'object') return []
    const p = one as { path?: unknown; line?: unknown; reason?: unknown; text?: unknown }
    const text = (v: unknown) => (typeof v === 'string' ? v : '')
    return [{ path: text(p.path).replace(/^edits\[\d+\]\.?/, ''), line: typeof p.line === 'number' ? p.line : 0, message: text(p.reason) || text(p.text) }]
  })
}

/** problemAt gives the words about one member, for its field. */
export function problemAt(problems: readonly Problem[], path: string): string | undefined { return problems.find((p) => p.path === path)?.message }
