import { IconBroadcast } from '@tabler/icons-react'
import type { CreatedKey } from '../../api/admin'
import { paths } from '../../app/paths'
import { useMay, useSession } from '../../app/session'
import { Arch } from '../../ui/arch'
import { Link } from '../../ui/link'
import { SecretOnce } from '../../ui/secret'
import { Ago } from '../../ui/time'
import { UseIt } from '../../ui/useit'
import { useKey, useSampleEntity } from './queries'

/** MadeKey shows the token once, with a request that works as pasted and waits for its first call. */
export function MadeKey({ made, onDone }: { made: CreatedKey; onDone: () => void }) {
  const { tenant } = useSession()
  const seesLog = useMay(['manage_endpoints'])
  const entity = useSampleEntity()
  const { key } = useKey(made.key.id, true)
  const where = `${tenant.baseUrl}/public/v1/${entity ? `data/${entity}?limit=5` : 'me'}`
  const used = key?.lastUsedAt
  return (
    <SecretOnce title={<>Copy the token of “{made.key.name}” now</>} why="It is shown this once. Gatehouse keeps only its hash; a lost token means a new key." secret={made.token}
      advice="Put it where your other secrets live, never into code that reaches a browser you don’t trust." onDone={onDone}>
      <UseIt title="Try it" request={{ method: 'GET', url: where, token: made.token }}>
        <div className="first" role="status">
          {used
            ? <><Arch state="open" />The first request came <Ago at={used} /><span className="grow" />{seesLog && <Link to={paths.auditWhere({ key: made.key.id })}>See it in the audit log</Link>}</>
            : <><IconBroadcast size={14} stroke={1.7} aria-hidden />Waiting for the first request with this key</>}
        </div>
      </UseIt>
    </SecretOnce>
  )
}
