import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ask } from '../../api/client'
import type { SessionInfo } from '../../api/admin'
import { asError, type ApiError } from '../../api/error'
import { Button } from '../../ui/button'
import { Person } from '../../ui/face'
import { Chip } from '../../ui/list'
import { DataTable, type Column } from '../../ui/table'
import { Ago, Time } from '../../ui/time'
import { toast } from '../../ui/toast'

/** agentWords shortens a User-Agent to what people tell browsers apart by. */
export function agentWords(agent: string): string {
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\/[\d.]+/.exec(agent.replace(/Version\/[\d.]+ /, ''))?.[1]
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(agent)?.[1]
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', 'Mac OS X': 'macOS' }
  if (!browser) return agent.slice(0, 40) || 'not said'
  return `${names[browser] ?? browser}${system ? ` on ${names[system] ?? system}` : ''}`
}

/** SessionTable lists sessions, one's own or those of the staff, and ends them. */
export function SessionTable({ own, rows, error, loading, onRetry, footer }: { own?: boolean; rows: readonly SessionInfo[] | undefined; error: ApiError | undefined; loading: boolean; onRetry: () => void; footer?: ReactNode }) {
  const client = useQueryClient()
  const end = useMutation({
    mutationFn: (id: string) => (own ? ask('DELETE account/sessions/{id}', { params: { id } }) : ask('DELETE sessions/{id}', { params: { id } })),
    onSuccess: async () => { toast.show({ text: 'The session has ended.' }); await client.invalidateQueries({ queryKey: own ? ['account'] : ['sessions'] }) },
    onError: (thrown) => { toast.show({ arch: 'shut', text: `The session goes on: ${asError(thrown).message}` }) },
  })
  const columns: Column<SessionInfo>[] = [
    ...(own ? [] : [{ key: 'user', head: 'User', cell: (s: SessionInfo) => <Person name={s.user.name || s.user.email} />, narrow: 'title' as const }]),
    { key: 'agent', head: 'Browser', cell: (s) => <span className="row"><span className="trunc" title={s.userAgent}>{agentWords(s.userAgent)}</span>{s.current && <Chip kind="acc">this one</Chip>}{s.stage !== 'full' && <Chip kind="warn">second factor due</Chip>}{s.actingAs && <Chip kind="warn">acts as {s.actingAs}</Chip>}</span>, narrow: own ? 'title' : 'sub' },
    { key: 'ip', head: 'Address', width: 170, mono: true, cell: (s) => s.ip, ...(own ? { narrow: 'sub' as const } : {}) },
    { key: 'since', head: 'Signed in', width: 130, cell: (s) => <Time at={s.signedInAt} /> },
    { key: 'used', head: 'Last request', width: 120, num: true, cell: (s) => <Ago at={s.lastUsedAt} />, narrow: 'subend' },
    { key: 'expires', head: 'Ends', width: 130, num: true, cell: (s) => <Time at={s.expiresAt} /> },
    { key: 'end', head: <span className="hidden-words">Action</span>, width: 90, num: true, narrow: 'end', cell: (s) => (s.current ? null : <Button small kind="danger" aria-label={`End the session of ${s.user.name || s.user.email}, ${agentWords(s.userAgent)}`} busy={end.isPending && end.variables === s.id} onClick={() => { end.mutate(s.id) }}>End</Button>) },
  ]
  return <DataTable label={own ? 'Your sessions' : 'Sessions of the staff'} columns={columns} rows={rows} rowKey={(s) => s.id} error={error} what="The sessions could not be loaded." loading={loading} onRetry={onRetry} footer={footer} />
}
