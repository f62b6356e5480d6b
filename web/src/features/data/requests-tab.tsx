import type { DataEntity } from '../../api/admin'
import { paths } from '../../app/paths'
import { useMay } from '../../app/session'
import { Link } from '../../ui/link'
import { Empty } from '../../ui/states'

/** RequestsTab leads to the audit log, which has every call of this entity type with its request and answer. */
export function RequestsTab({ entity }: { entity: DataEntity; id: string }) {
  const may = useMay(['manage_endpoints', 'tenant_settings'])
  if (!may) return <Empty title="The audit log is not open to you" arch="shut">It has every call with its request and answer, the changes of this record too.</Empty>
  return (
    <Empty title="Calls and changes are in the audit log" arch="open" action={<Link className="btn" to={paths.auditWhere({ endpoint: `/data/${entity.name}` })}>Show calls of {entity.name}</Link>}>
      Each change of this record is a PATCH there, with who made it, its request and its answer.
    </Empty>
  )
}
