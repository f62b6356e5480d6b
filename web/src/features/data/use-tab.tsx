import type { DataEntity } from '../../api/admin'
import { paths } from '../../app/paths'
import { useSession } from '../../app/session'
import { Link } from '../../ui/link'
import { UseIt } from '../../ui/useit'
import { apiBase } from '../../app/api-base'
import { pick } from './edit'
import { useEntities, type Look } from './queries'

/** UseTab has the requests of the public API for this record. */
export function UseTab({ entity, id, look }: { entity: DataEntity; id: string; look: Look }) {
  const session = useSession()
  const base = apiBase(session.tenant.baseUrl, useEntities().data?.publicHere ?? true)
  const editable = entity.fields.filter((f) => f.edit).slice(0, 2).map((f) => f.name)
  const one = `${base}/data/${entity.name}/${id}`
  return (
    <div className="stack">
      <UseIt title="Read it" request={{ method: 'GET', url: one }} />
      {look.meta.may.update && editable.length > 0 && <UseIt title="Change it" request={{ method: 'PATCH', url: one, body: pick(look.row, editable) }} />}
      <UseIt title={`List ${entity.name}`} request={{ method: 'GET', url: `${base}/data/${entity.name}?limit=50` }} />
      <p className="second">Put an API key’s token into <code>GATEHOUSE_TOKEN</code>. The key’s user must be able to see this record.</p>
      <p><Link to={paths.apiReference()}>API reference</Link></p>
    </div>
  )
}
