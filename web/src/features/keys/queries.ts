import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { KeyInfo } from '../../api/admin'
import { ask, askPage, type Takes } from '../../api/client'
import { asError } from '../../api/error'
import { useLasting } from '../../app/lasting'
import { usePaged } from '../../ui/paged'

const key = ['keys'] as const

/** useKeys is one page of the keys that the viewer sees, newest first; it is asked again every 10 s, for what was used. */
export function useKeys() {
  return usePaged({ key, load: (cursor, signal) => askPage('GET keys', { query: { cursor }, signal }) })
}

/** useKey is one key, asked again every second while waiting is set: for its first call. */
export function useKey(id: string | undefined, waiting = false) {
  const query = useQuery({
    queryKey: [...key, 'one', id], enabled: id !== undefined, refetchInterval: waiting ? 1000 : false,
    queryFn: async ({ signal }): Promise<KeyInfo | null> => (await ask('GET keys', { query: { id }, signal }))[0] ?? null,
  })
  return { key: query.data, error: query.error ? asError(query.error) : undefined }
}

export function useCreateKey() {
  const client = useQueryClient()
  return useLasting({ mutationFn: (body: Takes<'POST keys'>) => ask('POST keys', { body }), onSuccess: () => client.invalidateQueries({ queryKey: key }), gcTime: 0 })
}

export function useChangeKey(id: string) {
  const client = useQueryClient()
  return useLasting({ mutationFn: (body: Takes<'PATCH keys/{id}'>) => ask('PATCH keys/{id}', { params: { id }, body }), onSuccess: () => client.invalidateQueries({ queryKey: key }) })
}

export function useDeleteKey() {
  const client = useQueryClient()
  return useLasting({ mutationFn: (id: string) => ask('DELETE keys/{id}', { params: { id } }), onSuccess: () => client.invalidateQueries({ queryKey: key }) })
}

/** useLastRequests are the key's last five entries of the audit log. */
export function useLastRequests(id: string, enabled: boolean) {
  const query = useQuery({ queryKey: ['audit', 'of-key', id], enabled, queryFn: ({ signal }) => ask('GET audit', { query: { key: id, limit: 5 }, signal }) })
  return { rows: query.data, error: query.error ? asError(query.error) : undefined, loading: query.isPending }
}

/** The first entity of which the viewer reads records, for a sample that answers something. */
export function useSampleEntity() {
  const query = useQuery({ queryKey: ['data', 'entities', 'first'], staleTime: 60_000, queryFn: ({ signal }) => ask('GET data', { signal }) })
  return query.data?.[0]?.name
}
