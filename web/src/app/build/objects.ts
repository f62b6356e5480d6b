import { useQuery, useQueryClient } from '@tanstack/react-query'
import { ask, askPage } from '../../api/client'
import type { ConfigApplied } from '../../api/admin'
import { asError, type ApiError } from '../../api/error'
import { useLasting } from '../lasting'

/** Kinds of objects of the configuration that the Build pages edit. */
export type ObjectKind = 'module' | 'logic_component' | 'automation' | 'custom_endpoint'

/** One object as it is stored, with the version that an edit is made against. */
export interface Stored<T> { name: string; version: string; value: T }

/** absent is the version of an object that does not exist. */
export const absent = 'absent'

/** A declared input or output (contract N1). */
export interface Declaration { name: string; type: 'text' | 'number' | 'boolean' | 'json'; required?: boolean; pattern?: string | undefined }

/** As whom something runs (contract X2). */
export type ExecutionContext = 'caller' | 'system' | { specific_user: string }

/** A logic component as the configuration has it. A secret that is null is kept. */
export interface ComponentValue { inputs?: Declaration[]; outputs?: Declaration[]; execution_context?: ExecutionContext; timeout_ms?: number; config?: Record<string, unknown>; secrets?: Record<string, string | null>; source: string }

/** A module as the configuration has it. */
export interface ModuleValue { source: string }

/** A node of a flow as the configuration has it. */
export interface FlowNode { id?: string; type: string; [member: string]: unknown }

/** An automation as the configuration has it. */
export interface AutomationValue { trigger?: string; input_schema?: Declaration[]; outputs?: Declaration[]; on_skip?: 'skip' | 'fail' | undefined; execution_context?: ExecutionContext; nodes: FlowNode[] }

/** A custom endpoint as the configuration has it. Secrets are written and never read. */
export interface EndpointValue {
  target: { component: string } | { automation: string }
  auth?: 'api_key' | 'token' | 'signed'
  reply?: 'result' | 'receipt'
  verifier?: string
  webhook_secret?: string
  previous_webhook_secret?: string
  allow_get?: boolean
  run_as?: string
  log_requests?: boolean
  external_users?: boolean
  rate_limit_per_minute?: number
  max_body_bytes?: number
}

/** without leaves the object's own name out of its value: the edit says it anew. */
function without<T>(value: unknown): T {
  return Object.fromEntries(Object.entries(value as Record<string, unknown>).filter(([name]) => name !== 'name' && name !== 'slug')) as T
}

export const objectsKey = (kind: ObjectKind) => ['config', kind] as const

/** useObjects lists all objects of a kind by name. */
export function useObjects<T>(kind: ObjectKind) {
  return useQuery({
    queryKey: objectsKey(kind),
    queryFn: async ({ signal }) => {
      const all: Stored<T>[] = []
      let cursor: string | undefined
      // A tenant has some hundred at most; the bound stops a list that never ends.
      for (let page = 0; page < 20; page++) {
        const { rows, meta } = await askPage('GET config/{kind}', { params: { kind }, query: { limit: 200, cursor }, signal })
        all.push(...rows.map((o) => ({ name: o.name, version: o.version, value: without<T>(o.value) })))
        cursor = meta.nextCursor ?? undefined
        if (cursor === undefined) break
      }
      return all
    },
  })
}

/** useObject loads one object; undefined data stands for one that does not exist. */
export function useObject<T>(kind: ObjectKind, name: string) {
  return useQuery({
    queryKey: [...objectsKey(kind), name],
    queryFn: async ({ signal }): Promise<Stored<T> | null> => {
      try {
        const found = await ask('GET config/{kind}/{name}', { params: { kind, name }, signal })
        return { name: found.name, version: found.version, value: without<T>(found.value) }
      } catch (thrown) {
        if (asError(thrown).isMissing) return null
        throw thrown
      }
    },
  })
}

/** What one save changes: value null removes the object. */
export interface Edit { kind: ObjectKind; name: string; value: unknown; against?: string | undefined }

/** useSave makes edits, all or none, and loads anew what they touch. */
export function useSave() {
  const client = useQueryClient()
  return useLasting<ConfigApplied, ApiError, Edit[]>({
    mutationFn: async (edits) => {
      try {
        return await ask('POST config/apply', { body: { edits: edits.map((e) => ({ kind: e.kind, name: e.name, value: e.value === null ? null : { [e.kind === 'custom_endpoint' ? 'slug' : 'name']: e.name, ...(e.value as object) }, ...(e.against ? { against: e.against } : {}) })) } })
      } catch (thrown) { throw asError(thrown) }
    },
    onSuccess: async () => {
      await Promise.all(['config', 'names', 'endpoints', 'history'].map((key) => client.invalidateQueries({ queryKey: [key] })))
    },
    gcTime: 0, // what is saved may have secrets
  })
}

/** problemsOf reads what a refused save says is wrong: a path in the object, the words, and the line of a source. */
export function problemsOf(error: ApiError | undefined): { path: string; line: number; message: string }[] {
  const list = error?.details['problems']
  if (!Array.isArray(list)) return []
  return list.flatMap((one: unknown) => {
    if (one === null || typeof one !== 'object') return []
    const p = one as { path?: unknown; line?: unknown; reason?: unknown; text?: unknown }
    const text = (v: unknown) => (typeof v === 'string' ? v : '')
    return [{ path: text(p.path).replace(/^edits\[\d+\]\.?/, ''), line: typeof p.line === 'number' ? p.line : 0, message: text(p.reason) || text(p.text) }]
  })
}
