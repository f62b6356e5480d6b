import { useMay } from '../../app/session'
import { paths } from '../../app/paths'
import { Arch } from '../../ui/arch'
import { Link } from '../../ui/link'
import { useTenant } from './tenant'

/** ApiStatus says in the header of every page whether the Public API answers. */
export function ApiStatus() {
  const may = useMay(['manage_endpoints', 'tenant_settings'])
  const tenant = useTenant(may)
  if (!may || !tenant.data) return null
  const on = tenant.data.value.public_api.enabled
  return <Link to={paths.apiConfig()} className="row second" aria-label={on ? 'Public API on' : 'Public API off'}><Arch state={on ? 'open' : 'shut'} /><span>{on ? 'Public API on' : 'Public API off'}</span></Link>
}
