import { useQuery } from '@tanstack/react-query'
import { askPage } from '../../api/client'
import { asError } from '../../api/error'
import { paths } from '../../app/paths'
import { useMay } from '../../app/session'
import { Link } from '../../ui/link'
import { Status } from '../../ui/list'
import { Empty, ErrorState, Skeleton } from '../../ui/states'
import { Time } from '../../ui/time'

/** RequestsTab lists the calls about a record that the audit log has, newest first; changes leaves out those that only read, or were refused. */
export function RequestsTab({ id, changes }: { id: string; changes?: boolean }) {
  const may = useMay(['manage_endpoints'])
  const query = useQuery({
    queryKey: ['data', 'requests', id], enabled: may, retry: false,
    queryFn: ({ signal }) => askPage('GET audit', { query: { path: id, limit: 50 }, signal }),
  })
  if (!may) return <Empty title="The audit log is not open to you" arch="shut">It has every call about this record, with its request and answer. It needs the system permission manage_endpoints.</Empty>
  if (query.error) return <ErrorState what="The audit log could not be read." error={asError(query.error)} onRetry={() => void query.refetch()} />
  if (!query.data) return <Skeleton rows={5} label="Looking into the audit log" />
  const rows = query.data.rows.filter((r) => !changes || (r.method !== 'GET' && r.status < 300))
  if (rows.length === 0) return <Empty title={changes ? 'No change in the audit log' : 'No call in the audit log'}>{changes ? 'Changes of this record stand here, with who made them.' : 'Calls that name this record’s id stand here.'} New ones appear within a few seconds.</Empty>
  return (
    <>
      <table className="tbl flat seers">
        <thead><tr><th scope="col">Time</th><th scope="col">Call</th><th scope="col">By</th><th scope="col" className="num">Status</th></tr></thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.id}>
              <td><Time at={r.time} form="minute" /></td>
              <td><Link to={paths.audit(r.id)} className="mono">{r.method} {r.path.replace(/^\/(public|admin)\/v1/, '').replace(id, '…')}</Link></td>
              <td className="second">{r.user ? r.user.email : '–'}{r.realUser && <> by {r.realUser.email}</>}</td>
              <td className="num"><Status code={r.status} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {query.data.meta.hasMore && <p className="second top6"><Link to={paths.auditWhere({ path: id })}>More in the audit log</Link></p>}
    </>
  )
}
