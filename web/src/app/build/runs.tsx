import { useQuery } from '@tanstack/react-query'
import { ask, askPage, type QueryOf } from '../../api/client'
import { asError } from '../../api/error'
import { Arch } from '../../ui/arch'
import { Link } from '../../ui/link'
import { Empty, ErrorState, Skeleton } from '../../ui/states'
import { Time } from '../../ui/time'
import { paths } from '../paths'
import { usWords } from './outcome'
import type { RunLine } from './run'

/** useRuns loads the newest runs of a filter. */
export function useRuns(filter: QueryOf<'GET runs'>, enabled = true) {
  return useQuery({ queryKey: ['runs', filter], queryFn: ({ signal }) => askPage('GET runs', { query: filter, signal }), enabled, refetchInterval: 10_000 })
}

/** useRun loads one run. */
export function useRun(id: string | undefined) {
  return useQuery({ queryKey: ['run', id], queryFn: ({ signal }) => ask('GET runs/{id}', { params: { id: id ?? '' }, signal }), enabled: id !== undefined })
}

/** RunStatus is the gate of a run: it went through, was refused, or was a repeat. */
export function RunStatus({ run }: { run: RunLine }) {
  const words = run.status === 'failed' ? run.error?.code ?? 'failed' : run.status
  return <span className={`row ${run.status === 'failed' ? 'bad' : ''}`}><Arch state={run.status === 'succeeded' ? 'open' : run.status === 'failed' ? 'shut' : 'none'} />{words}{run.skipped && <span className="muted trunc" title={run.skipped}>{run.skipped}</span>}</span>
}

/** LastRuns are the newest runs of something, on its page. */
export function LastRuns({ filter, what }: { filter: QueryOf<'GET runs'>; what: string }) {
  const runs = useRuns({ ...filter, limit: 50 })
  if (runs.error) return <ErrorState what="The runs could not be loaded." error={asError(runs.error)} onRetry={() => void runs.refetch()} />
  if (!runs.data) return <Skeleton rows={4} label="Loading runs" />
  if (runs.data.rows.length === 0) return <Empty title="No runs yet">{what}</Empty>
  const others = filter.endpoint === undefined // else each row would say the same
  return (
    <table className="tbl flat fix runs" aria-label="Runs">
      <colgroup><col style={{ width: 130 }} /><col style={{ width: 200 }} />{others && <col style={{ width: 150 }} />}<col /><col style={{ width: 90 }} /></colgroup>
      <thead><tr><th scope="col">Time</th><th scope="col">Outcome</th>{others && <th scope="col">Endpoint</th>}<th scope="col">As, and why it failed</th><th scope="col" className="num">Took</th></tr></thead>
      <tbody>{runs.data.rows.map((run) => (
        <tr key={run.id}>
          <td><Link to={paths.runs(run.id)}><Time at={run.startedAt} /></Link></td>
          <td><RunStatus run={run} /></td>
          {others && <td className="trunc">{run.endpoint ?? <span className="muted">–</span>}</td>}
          <td className="trunc second" title={run.error?.message}>{run.user?.email}{run.user && run.error && ': '}{run.error && `${run.error.message}${run.error.line ? ` (${run.error.line}:${run.error.column})` : ''}`}</td>
          <td className="num">{usWords(run.tookUs)}</td>
        </tr>
      ))}</tbody>
    </table>
  )
}
